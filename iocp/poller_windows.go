package iocp

import (
	"math"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"

	"weft/core"
)

const (
	batch = 128 // packets in one wait

	// How many threads the port lets run at a time. It is not to count them: a worker that has polled and now runs its ops would
	// keep a packet, and be it a wake, from the one who sleeps.
	unthrottled = 1 << 16
)

// Poller is core.Poller.
type Poller struct {
	table *core.DescriptorTable // immutable after Attach
	port  windows.Handle        // immutable after Attach
	timer windows.Handle        // immutable after Attach
	timed sync.Mutex            // held by who waits with the timer

	arrived func(overlapped uintptr) (op uintptr) // immutable after Attach; see Flights
}

// New makes a poller that holds nothing until it is attached.
func New() *Poller { return new(Poller) }

// FlightKey is the key of the packets of files, whose ops are C's: capi/flight_windows.c. No registration has it.
const FlightKey = WakeKey - 1

// Flights says what becomes of those packets: arrived gets the address of the OVERLAPPED, and returns that of the op which can go on, or 0. Before
// Attach.
func (p *Poller) Flights(arrived func(overlapped uintptr) (op uintptr)) { p.arrived = arrived }

// startWinsock asks for version 2.2, which every Windows has.
var startWinsock = sync.OnceValue(func() error {
	var data windows.WSAData
	return windows.WSAStartup(2|2<<8, &data)
})

// Attach implements core.Poller. Errors: ENoMem, ELimit, ESystem.
func (p *Poller) Attach(table *core.DescriptorTable, shared *core.RuntimeMemory) error {
	if err := startWinsock(); err != nil {
		return ErrorOf(err)
	}
	port, err := windows.CreateIoCompletionPort(windows.InvalidHandle, 0, 0, unthrottled)
	if err != nil {
		return ErrorOf(err)
	}
	timer, err := createTimer()
	if err != nil {
		_ = windows.CloseHandle(port)
		return ErrorOf(err)
	}
	p.table, p.port, p.timer = table, port, timer
	shared.Port, shared.Event = int32(port), int32(timer)
	return nil
}

// Completes implements core.Poller.
func (p *Poller) Completes() bool { return true }

// Register implements core.Poller. A descriptor stays with its port for as long as it is open, and its mode is its maker's: one that was
// opened without FILE_FLAG_OVERLAPPED is refused with ENotSup, as are files with positions, and consoles.
func (p *Poller) Register(system int32, data uint64) (hints uint32, err error) {
	handle := windows.Handle(system)
	kind, err := windows.GetFileType(handle)
	if system < 0 || err != nil {
		return 0, core.EInval
	}
	if kind != windows.FILE_TYPE_PIPE || isSynchronous(handle) { // a socket is a pipe here
		return 0, core.ENotSup
	}
	if _, err := windows.CreateIoCompletionPort(handle, p.port, uintptr(data), 0); err != nil {
		switch err {
		case windows.ERROR_INVALID_PARAMETER:
			return 0, core.EExist
		case windows.ERROR_INVALID_HANDLE:
			return 0, core.EInval
		}
		return 0, ErrorOf(err)
	}
	return modeOf(handle), nil
}

// isSynchronous tells whether a handle was opened for calls that block.
func isSynchronous(handle windows.Handle) bool {
	var block windows.IO_STATUS_BLOCK
	var mode uint32
	err := windows.NtQueryInformationFile(handle, &block, (*byte)(unsafe.Pointer(&mode)), uint32(unsafe.Sizeof(mode)), fileModeInformation)
	return err == nil && mode&fileSynchronousIO != 0
}

// modeOf has a TCP socket post no packet for a call that succeeds at once, if its handle is the system's own: another provider's may
// post it all the same. Datagrams are left as they are: a receive that cuts one off fails at once and posts a packet.
func modeOf(handle windows.Handle) (hints uint32) {
	info, err := protocolOf(handle)
	if err != nil {
		return 0
	}
	if info.AddressFamily == windows.AF_INET6 {
		hints = core.HintIPv6
	}
	if isTCP(info) && info.ServiceFlags1&windows.XP1_IFS_HANDLES != 0 &&
		windows.SetFileCompletionNotificationModes(handle, skipCompletionPortOnSuccess|skipSetEventOnHandle) == nil {
		hints |= core.HintSkips
	}
	return hints
}

