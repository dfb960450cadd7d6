package core_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/purelane"
)

// blockAll schedules so many ops that wait for the gate, and returns when each has a worker.
func blockAll(t testing.TB, f *fixture, count int, gate chan struct{}) {
	var begun atomic.Int64
	block := function(func(*core.Op) { begun.Add(1); <-gate })
	ops := sharedSlice[core.Op](t, count)
	for i := range ops {
		ops[i].Run = block
		require.NoError(t, f.Schedule(&ops[i]))
	}
	eventually(t, func() bool { return begun.Load() == int64(count) }, "every op has a worker")
}

func TestReplacementsRunWhatWaits(t *testing.T) {
	f := startWith(t, core.Config{Workers: 2, Most: 16})
	for range 2 { // the second time there are cached ones
		gate := make(chan struct{})
		blockAll(t, f, 8, gate)
		var ran atomic.Int64
		ops := sharedSlice[core.Op](t, 100)
		run := function(func(*core.Op) { ran.Add(1) })
		for i := range ops {
			ops[i].Run = run
			require.NoError(t, f.Schedule(&ops[i]))
		}
		timer := shared[core.Timer](t)
		timer.Op.Run = run
		require.NoError(t, f.Start(timer, f.lane.Now()+int64(time.Millisecond)))
		eventually(t, func() bool { return ran.Load() == 101 }, "ops and timer run beside the blocked ones")
		require.GreaterOrEqual(t, f.Stats().Workers, uint64(9))
		close(gate)
		eventually(t, func() bool { return f.Stats().Workers == 2 }, "the replacements leave")
	}
	stats := f.Stats()
	require.GreaterOrEqual(t, stats.Replacements, uint64(14))
	require.GreaterOrEqual(t, stats.Recoveries, uint64(1))
	require.GreaterOrEqual(t, stats.RecoveryTotal, stats.RecoveryLongest)
	require.GreaterOrEqual(t, stats.Stalls, uint64(1))
	require.EqualValues(t, 16, stats.WorkersMost)
}

// TestNoMoreThanMost blocks as many as there may be: what comes then waits for them.
func TestNoMoreThanMost(t *testing.T) {
	f := startWith(t, core.Config{Workers: 1, Most: 3})
	gate := make(chan struct{})
	blockAll(t, f, 3, gate)
	var ran atomic.Bool
	op := shared[core.Op](t)
	op.Run = function(func(*core.Op) { ran.Store(true) })
	require.NoError(t, f.Schedule(op))
	time.Sleep(20 * time.Millisecond)
	require.False(t, ran.Load())
	require.EqualValues(t, 3, f.Stats().Workers)
	close(gate)
	eventually(t, ran.Load, "it runs when one of them is back")
}

// TestRefusedThread: when the system gives no thread, everything waits, and nothing is lost.
func TestRefusedThread(t *testing.T) {
	f := startWith(t, core.Config{Workers: 1, Most: 8, Add: func(int) error { return core.ELimit }})
	gate := make(chan struct{})
	blockAll(t, f, 1, gate)
	var ran atomic.Bool
	op := shared[core.Op](t)
	op.Run = function(func(*core.Op) { ran.Store(true) })
	require.NoError(t, f.Schedule(op))
	eventually(t, func() bool { return f.Shared().Refused.Load() > 0 }, "a thread was asked for")
	require.False(t, ran.Load())
	stats := f.Stats()
	require.EqualValues(t, 1, stats.Workers)
	require.Zero(t, stats.Replacements)
	close(gate)
	eventually(t, ran.Load, "the blocked worker is back")
}

// TestStopWhileAllAreBlocked: an op that only another op ends keeps a stopping runtime from ending unless somebody runs that one.
func TestStopWhileAllAreBlocked(t *testing.T) {
	for range 20 {
		f := startWith(t, core.Config{Workers: 2, Most: 6})
		gate := make(chan struct{})
		blockAll(t, f, 2, gate)
		op := shared[core.Op](t)
		op.Run = function(func(*core.Op) { close(gate) })
		require.NoError(t, f.Schedule(op))
		f.Stop()
		f.Wait()
	}
}

