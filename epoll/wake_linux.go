package epoll

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// newWake makes an eventfd and registers it. It is edge-triggered: every write is an event of its own, and nobody needs to
// read. The counter behind it only grows, and is full after 2^64 wakes: never.
func newWake(epoll int) (int, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, err
	}
	event := eventWith(unix.EPOLLIN|unix.EPOLLET, WakeData)
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &event); err != nil {
		unix.Close(wake)
		return -1, err
	}
	return wake, nil
}

// Wake implements core.Poller. The write does not block.
func (p *Poller) Wake() {
	one := uint64(1)
	_, _ = unix.Write(p.wake, (*[8]byte)(unsafe.Pointer(&one))[:])
}