// Deregister implements core.Poller: there is nothing to end.
func (p *Poller) Deregister(int32) {}

// Discard implements core.Poller.
func (p *Poller) Discard(system int32) { closeHandle(windows.Handle(system)) }

func closeHandle(handle windows.Handle) {
	if windows.Closesocket(handle) == windows.WSAENOTSOCK {
		_ = windows.CloseHandle(handle)
	}
}

// Interrupt implements core.Poller. If the transfer has ended meanwhile the system does not find it.
func (p *Poller) Interrupt(system int32, io *core.IO) bool {
	_ = windows.CancelIoEx(windows.Handle(system), overlappedOf(io))
	return true
}

// overlappedOf is the op's OVERLAPPED.
func overlappedOf(io *core.IO) *windows.Overlapped {
	return (*windows.Overlapped)(unsafe.Pointer(&io.System))
}

// ioOf is its inverse.
func ioOf(overlapped uintptr) *core.IO {
	return at[core.IO](overlapped - unsafe.Offsetof(core.IO{}.System))
}

// at is the thing at an address in memory that is not Go's.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// batches are the entries of the polls: on the heap, since a stack may move while the timer's routine runs on it.
var batches = sync.Pool{New: func() any { return new([batch]entry) }}

// Poll implements core.Poller.
func (p *Poller) Poll(timeout int64, ready func(op *core.Op)) int {
	entries := batches.Get().(*[batch]entry)
	defer batches.Put(entries)
	count := 0
	for _, e := range entries[:p.wait(entries[:], timeout)] {
		switch e.key {
		case WakeKey:
			continue
		case FlightKey:
			if op := p.arrived(e.overlapped); op != 0 {
				ready(at[core.Op](op))
			}
		default:
			p.table.Finished(ioOf(e.overlapped), ready)
		}
		count++
	}
	return count
}

// wait takes packets, as soon as there are any.
func (p *Poller) wait(entries []entry, timeout int64) (n int) {
	switch {
	case timeout < 0:
		n, _ = getQueuedCompletionStatusEx(p.port, entries, windows.INFINITE, false)
		return n
	case timeout == 0:
		n, _ = getQueuedCompletionStatusEx(p.port, entries, 0, false)
		return n
	}
	deadline := now()
	if deadline += timeout; deadline < 0 {
		deadline = math.MaxInt64
	}
	// The system counts ticks that have begun, so it may be early.
	for left := timeout; left > 0 && n == 0; left = deadline - now() {
		n = p.waitFinely(entries, left)
	}
	return n
}

// waitFinely waits about as long as it is told. The port counts in milliseconds, and in ticks of up to 16 of them; so a timer ends
// the wait. Another thread may have it: then milliseconds must do.
func (p *Poller) waitFinely(entries []entry, timeout int64) (n int) {
	if !p.timed.TryLock() {
		n, _ = getQueuedCompletionStatusEx(p.port, entries, milliseconds(timeout), false)
		return n
	}
	defer p.timed.Unlock()
	runtime.LockOSThread() // whose wait the timer ends
	defer runtime.UnlockOSThread()
	alertable := setTimer(p.timer, timeout/100+1, timerEnds)
	n, _ = getQueuedCompletionStatusEx(p.port, entries, milliseconds(timeout), alertable)
	cancelTimer(p.timer)
	return n
}

// timerEnds is the timer's routine: that it is called ends the wait.
var timerEnds = windows.NewCallback(func(_, _, _ uintptr) uintptr { return 0 })

// milliseconds rounds up. The longest is a little less than for ever.
func milliseconds(timeout int64) uint32 {
	ms := timeout / 1e6
	if timeout%1e6 != 0 {
		ms++
	}
	return uint32(min(ms, math.MaxUint32-1))
}

// Close implements core.Poller.
func (p *Poller) Close() {
	if p.port != 0 {
		_ = windows.CloseHandle(p.port)
		_ = windows.CloseHandle(p.timer)
		p.port, p.timer = 0, 0
	}
}
