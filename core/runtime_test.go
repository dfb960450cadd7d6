package core_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/purelane"
)

func TestEveryInjectedOpRunsOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		f := start(t, workers)
		const producers, each = 4, 5000
		ops := sharedSlice[core.Op](t, producers*each)
		ran := make([]atomic.Uint32, len(ops))
		run := function(func(op *core.Op) { ran[op.Context].Add(1) })
		var wait sync.WaitGroup
		for p := range producers {
			wait.Go(func() {
				for i := p * each; i < (p+1)*each; i++ {
					ops[i] = core.Op{Run: run, Context: uintptr(i)}
					if f.Schedule(&ops[i]) != nil {
						t.Error("refused while running")
					}
				}
			})
		}
		wait.Wait()
		eventually(t, func() bool { return f.Stats().OpsRun == producers*each }, "all have begun")
		f.Stop()
		f.Wait()
		for i := range ran {
			require.EqualValues(t, 1, ran[i].Load())
		}
		require.EqualValues(t, producers*each, f.Stats().Injected)
	}
}

func TestInjectedOpsOfOneProducerRunInOrder(t *testing.T) {
	f := start(t, 1)
	ops := sharedSlice[core.Op](t, 1000)
	var order []uintptr
	gate := make(chan struct{})
	block := shared[core.Op](t)
	block.Run = function(func(*core.Op) { <-gate })
	require.NoError(t, f.Schedule(block))
	run := function(func(op *core.Op) { order = append(order, op.Context) })
	for i := range ops {
		ops[i] = core.Op{Run: run, Context: uintptr(i)}
		require.NoError(t, f.Schedule(&ops[i]))
	}
	close(gate)
	f.Stop()
	f.Wait()
	for i, got := range order {
		require.EqualValues(t, i, got)
	}
	require.Len(t, order, len(ops))
}

func TestStopRefusesDrainsAndEnds(t *testing.T) {
	f := start(t, 2)
	ops := sharedSlice[core.Op](t, 1000)
	var ran atomic.Int64
	run := function(func(*core.Op) { time.Sleep(10 * time.Microsecond); ran.Add(1) })
	for i := range ops {
		ops[i].Run = run
		require.NoError(t, f.Schedule(&ops[i]))
	}
	var stops sync.WaitGroup
	for range 3 { // twice and more is fine
		stops.Go(func() { f.Stop(); f.Wait() })
	}
	stops.Wait()
	require.EqualValues(t, len(ops), ran.Load())
	late := shared[core.Op](t)
	late.Run = run
	require.Equal(t, core.EStopped, f.Schedule(late))
	require.Equal(t, core.EStopped, f.Inject(late, late, true), "continuations, too, when no worker is left")
	require.Equal(t, core.EStopped, f.Start(shared[core.Timer](t), 0))
	require.Equal(t, core.StateStopped, f.Shared().State.Load())
}

// TestStopAtTheMomentOfTheLastOp stops while single ops are on their way: each is either refused or run.
func TestStopAtTheMomentOfTheLastOp(t *testing.T) {
	for round := range 300 {
		f := start(t, 1+round%3)
		op := shared[core.Op](t)
		var ran atomic.Int64
		op.Run = function(func(*core.Op) { ran.Add(1) })
		accepted := make(chan bool)
		go func() { accepted <- f.Schedule(op) == nil }()
		for range rand.IntN(200) {
			_ = f.Shared().State.Load()
		}
		f.Stop()
		f.Wait()
		want := int64(0)
		if <-accepted {
			want = 1
		}
		require.Equal(t, want, ran.Load(), "round %d", round)
	}
}

