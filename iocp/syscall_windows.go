package iocp

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// System calls that x/sys does not have.

var (
	kernel32 = windows.NewLazySystemDLL("kernel32.dll")
	ntdll    = windows.NewLazySystemDLL("ntdll.dll")

	procGetQueuedCompletionStatusEx = kernel32.NewProc("GetQueuedCompletionStatusEx")
	procCreateWaitableTimerExW      = kernel32.NewProc("CreateWaitableTimerExW")
	procSetWaitableTimer            = kernel32.NewProc("SetWaitableTimer")
	procCancelWaitableTimer         = kernel32.NewProc("CancelWaitableTimer")
	procQueryPerformanceCounter     = kernel32.NewProc("QueryPerformanceCounter")
	procQueryPerformanceFrequency   = kernel32.NewProc("QueryPerformanceFrequency")
	procRtlNtStatusToDosError       = ntdll.NewProc("RtlNtStatusToDosError")
)

const (
	skipCompletionPortOnSuccess = 1 // FILE_SKIP_...
	skipSetEventOnHandle        = 2

	soProtocolInfo = 0x2005 // SO_PROTOCOL_INFOW

	fileModeInformation    = 16
	fileSynchronousIO      = 0x10 | 0x20 // alertable, or not
	timerHighResolution    = 2
	timerAllAccess         = 0x1f0003
	statusPending          = 0x103
	waitIOCompletion       = windows.Errno(192)
	somaxconn              = 0x7fffffff
	addressRoom            = 16 + 28 // bytes that AcceptEx wants for an address: 16 more than the largest
	wsaFlagOverlapped      = 0x01
	wsaFlagNoHandleInherit = 0x80
)

// entry is OVERLAPPED_ENTRY.
type entry struct {
	key        uintptr
	overlapped uintptr
	internal   uintptr
	bytes      uint32
	_          uint32
}

// getQueuedCompletionStatusEx takes what is at a port, and waits for it. The entries must be on the heap.
func getQueuedCompletionStatusEx(port windows.Handle, entries []entry, milliseconds uint32, alertable bool) (n int, err error) {
	var taken, alert uint32
	if alertable {
		alert = 1
	}
	ok, _, err := procGetQueuedCompletionStatusEx.Call(uintptr(port), uintptr(unsafe.Pointer(&entries[0])), uintptr(len(entries)),
		uintptr(unsafe.Pointer(&taken)), uintptr(milliseconds), uintptr(alert))
	if ok == 0 {
		return 0, err
	}
	return int(taken), nil
}

// createTimer makes a waitable timer that is as fine as the system has them.
func createTimer() (windows.Handle, error) {
	timer, _, err := procCreateWaitableTimerExW.Call(0, 0, timerHighResolution, timerAllAccess)
	if timer == 0 { // before Windows 10 1803
		timer, _, err = procCreateWaitableTimerExW.Call(0, 0, 0, timerAllAccess)
	}
	if timer == 0 {
		return 0, err
	}
	return windows.Handle(timer), nil
}

// setTimer has a routine called on this thread, while it waits alertably, after a span of time in 100 ns.
func setTimer(timer windows.Handle, span int64, routine uintptr) bool {
	due := -span
	ok, _, _ := procSetWaitableTimer.Call(uintptr(timer), uintptr(unsafe.Pointer(&due)), 0, routine, 0, 0)
	return ok != 0
}

// cancelTimer ends it; a call of its routine that is on its way, too.
func cancelTimer(timer windows.Handle) { _, _, _ = procCancelWaitableTimer.Call(uintptr(timer)) }

// dosError is the system's translation of a status.
func dosError(status uint32) windows.Errno {
	code, _, _ := procRtlNtStatusToDosError.Call(uintptr(status))
	return windows.Errno(code)
}

// frequency is of the performance counter, per second; it never changes.
var frequency = func() (f int64) {
	_, _, _ = procQueryPerformanceFrequency.Call(uintptr(unsafe.Pointer(&f)))
	return f
}()

// now is a monotonic time in ns. Go's own clock moves in ticks of the system here.
func now() int64 {
	var ticks int64
	_, _, _ = procQueryPerformanceCounter.Call(uintptr(unsafe.Pointer(&ticks)))
	return ticks/frequency*1e9 + ticks%frequency*1e9/frequency
}
