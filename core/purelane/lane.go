// Package purelane is the lane in Go: the twin of capi/lane.c, park.c, steal.c and watch.c, for builds without cgo. It runs the same core on the same
// shared memory, calls ops through purego, and is what core's own tests run on. It is not built for speed: a call costs some 60 ns.
//
// One Lane serves one runtime. Its workers are goroutines locked to their threads.
package purelane

import (
	"runtime"
	"sync"
	"time"

	"weft/core"
)

const (
	fairInterval     = 61 // ops between two looks at the injection stack and at the oldest ends, as in capi/lane.c
	checkIntervalMax = 61 * 64
	checkShort       = 10 * time.Microsecond
	checkLong        = 40 * time.Microsecond
	pollInterval     = 50 * time.Microsecond
	injectedWake     = 16
	leaveGap         = time.Millisecond
)

var epoch = time.Now()

// Lane implements core.Lane.
type Lane struct {
	memory  core.Memory
	poller  core.Poller
	call    func(function, argument uintptr)
	workers [core.WorkersMax]sleeper
	thieves [core.WorkersMax]thief
	resting [core.WorkersMax]chan struct{} // of a cached worker
	monitor chan struct{}                  // closed by EndWatch
	drained chan struct{}                  // closed by EndLinger

	views        [core.WorkersMax]view // owner: monitor
	surplusSince int64                 // owner: monitor; ns, 0: there is none
	injected     bool                  // owner: monitor; something was injected and not drained, at the last look
}

// thief is what a worker remembers of its steals. Owner: the worker.
type thief struct {
	place int    // of the last victim
	waits uint32 // in a row, for a backlog that could not be got at
}

// New makes the lane of one runtime. call is what runs an op: Call, or a test's own.
func New(memory core.Memory, poller core.Poller, call func(function, argument uintptr)) *Lane {
	l := &Lane{memory: memory, poller: poller, call: call, monitor: make(chan struct{}), drained: make(chan struct{})}
	for i := range l.workers {
		l.workers[i].init()
		l.resting[i] = make(chan struct{}, 1)
	}
	return l
}

// Threads starts goroutines locked to threads: what core.Config wants of Start and Add.
type Threads struct {
	main    func(i int)
	running sync.WaitGroup
}

// Start is core.Config.Start.
func (t *Threads) Start(workers int, main func(i int)) error {
	t.main = main
	for i := range workers {
		_ = t.Add(i)
	}
	return t.Add(core.MonitorThread)
}

// Add is core.Config.Add.
func (t *Threads) Add(i int) error {
	t.running.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		t.main(i)
	})
	return nil
}

// Join waits until all have ended: after the runtime's Wait, before its Destroy.
func (t *Threads) Join() { t.running.Wait() }

// Now tells the monotonic clock, in nanoseconds since the program began.
func (l *Lane) Now() int64 { return int64(time.Since(epoch)) }

// Barrier does nothing: the owner's end of the queue section in Go is sequentially consistent by itself.
func (l *Lane) Barrier() {}

// Pause gives other goroutines a turn, and with many spins sleeps.
func (l *Lane) Pause(spins uint32) {
	if spins < 1024 {
		runtime.Gosched()
	} else {
		time.Sleep(50 * time.Microsecond * time.Duration(min(spins/1024, 40)))
	}
}

// Run runs ops until there is something that only core can do.
func (l *Lane) Run(w *core.WorkerMemory) core.Reason {
	r := w.RuntimeMemory()
	fair := fairness{until: turnInterval(w), untilCheck: int(w.CheckInterval)}
	for {
		fair.until--
		if fair.until == 0 && fair.injected == 0 {
			l.drain(w, r)
			interval := turnInterval(w)
			if fair.untilCheck -= interval; fair.untilCheck <= 0 {
				if reason := l.check(w, r); reason != 0 {
					w.Running.Store(0)
					return reason
				}
				fair.untilCheck = int(w.CheckInterval)
			}
			fair.injected = 1 + min(interval, int(w.Injected.Tail.Load()-w.Injected.Head.Load()))
		}
		w.Enter(l)
		runnable := fair.take(w)
		w.Leave()
		if runnable != 0 {
			run := core.RunOf(runnable)
			w.Running.Store(uint64(run))
			w.Ticks.Add(1)
			l.call(run, uintptr(runnable))
			continue
		}
		w.Running.Store(0)
		if l.drain(w, r) {
			continue
		}
		if reason := l.park(w, r); reason != 0 {
			return reason
		}
		fair = fairness{until: turnInterval(w), untilCheck: int(w.CheckInterval)}
	}
}

// turnInterval is how many ops of its own a worker runs between two turns of the others; fewer when they are long.
func turnInterval(w *core.WorkerMemory) int { return min(fairInterval, int(w.CheckInterval)) }

// fairness is whose turn it is; lane_fairness and lane_turn in capi/lane.c.
type fairness struct {
	until, untilCheck, injected int
	yielded                     bool
	length                      int64
}

// take takes the next runnable. Inside the queue section.
func (f *fairness) take(w *core.WorkerMemory) (runnable uint64) {
	if f.until > 0 {
		return w.Take()
	}
	if f.injected > 1 {
		runnable = w.TakeOldest(&w.Injected)
	}
	if runnable != 0 {
		f.injected--
		f.until = 1
		return runnable
	}
	length := w.Deque.Tail.Load() - w.Deque.Head.Load()
	f.yielded = !f.yielded
	if f.yielded {
		runnable = w.TakeOldest(&w.Yielded)
	} else if length >= f.length {
		runnable = w.TakeOldest(&w.Deque)
	}
	f.length, f.injected, f.until = length, 0, turnInterval(w)
	if runnable == 0 {
		runnable = w.Take()
	}
	return runnable
}

func (l *Lane) drain(w *core.WorkerMemory, r *core.RuntimeMemory) bool {
	count := r.Drain(l, l.memory, w)
	if count >= injectedWake {
		l.WakeOne(r)
	}
	return count != 0
}

// check is the look at the clock that a busy worker takes every CheckInterval ops.
func (l *Lane) check(w *core.WorkerMemory, r *core.RuntimeMemory) core.Reason {
	now := l.Now()
	passed := time.Duration(now - w.CheckedAt)
	w.CheckedAt = now
	if passed < checkShort && w.CheckInterval < checkIntervalMax {
		w.CheckInterval *= 2
	} else if passed > checkLong && w.CheckInterval > 1 {
		w.CheckInterval /= 2
	}
	if w.Length() >= 2 {
		l.WakeOne(r)
	}
	if w.Life.Load() == core.LifeAsked && now >= w.LeaveAt {
		w.LeaveAt = now + int64(leaveGap)
		return core.ReasonRetire
	}
	if r.Keeper.Load() != 0 {
		return 0
	}
	if r.EarliestTimer() <= now {
		return core.ReasonTimers
	}
	if r.Descriptors.Load() != 0 && now-r.PolledAt.Load() > int64(pollInterval) {
		return core.ReasonPoll
	}
	return 0
}

// Push queues a runnable on the calling worker's own deque, as weft_schedule_local does. Owner only.
func (l *Lane) Push(w *core.WorkerMemory, runnable uint64) {
	w.Enter(l)
	held := w.Put(l.memory, runnable)
	w.Leave()
	if held {
		l.WakeOne(w.RuntimeMemory())
	}
}

// PushBehind queues a runnable behind everything on the calling worker. Owner only.
func (l *Lane) PushBehind(w *core.WorkerMemory, runnable uint64) {
	w.Enter(l)
	w.PutBehind(l.memory, runnable)
	w.Leave()
}
