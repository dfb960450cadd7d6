package core_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// Starts, events, cancels and closes from many threads: every op that was started completes once, and every record comes back.
func TestIOHammer(t *testing.T) {
	const starters, rounds = 4, 10000
	f := &ioFixture{tableFixture: newTable(t)}
	f.poller.quiet = true
	seed := rand.Uint64()
	t.Log("seed", seed)
	sockets := randomSockets{}
	f.lane = core.NewIOLane(f.DescriptorTable, &sockets, retryRun)
	var handles [3]atomic.Uint64
	for i := range handles {
		handles[i].Store(f.open(int32(10 + i)))
	}
	ops := make(chan *core.Op, 1<<16) // the injection stack
	queue := func(op *core.Op) { ops <- op }
	var runs [starters]atomic.Int64
	ios := sharedSlice[core.IO](t, starters)
	for i := range ios {
		ios[i].Op.Run, ios[i].Op.Context = 1, uintptr(i)
	}
	var working, others sync.WaitGroup
	for range 2 {
		working.Go(func() {
			for op := range ops {
				if op.Run == retryRun {
					io := f.lane.Retry(op, queue)
					if io == nil {
						continue
					}
					op = &io.Op
				}
				runs[op.Context].Add(1)
			}
		})
	}
	var over atomic.Bool
	disturb := func(n uint64, f func(r *rand.Rand)) {
		others.Go(func() {
			r := rand.New(rand.NewPCG(seed, n))
			for !over.Load() {
				f(r)
				runtime.Gosched() // others are to have a turn in between, not after 10 ms
			}
		})
	}
	disturb(1, func(r *rand.Rand) {
		handle := handles[r.IntN(len(handles))].Load()
		f.Ready(handle>>32<<32|(handle&0xffffff-1), 1+r.IntN(3), r.IntN(50) == 0, queue)
	})
	disturb(2, func(r *rand.Rand) { f.lane.Cancel(&ios[r.IntN(starters)], queue) })
	disturb(3, func(r *rand.Rand) {
		i := r.IntN(len(handles))
		if handle := handles[i].Load(); f.Close(handle, queue) == nil {
			opened, err := f.Open(int32(10+i), uint32(r.IntN(2))*core.HintStream)
			if err != nil {
				t.Error(err)
			}
			handles[i].Store(opened)
		}
	})
	var starting sync.WaitGroup
	for i := range starters {
		starting.Go(func() {
			r := rand.New(rand.NewPCG(seed, 10+uint64(i)))
			io := &ios[i]
			for pending := int64(0); pending < rounds; {
				handle := handles[r.IntN(len(handles))].Load()
				request := receive(10, uint16(r.IntN(2)))
				request.Kind += uint16(r.IntN(2))
				done, err := f.lane.Start(io, handle, request, queue)
				if err != nil || done {
					continue
				}
				pending++
				for deadline := time.Now().Add(20 * time.Second); runs[i].Load() < pending; runtime.Gosched() {
					if time.Now().After(deadline) {
						t.Errorf("an op that was started never completed: state %d", io.State.Load())
						return
					}
				}
				if status := core.Error(io.Status); runs[i].Load() != pending || status != 0 && status != core.ECanceled && status != core.EClosed {
					t.Errorf("op ran %d times of %d, status %d", runs[i].Load(), pending, status)
					return
				}
			}
		})
	}
	starting.Wait()
	over.Store(true)
	others.Wait()
	close(ops)
	working.Wait()
	for i := range handles {
		f.close(handles[i].Load())
	}
	seen := map[uint64]bool{}
	for range handles {
		handle := f.open(20)
		require.LessOrEqual(t, handle&0xffffff, uint64(8), fmt.Sprintf("records were lost: %x", handle))
		require.False(t, seen[handle&0xffffff])
		seen[handle&0xffffff] = true
	}
}

// randomSockets answer at random.
type randomSockets struct{ core.Sockets }

func (*randomSockets) Try(int32, uint32, *core.IO) core.Attempt {
	switch rand.IntN(4) {
	case 0:
		return core.Attempt{Moved: 3, Short: true}
	case 1:
		return core.Attempt{Moved: 10}
	}
	return waits
}
