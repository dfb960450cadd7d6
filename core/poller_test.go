package core_test

import "weft/core"

// nothingToPoll is a poller for runtimes without descriptors.
type nothingToPoll struct{}

func (nothingToPoll) Attach(*core.DescriptorTable, *core.RuntimeMemory) error { return nil }
func (nothingToPoll) Register(int32, uint64) error                            { return core.ENotSup }
func (nothingToPoll) Deregister(int32)                                        {}
func (nothingToPoll) Discard(int32)                                           {}
func (nothingToPoll) Interrupt(int32, *core.IO) bool                          { return false }
func (nothingToPoll) Poll(int64, func(*core.Op)) int                          { return 0 }
func (nothingToPoll) Wake()                                                   {}
func (nothingToPoll) Close()                                                  {}