// TestStopWithACachedWorker: the only replacement that there may be is still there for an op that blocks while the runtime stops.
func TestStopWithACachedWorker(t *testing.T) {
	for range 5 {
		f := startWith(t, core.Config{Workers: 1, Most: 2})
		first := make(chan struct{})
		blockAll(t, f, 2, first)
		close(first)
		eventually(t, func() bool { return f.worker(1).Life.Load() == core.LifeCached }, "the replacement has left")
		gate := make(chan struct{})
		ops := sharedSlice[core.Op](t, 2)
		ops[0].Run = function(func(*core.Op) { close(gate) })
		ops[1].Run = function(func(*core.Op) {
			if f.Schedule(&ops[0]) != nil {
				close(gate)
			}
			f.Stop()
			<-gate
		})
		require.NoError(t, f.Schedule(&ops[1]))
		f.Wait()
	}
}

// TestTimersOfTheMonitor: what the monitor fires wakes a worker that has gone to sleep since the monitor looked, at once and not at its next look.
func TestTimersOfTheMonitor(t *testing.T) {
	f := startWith(t, core.Config{Workers: 1})
	asleep := func() bool { return f.worker(0).Park.Load() == core.Parked }
	for range 20 {
		eventually(t, asleep, "the worker sleeps")
		timer := shared[core.Timer](t)
		var ran atomic.Int64
		timer.Op.Run = function(func(*core.Op) { ran.Add(1) })
		timer.Worker = core.AddressOf(f.worker(0))
		// Behind the worker's back: for all that he knows there is no timer.
		require.False(t, f.worker(0).Wheel.LinkAt(f.lane, timer, f.lane.Now()+int64(time.Millisecond)))
		for f.lane.Now() < timer.Deadline+1<<core.WheelTickShift {
			time.Sleep(100 * time.Microsecond)
		}
		eventually(t, asleep, "the worker sleeps")
		before := f.Shared().Wakes.Load()
		f.FireAsMonitor()
		require.Greater(t, f.Shared().Wakes.Load(), before)
		eventually(t, func() bool { return ran.Load() == 1 }, "the timer's op runs")
	}
}

// A thread that has handed over an op may be late to wake a worker: when the op has run, and the runtime is gone. What it touches is still there.
func TestWakeOfAnEndedRuntime(t *testing.T) {
	f := startWith(t, core.Config{Workers: 2})
	memory, worker := f.Shared(), f.worker(1)
	f.Stop()
	f.Wait()
	f.Destroy() // the end of the test does it once more, and finds nothing
	for range 100 {
		f.lane.Wake(memory, worker)
		f.lane.WakeOne(memory)
	}
	require.False(t, memory.AnyIdle())
	require.Zero(t, memory.Waking.Load())
	require.Zero(t, worker.Park.Load(), "its place is zeroed, and nobody is woken in it")
}

// TestRandomStalls blocks at random while ops queue themselves again and the runtime stops: each ends once.
func TestRandomStalls(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
		f := startWith(t, core.Config{Workers: 1 + rand.IntN(3), Most: 3 + rand.IntN(10)})
		const count = 40
		ops := sharedSlice[core.Op](t, count)
		var over atomic.Int64
		var left [count]atomic.Int64
		run := function(func(op *core.Op) {
			if rand.IntN(4) == 0 {
				time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
			}
			if left[op.Context].Add(-1) <= 0 || f.Schedule(op) != nil {
				over.Add(1)
			}
		})
		for i := range ops {
			left[i].Store(int64(1 + rand.IntN(30)))
			ops[i] = core.Op{Run: run, Context: uintptr(i)}
			require.NoError(t, f.Schedule(&ops[i]))
		}
		if rand.IntN(2) == 0 {
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		} else {
			eventually(t, func() bool { return over.Load() == count }, "all ops end")
		}
		f.Stop()
		f.Wait()
		require.EqualValues(t, count, over.Load())
	}
}

