package capi

/*
#include "flight.h"

static uintptr_t arrived(uintptr_t overlapped) { return (uintptr_t)flight_arrived((void *)overlapped); }
*/
import "C"

import (
	"weft/core"
	"weft/iocp"
)

// newPoller makes the poller of this system.
func newPoller() core.Poller {
	poller := iocp.New()
	poller.Flights(func(overlapped uintptr) uintptr { return uintptr(C.arrived(C.uintptr_t(overlapped))) })
	return poller
}