func TestTimersFireInOrderAndNeverEarly(t *testing.T) {
	f := start(t, 2)
	timers := sharedSlice[core.Timer](t, 400)
	var fired, early atomic.Int64
	begin := f.lane.Now()
	run := function(func(op *core.Op) {
		if f.lane.Now() < timers[op.Context].Deadline {
			early.Add(1)
		}
		fired.Add(1)
	})
	for i := range timers {
		timers[i].Op = core.Op{Run: run, Context: uintptr(i)}
		require.NoError(t, f.Start(&timers[i], begin+int64(rand.IntN(60))*int64(time.Millisecond)))
	}
	eventually(t, func() bool { return fired.Load() == int64(len(timers)) }, "all timers have fired")
	require.Zero(t, early.Load())
	stats := f.Stats()
	require.EqualValues(t, len(timers), stats.TimersStarted)
	require.EqualValues(t, len(timers), stats.TimersFired)
}

func TestCancelledTimerRunsOnceAsCancelled(t *testing.T) {
	f := start(t, 2)
	timer := shared[core.Timer](t)
	status := make(chan int32, 2)
	timer.Op.Run = function(func(*core.Op) { status <- timer.Status })
	require.False(t, f.Cancel(timer), "an idle timer is not pending")
	require.NoError(t, f.Start(timer, never))
	require.Equal(t, core.EBusy, f.Start(timer, 0), "started twice")
	require.True(t, f.Cancel(timer))
	require.EqualValues(t, core.ECanceled, <-status)
	require.False(t, f.Cancel(timer))
	require.NoError(t, f.Start(timer, f.lane.Now()-1), "idle again")
	require.EqualValues(t, 0, <-status)
	require.Empty(t, status)
}

func TestStopCancelsTimers(t *testing.T) {
	f := start(t, 2)
	timers := sharedSlice[core.Timer](t, 100)
	var cancelled atomic.Int64
	run := function(func(op *core.Op) {
		if timers[op.Context].Status == int32(core.ECanceled) {
			cancelled.Add(1)
		}
	})
	for i := range timers {
		timers[i].Op = core.Op{Run: run, Context: uintptr(i)}
		require.NoError(t, f.Start(&timers[i], never-int64(i%2)*int64(1e18)))
	}
	f.Stop()
	f.Wait()
	require.EqualValues(t, len(timers), cancelled.Load())
	require.EqualValues(t, len(timers), f.Stats().TimersCancelled)
}

// TestBlockedWorkerIsRobbed blocks one of two workers with ops queued behind it: the other takes them, the lone last one, too.
func TestBlockedWorkerIsRobbed(t *testing.T) {
	for _, queued := range []int{1, 2, 100} {
		f := start(t, 2)
		ops := sharedSlice[core.Op](t, queued+1)
		var ran atomic.Int64
		behind := function(func(*core.Op) { ran.Add(1) })
		gate := make(chan struct{})
		ops[0].Run = function(func(*core.Op) {
			for i := range 2 { // the worker we are on is the one that does not sleep
				if w := f.worker(i); w.Park.Load() == core.Awake && w.Ticks.Load() == 1 {
					for j := range queued {
						ops[j+1].Run = behind
						f.lane.Push(w, core.AddressOf(&ops[j+1]))
					}
					break
				}
			}
			<-gate
		})
		require.NoError(t, f.Schedule(&ops[0]))
		eventually(t, func() bool { return ran.Load() == int64(queued) }, "what stands behind the blocked op runs elsewhere")
		close(gate)
	}
}

func TestTimersOfBlockedWorkersFire(t *testing.T) {
	f := start(t, 2)
	gate := make(chan struct{})
	block := function(func(*core.Op) { <-gate })
	ops := sharedSlice[core.Op](t, 2)
	for i := range ops {
		ops[i].Run = block
		require.NoError(t, f.Schedule(&ops[i]))
	}
	eventually(t, func() bool { return f.Stats().OpsRun == 2 }, "both workers are blocked")
	timer := shared[core.Timer](t)
	timer.Op.Run = function(func(*core.Op) {})
	require.NoError(t, f.Start(timer, f.lane.Now()+int64(time.Millisecond)))
	eventually(t, func() bool { return f.Stats().TimersFired == 1 }, "the monitor fires in the workers' stead")
	close(gate)
}

