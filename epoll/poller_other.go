//go:build !linux

package epoll

import "weft/core"

// Poller stands for the poller on systems that have no epoll: it cannot be attached.
type Poller struct{}

// New makes one.
func New() *Poller { return &Poller{} }

// Attach implements core.Poller: ENotSup.
func (*Poller) Attach(*core.DescriptorTable, *core.RuntimeMemory) error { return core.ENotSup }

// Completes implements core.Poller.
func (*Poller) Completes() bool { return false }

// Register implements core.Poller: ENotSup.
func (*Poller) Register(int32, uint64) (uint32, error) { return 0, core.ENotSup }

// Deregister implements core.Poller.
func (*Poller) Deregister(int32) {}

// Discard implements core.Poller.
func (*Poller) Discard(int32) {}

// Interrupt implements core.Poller.
func (*Poller) Interrupt(int32, *core.IO) bool { return false }

// Poll implements core.Poller.
func (*Poller) Poll(int64, func(op *core.Op)) int { return 0 }

// Wake implements core.Poller.
func (*Poller) Wake() {}

// Close implements core.Poller.
func (*Poller) Close() {}
