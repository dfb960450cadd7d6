package ioends

import "weft/epoll"

// system is the poller of this system.
type system = epoll.Poller

func newSystem() *system { return epoll.New() }

const (
	wakeData   = epoll.WakeData
	flightData = epoll.RingData
)
