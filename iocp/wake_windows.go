package iocp

import (
	"math"

	"golang.org/x/sys/windows"
)

// WakeKey is the key of the packet that is a wake. No registration has it.
const WakeKey = uintptr(math.MaxUint)

// Wake implements core.Poller. It fails when the system has no memory for a packet, and then there are others at the port.
func (p *Poller) Wake() { _ = windows.PostQueuedCompletionStatus(p.port, 0, WakeKey, nil) }
