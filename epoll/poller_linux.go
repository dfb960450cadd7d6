package epoll

import (
	"math"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/core"
)

const (
	// Edge-triggered, both directions; and EPOLLPRI, since a receive that stops at urgent data takes less than it asked for
	// although more is there. EPOLLHUP and EPOLLERR are always reported.
	interest = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET

	receives = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLHUP | unix.EPOLLERR
	sends    = unix.EPOLLOUT | unix.EPOLLHUP | unix.EPOLLERR
	// EPOLLHUP alone is no hangup: a TCP socket that was never connected has it. One whose connection has ended has
	// EPOLLRDHUP as well.
	hangups = unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLERR

	batch = 128 // events in one wait

	// WakeData is the data of the wake event. No record has this index.
	WakeData = uint64(math.MaxUint64)
	// RingData is that of the ring of files, which is C's to empty: capi/flight_linux.c.
	RingData = WakeData - 1
)

// Poller is core.Poller.
type Poller struct {
	table *core.DescriptorTable // immutable after Attach
	epoll int                   // immutable after Attach
	wake  int                   // immutable after Attach: eventfd
}

// New makes a poller that holds nothing until it is attached.
func New() *Poller { return &Poller{epoll: -1, wake: -1} }

// Attach implements core.Poller. Errors: ELimit (no free descriptor), ENoMem, ENotSup.
func (p *Poller) Attach(table *core.DescriptorTable, shared *core.RuntimeMemory) error {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return ErrorOf(err)
	}
	wake, err := newWake(epoll)
	if err != nil {
		unix.Close(epoll)
		return ErrorOf(err)
	}
	p.table, p.epoll, p.wake = table, epoll, wake
	shared.Port, shared.Event = int32(epoll), int32(wake)
	return nil
}

// Completes implements core.Poller.
func (p *Poller) Completes() bool { return false }

// Register implements core.Poller. There are no hints.
func (p *Poller) Register(system int32, data uint64) (hints uint32, err error) {
	if system < 0 {
		return 0, core.EInval
	}
	flags, err := unix.FcntlInt(uintptr(system), unix.F_GETFL, 0)
	if err != nil {
		return 0, core.EInval
	}
	event := eventWith(interest, data)
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, int(system), &event); err != nil {
		if err == unix.EPERM { // a regular file, or a directory
			return 0, core.ENotSup
		}
		return 0, ErrorOf(err)
	}
	// After the registration, so that a descriptor that is refused stays as it was. An event that comes before this harms
	// nobody: no op can have been started.
	if flags&unix.O_NONBLOCK == 0 {
		if _, err := unix.FcntlInt(uintptr(system), unix.F_SETFL, flags|unix.O_NONBLOCK); err != nil {
			p.Deregister(system)
			return 0, ErrorOf(err)
		}
	}
	return 0, nil
}

// Deregister implements core.Poller. Closing alone would not do: epoll watches what is behind the descriptor, for as long as
// any duplicate of it is open, in this process or in a child.
func (p *Poller) Deregister(system int32) {
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, int(system), nil) // it fails when the user has closed the descriptor
}

// Discard implements core.Poller. An error of close is not retried: on Linux the descriptor is gone in any case.
func (p *Poller) Discard(system int32) { _ = unix.Close(int(system)) }

// Interrupt implements core.Poller: no transfer is ever under way in the system.
func (p *Poller) Interrupt(int32, *core.IO) bool { return false }

// Poll implements core.Poller.
func (p *Poller) Poll(timeout int64, ready func(op *core.Op)) int {
	var events [batch]unix.EpollEvent
	n := p.wait(events[:], timeout)
	count := 0
	for i := range events[:n] {
		event := &events[i]
		data := dataOf(event)
		if data == WakeData || data == RingData {
			continue
		}
		count++
		directions := 0
		if event.Events&receives != 0 {
			directions |= 1 << core.Receive
		}
		if event.Events&sends != 0 {
			directions |= 1 << core.Send
		}
		p.table.Ready(data, directions, event.Events&hangups != 0, ready)
	}
	return count
}

// noPwait2 is 1 once the system has said that it has no epoll_pwait2 (Linux before 5.11). Atomic: any thread may learn it.
var noPwait2 atomic.Uint32

// wait waits for events. A signal ends it early, with none.
func (p *Poller) wait(events []unix.EpollEvent, timeout int64) int {
	if timeout > 0 && noPwait2.Load() == 0 {
		limit := unix.NsecToTimespec(timeout)
		n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&events[0])),
			uintptr(len(events)), uintptr(unsafe.Pointer(&limit)), 0, 0)
		switch errno {
		case 0:
			return int(n)
		case unix.ENOSYS:
			noPwait2.Store(1)
		default:
			return 0
		}
	}
	n, err := unix.EpollWait(p.epoll, events, milliseconds(timeout))
	if err != nil {
		return 0
	}
	return n
}

// milliseconds rounds up: a wait must not end before its time.
func milliseconds(timeout int64) int {
	if timeout < 0 {
		return -1
	}
	ms := timeout / 1e6
	if timeout%1e6 != 0 {
		ms++
	}
	return int(min(ms, math.MaxInt32))
}

// Close implements core.Poller.
func (p *Poller) Close() {
	if p.epoll >= 0 {
		_ = unix.Close(p.epoll)
		_ = unix.Close(p.wake)
		p.epoll, p.wake = -1, -1
	}
}

// eventWith is an event of the given kind and data. The data is two words in x/sys's form.
func eventWith(events uint32, data uint64) unix.EpollEvent {
	return unix.EpollEvent{Events: events, Fd: int32(uint32(data)), Pad: int32(uint32(data >> 32))}
}

func dataOf(event *unix.EpollEvent) uint64 {
	return uint64(uint32(event.Pad))<<32 | uint64(uint32(event.Fd))
}
