package core_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/purelane"
)

func newQueue(t testing.TB) (*core.WorkerMemory, core.Lane) {
	w := shared[core.WorkerMemory](t)
	require.True(t, w.InitQueue(purelane.Memory{}))
	t.Cleanup(func() { w.FreeQueue(purelane.Memory{}) })
	return w, purelane.New(purelane.Memory{}, nil, nil)
}

func TestOwnerTakesNewestFirst(t *testing.T) {
	w, _ := newQueue(t)
	for i := uint64(1); i <= 5000; i++ { // past two growths
		require.Equal(t, i > 1, w.Put(purelane.Memory{}, i))
	}
	require.EqualValues(t, 5000, w.Length())
	for i := uint64(5000); i >= 1; i-- {
		require.Equal(t, i, w.Take())
	}
	require.Zero(t, w.Take())
	require.Zero(t, w.Length())
}

func TestYieldersComeInOrderBehindEverything(t *testing.T) {
	w, _ := newQueue(t)
	for i := uint64(1); i <= 3000; i++ {
		w.PutBehind(purelane.Memory{}, i)
	}
	w.Put(purelane.Memory{}, 9000)
	require.EqualValues(t, 9000, w.Take())
	for i := uint64(1); i <= 3000; i++ {
		require.Equal(t, i, w.Take())
	}
	require.Zero(t, w.Take())
}

func TestRingsKeepTheirOrderWhenTheyGrowWrapped(t *testing.T) {
	w, _ := newQueue(t)
	for round := uint64(0); round < 700; round++ { // moves the ends away from index 0
		w.PutBehind(purelane.Memory{}, round+1)
		require.Equal(t, round+1, w.Take())
	}
	for i := uint64(1); i <= 2000; i++ {
		w.PutBehind(purelane.Memory{}, i)
	}
	for i := uint64(1); i <= 2000; i++ {
		require.Equal(t, i, w.Take())
	}
}

func TestThiefTakesTheOlderHalf(t *testing.T) {
	for _, c := range []struct{ queued, stolen int }{{0, 0}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {100, 50}, {3000, 512}} {
		w, l := newQueue(t)
		for i := 1; i <= c.queued; i++ {
			w.Put(purelane.Memory{}, uint64(i))
		}
		loot := make([]uint64, 512)
		require.Equal(t, c.stolen, w.StealHalf(l, loot), "of %d", c.queued)
		for i := range c.stolen {
			require.EqualValues(t, i+1, loot[i])
		}
		require.EqualValues(t, c.queued-c.stolen, w.Length())
	}
}

func TestThiefTakesYieldersWhenTheRingIsEmptyAndTheNewestLast(t *testing.T) {
	w, l := newQueue(t)
	w.Put(purelane.Memory{}, 7)
	w.PutBehind(purelane.Memory{}, 8)
	w.PutBehind(purelane.Memory{}, 9)
	loot := make([]uint64, 8)
	for _, want := range []uint64{8, 9, 7} {
		require.Equal(t, 1, w.StealHalf(l, loot))
		require.Equal(t, want, loot[0])
	}
	require.Zero(t, w.StealHalf(l, loot))
}

func TestThiefGivesUpOnAnOwnerWhoStaysInside(t *testing.T) {
	w, l := newQueue(t)
	w.Put(purelane.Memory{}, 1)
	w.Enter(l)
	require.Zero(t, w.StealHalf(l, make([]uint64, 1)))
	w.Leave()
	require.Equal(t, 1, w.StealHalf(l, make([]uint64, 1)))
}

func TestBacklog(t *testing.T) {
	w, _ := newQueue(t)
	require.False(t, w.HasBacklog())
	w.Put(purelane.Memory{}, 1)
	w.Ticks.Store(5)
	require.False(t, w.HasBacklog(), "a lone op of a worker that makes progress is its own")
	w.Stalled.Store(5)
	require.True(t, w.HasBacklog(), "but not behind a stalled op")
	w.Ticks.Store(6)
	require.False(t, w.HasBacklog(), "and progress ends the stall")
	w.PutBehind(purelane.Memory{}, 2)
	require.True(t, w.HasBacklog())
}

// TestQueueHammer lets an owner and thieves at one queue and counts: everything that went in comes out once.
func TestQueueHammer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const total = 200_000
	w, l := newQueue(t)
	seen := make([]atomic.Uint32, total+1)
	var out atomic.Int64
	take := func(v uint64) {
		if v != 0 {
			seen[v].Add(1)
			out.Add(1)
		}
	}
	var thieves sync.WaitGroup
	for range 3 {
		thieves.Go(func() {
			loot := make([]uint64, 64)
			for out.Load() < total {
				for _, v := range loot[:w.StealHalf(l, loot)] {
					take(v)
				}
				runtime.Gosched()
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for next := uint64(1); next <= total; {
		w.Enter(l)
		for n := random.IntN(40); n > 0 && next <= total; n-- {
			if random.IntN(3) == 0 {
				w.PutBehind(purelane.Memory{}, next)
			} else {
				w.Put(purelane.Memory{}, next)
			}
			next++
		}
		w.Leave()
		for n := random.IntN(40); n > 0; n-- {
			w.Enter(l)
			v := w.Take()
			if random.IntN(8) == 0 {
				take(w.TakeOldest(&w.Deque))
			}
			w.Leave()
			take(v)
		}
	}
	eventually(t, func() bool {
		w.Enter(l)
		v := w.Take()
		w.Leave()
		take(v)
		return out.Load() >= total
	}, "the queue is empty")
	thieves.Wait()
	for v := 1; v <= total; v++ {
		require.EqualValues(t, 1, seen[v].Load(), "runnable %d", v)
	}
}