// TestGivenToOneThatRests: a worker that was asked to leave before the stop may give what it has to one that has drained its part already.
func TestGivenToOneThatRests(t *testing.T) {
	for range 50 {
		f := startWith(t, core.Config{Workers: 2})
		f.Shared().Pending.Add(1) // holds the end off
		f.Stop()
		time.Sleep(2 * time.Millisecond)
		f.worker(0).Stalled.Store(math.MaxUint64) // it makes progress: nobody comes for its last op
		var ran atomic.Int64
		op := shared[core.Op](t)
		op.Run = function(func(*core.Op) { ran.Add(1) })
		eventually(t, func() bool {
			return f.worker(0).Accept(f.lane, purelane.Memory{}, []uint64{core.AddressOf(op)})
		}, "the worker is between two of its sections")
		f.Shared().Pending.Add(^uint64(0))
		f.Wait()
		require.EqualValues(t, 1, ran.Load())
	}
}

// TestQueueOfALeavingWorker: what a worker that leaves has queued goes to one that runs, and never to one that does not.
func TestQueueOfALeavingWorker(t *testing.T) {
	f := startWith(t, core.Config{Workers: 1, Most: 3})
	gate := make(chan struct{})
	blockAll(t, f, 3, gate) // all places have begun; nobody touches his queue
	first, last := f.worker(0), f.worker(2)
	ops := sharedSlice[core.Op](t, 3)
	runnables := []uint64{core.AddressOf(&ops[0]), core.AddressOf(&ops[1]), core.AddressOf(&ops[2])}
	var ran atomic.Int64
	run := function(func(*core.Op) { ran.Add(1) })
	for i := range ops {
		ops[i].Run = run
	}
	for _, life := range []uint32{core.LifeAbsent, core.LifeStarting, core.LifeAsked, core.LifeCached, core.LifeDismissed, core.LifeLeaving} {
		before := last.Life.Swap(life)
		require.False(t, last.Accept(f.lane, purelane.Memory{}, runnables), "life %d", life)
		last.Life.Store(before)
	}
	require.Zero(t, last.Length())
	require.True(t, first.Accept(f.lane, purelane.Memory{}, runnables))
	require.EqualValues(t, 3, first.Length())
	close(gate)
	f.Stop()
	f.Wait()
	require.EqualValues(t, 3, ran.Load())
}

// TestNobodyAcceptsWhatALeavingWorkerHas: then it keeps all of it, in order, and stays.
func TestNobodyAcceptsWhatALeavingWorkerHas(t *testing.T) {
	f := startWith(t, core.Config{Workers: 1, Most: 3})
	gate := make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	blockAll(t, f, 3, gate) // all places have begun; nobody touches their queues
	first, second, last := f.worker(0), f.worker(1), f.worker(2)
	const count = 600 // more than one gift
	ops := sharedSlice[core.Op](t, count)
	var ran atomic.Int64
	run := function(func(*core.Op) { ran.Add(1) })
	runnables := make([]uint64, count)
	for i := range ops {
		ops[i].Run = run
		runnables[i] = core.AddressOf(&ops[i])
	}
	require.True(t, last.Accept(f.lane, purelane.Memory{}, runnables))
	first.Stalled.Store(first.Ticks.Load())
	second.Stalled.Store(second.Ticks.Load())
	require.False(t, f.GiveAway(2), "both others are held up")
	require.EqualValues(t, count, last.Length())
	require.Eventually(t, func() bool { // the monitor may see second held up by its first gift
		second.Stalled.Store(math.MaxUint64)
		return f.GiveAway(2)
	}, 10*time.Second, time.Microsecond, "one makes progress")
	require.Zero(t, last.Length())
	require.Zero(t, first.Length())
	require.EqualValues(t, count, second.Length())
	release()
	f.Stop()
	f.Wait()
	require.EqualValues(t, count, ran.Load())
}
