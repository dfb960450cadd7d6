package core_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// nothingToPoll is a poller for runtimes without descriptors.
type nothingToPoll struct{}

func (nothingToPoll) Attach(*core.DescriptorTable, *core.RuntimeMemory) error { return nil }
func (nothingToPoll) Completes() bool                                         { return false }
func (nothingToPoll) Register(int32, uint64) (uint32, error)                  { return 0, core.ENotSup }
func (nothingToPoll) Deregister(int32)                                        {}
func (nothingToPoll) Discard(int32)                                           {}
func (nothingToPoll) Interrupt(int32, *core.IO) bool                          { return false }
func (nothingToPoll) Poll(int64, func(*core.Op)) int                          { return 0 }
func (nothingToPoll) Wake()                                                   {}
func (nothingToPoll) Close()                                                  {}

// countsWakes is one that is woken.
type countsWakes struct {
	nothingToPoll
	wakes atomic.Int32
}

func (c *countsWakes) Wake() { c.wakes.Add(1) }

// A turn of the poller may take the wake of a keeper who has just gone to sleep: it hands one on.
func TestTurnOfThePollerHandsTheWakeOn(t *testing.T) {
	poller := &countsWakes{}
	f := startWith(t, core.Config{Workers: 1, Poller: poller})
	gate := make(chan struct{})
	block := shared[core.Op](t)
	var begun atomic.Bool
	block.Run = function(func(*core.Op) { begun.Store(true); <-gate })
	require.NoError(t, f.Schedule(block))
	eventually(t, begun.Load, "the worker is busy")
	f.PollTurn()
	require.Zero(t, poller.wakes.Load())
	close(gate)
	eventually(t, func() bool { return f.Shared().Keeper.Load() != 0 }, "the worker sleeps")
	f.PollTurn()
	require.EqualValues(t, 1, poller.wakes.Load())
}