func TestSeveralRuntimes(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	op := shared[core.Op](t)
	hops := make(chan int, 1)
	var left atomic.Int64 // the race detector does not see that the queues order the hops
	left.Store(1000)
	op.Run = function(func(op *core.Op) {
		now := left.Add(-1)
		switch {
		case now == 0:
			hops <- int(now)
		case now%2 == 0:
			_ = a.Schedule(op)
		default:
			_ = b.Schedule(op)
		}
	})
	require.NoError(t, a.Schedule(op))
	require.Zero(t, <-hops)
	require.EqualValues(t, 1000, a.Stats().OpsRun+b.Stats().OpsRun)
}

func TestIdleWorkersSleep(t *testing.T) {
	f := start(t, 4)
	eventually(t, func() bool { return f.Stats().Parked == 4 }, "all sleep")
	before := f.Stats()
	time.Sleep(50 * time.Millisecond)
	after := f.Stats()
	require.Equal(t, before.Parks, after.Parks, "and stay asleep")
	require.Equal(t, before.Crossings, after.Crossings)
}

func TestBadConfig(t *testing.T) {
	for _, workers := range []int{-1, 0, core.WorkersMax + 1} {
		_, err := core.New(core.Config{Shared: shared[core.RuntimeMemory](t), Workers: workers})
		require.Equal(t, core.EInval, err)
	}
	refused := core.Config{
		Shared: shared[core.RuntimeMemory](t), ID: 1, Workers: 1, Lane: purelane.New(purelane.Memory{}, nothingToPoll{}, call),
		Memory: purelane.Memory{}, Poller: nothingToPoll{}, Call: call,
		Start: func(int, func(int)) error { return core.ELimit },
	}
	_, err := core.New(refused)
	require.Equal(t, core.ELimit, err)
	require.Equal(t, core.StateFree, refused.Shared.State.Load())
}

func TestWorkerStatsBounds(t *testing.T) {
	f := start(t, 1)
	for _, i := range []int{-1, 1} {
		_, err := f.WorkerStats(i)
		require.Equal(t, core.EInval, err)
	}
}

// steadyStates are what a runtime does over and over, one step each; a step ends when its op has begun.
func steadyStates(t testing.TB) map[string]func() {
	f := start(t, 1)
	op, timer := shared[core.Op](t), shared[core.Timer](t)
	var err error
	op.Run, err = purelane.Harmless()
	require.NoError(t, err)
	timer.Op.Run = op.Run
	step := func(begin func()) func() {
		return func() {
			before := f.worker(0).Ticks.Load()
			begin()
			for f.worker(0).Ticks.Load() == before {
				runtime.Gosched()
			}
		}
	}
	return map[string]func(){
		"inject": step(func() { _ = f.Schedule(op) }),
		"timer":  step(func() { _ = f.Start(timer, f.lane.Now()+int64(20*time.Microsecond)) }),
		"cancel": step(func() { _ = f.Start(timer, never); f.Cancel(timer) }),
	}
}

func BenchmarkSteadyState(b *testing.B) {
	for name, step := range steadyStates(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// TestSteadyStateAllocatesNothing is the promise behind the benchmark's "0 allocs/op".
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, step := range steadyStates(t) {
		const steps = 1000
		for range steps {
			step() // fills Go's own pools
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range steps {
			step()
		}
		runtime.ReadMemStats(&after)
		// Less than one in a hundred steps: the Go runtime has threads and timers of its own. Under the race detector sync.Pool forgets at random,
		// which is about one allocation a call; more than two a step would be ours.
		limit := uint64(steps / 100)
		if raceDetector {
			limit = 2 * steps
		}
		require.Less(t, after.Mallocs-before.Mallocs, limit, name)
	}
}
