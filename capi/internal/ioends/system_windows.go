package ioends

// #cgo CFLAGS: -DWEFT_STATIC -D_WIN32_WINNT=0x0A00
// #cgo LDFLAGS: -lws2_32 -lmswsock -lntdll
import "C"

import "weft/iocp"

// system is the poller of this system.
type system = iocp.Poller

func newSystem() *system { return iocp.New() }

const (
	wakeData   = uint64(iocp.WakeKey)
	flightData = uint64(iocp.FlightKey)
)
