package purelane

import (
	"math"
	"math/bits"
	"time"

	"weft/core"
)

// sleeper is where one worker sleeps. The park word in shared memory decides; the channel only carries the wake.
type sleeper struct {
	wake  chan struct{}
	timer *time.Timer // owner: worker
}

func (s *sleeper) init() {
	s.wake = make(chan struct{}, 1)
	s.timer = time.NewTimer(time.Hour)
	s.timer.Stop()
}

// sleep returns after a wake or at the timeout; MaxInt64 is none.
func (s *sleeper) sleep(timeout time.Duration) {
	if timeout == math.MaxInt64 {
		<-s.wake
		return
	}
	s.timer.Reset(timeout)
	select {
	case <-s.wake:
		s.timer.Stop()
	case <-s.timer.C:
	}
}

// claim takes an idle worker out of the set, a sleeper that is not the keeper before the keeper.
func claim(r *core.RuntimeMemory) *core.WorkerMemory {
	keeper := r.Keeper.Load()
	for _, spare := range []bool{true, false} {
		for word := range r.Idle {
			idle := r.Idle[word].Load()
			if spare && keeper != 0 && int(keeper-1)/64 == word {
				idle &^= 1 << ((keeper - 1) % 64)
			}
			for ; idle != 0; idle &= idle - 1 {
				bit := idle & -idle
				if r.Idle[word].And(^bit)&bit != 0 {
					return r.Worker(word*64 + bits.TrailingZeros64(bit))
				}
			}
		}
	}
	return nil
}

// notify tells a worker whose idle bit the caller has taken, who is counted as a waker; lane_notify in capi/park.c.
func (l *Lane) notify(r *core.RuntimeMemory, w *core.WorkerMemory) {
	switch w.Park.Swap(core.Notified) {
	case core.Parked:
		select {
		case l.workers[w.Index].wake <- struct{}{}:
		default: // it has a wake to take already
		}
	case core.ParkedInPoller:
		l.poller.Wake()
	default:
		return
	}
	r.Wakes.Add(1)
}

// WakeOne wakes one idle worker unless one is on its way; lane_wake_one in capi/park.c.
func (l *Lane) WakeOne(r *core.RuntimeMemory) {
	for r.AnyIdle() && r.Waking.CompareAndSwap(0, 1) {
		r.Wakers.Add(1)
		w := claim(r)
		if w != nil {
			l.notify(r, w)
		}
		r.Wakers.Add(^uint32(0))
		if w != nil {
			return
		}
		r.Waking.Swap(0) // before the look at the idle ones; core's Enter says why it is a swap
	}
}

// Wake makes an idle worker look again.
func (l *Lane) Wake(r *core.RuntimeMemory, w *core.WorkerMemory) {
	bit := uint64(1) << (w.Index % 64)
	r.Wakers.Add(1)
	if r.Idle[w.Index/64].And(^bit)&bit != 0 {
		l.notify(r, w)
	}
	r.Wakers.Add(^uint32(0))
}

func backlogElsewhere(w *core.WorkerMemory, r *core.RuntimeMemory) bool {
	for i := range int(r.Active.Load()) {
		if i != int(w.Index) && r.Worker(i).HasBacklog() {
			return true
		}
	}
	return false
}

// park: announce, look again, sleep; lane_park in capi/park.c, without its spinning.
func (l *Lane) park(w *core.WorkerMemory, r *core.RuntimeMemory) (reason core.Reason) {
	t := &l.thieves[w.Index]
	stolen, backlog := w.Steal(l, l.memory, &t.place)
	if stolen {
		t.waits = 0
		return 0
	}
	stopping, asked := r.State.Load() != core.StateRunning, w.Life.Load() == core.LifeAsked
	if backlog && (stopping || !asked) {
		l.Pause(t.waits)
		t.waits++
		return 0
	}
	t.waits = 0
	if stopping {
		return core.ReasonStop
	}
	if asked {
		return core.ReasonRetire
	}
	bit := uint64(1) << (w.Index % 64)
	w.Park.Store(core.Announced)
	r.Idle[w.Index/64].Or(bit)
	if r.Inject.Load() <= core.InjectClosed && w.Length() == 0 && r.State.Load() == core.StateRunning && w.Life.Load() != core.LifeAsked &&
		!backlogElsewhere(w, r) {
		if r.Keeper.CompareAndSwap(0, w.Index+1) {
			reason = l.keep(w, r)
		} else if w.Park.CompareAndSwap(core.Announced, core.Parked) {
			w.Parks.Add(1)
			for w.Park.Load() == core.Parked {
				l.workers[w.Index].sleep(math.MaxInt64)
			}
		}
	}
	idle := r.Idle[w.Index/64].And(^bit)
	w.Park.Store(core.Awake)
	if idle&bit == 0 {
		r.Waking.Swap(0) // before the look for work
	}
	return reason
}

// keep sleeps as the keeper; lane_keep in capi/park.c.
func (l *Lane) keep(w *core.WorkerMemory, r *core.RuntimeMemory) (reason core.Reason) {
	until, earliest := int64(math.MaxInt64), r.EarliestTimer()
	for {
		until = earliest
		r.SleepUntil.Swap(until) // before the second look
		if earliest = r.EarliestTimer(); earliest >= until {
			break
		}
	}
	due := func() bool { return until != math.MaxInt64 && until <= l.Now() }
	how := core.Parked
	if r.Descriptors.Load() != 0 {
		how = core.ParkedInPoller
	}
	if due() {
		reason = core.ReasonTimers
	} else if w.Park.CompareAndSwap(core.Announced, how) {
		w.Parks.Add(1)
		timeout := int64(math.MaxInt64)
		if until != math.MaxInt64 {
			timeout = max(0, until-l.Now())
		}
		if how == core.ParkedInPoller {
			if timeout == math.MaxInt64 {
				timeout = -1
			}
			r.PolledAt.Store(l.Now())
			w.IOEvents.Add(uint64(l.poller.Poll(timeout, func(op *core.Op) {
				w.Enter(l)
				w.Put(l.memory, core.AddressOf(op))
				w.Leave()
			})))
		} else {
			l.workers[w.Index].sleep(time.Duration(timeout))
		}
		if w.Length() == 0 && due() {
			reason = core.ReasonTimers
		}
	}
	r.SleepUntil.Store(math.MinInt64)
	r.Keeper.Store(0)
	return reason
}
