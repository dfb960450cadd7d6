package purelane

import (
	"time"

	"weft/core"
)

const (
	periodMin = 20 * time.Microsecond // as in capi/watch.c
	periodMax = time.Millisecond
	overdue   = 200 * time.Microsecond
	unpolled  = time.Millisecond
	heldFor   = 2 * time.Millisecond  // in one op. The C lane asks the system whether the thread is blocked; here time must do
	surplus   = 10 * time.Millisecond // of a worker too many before one is asked to leave
	refusal   = 100 * time.Millisecond
	restFor   = 10 * time.Second // of a thread that is not wanted
)

// EndWatch ends the monitor.
func (l *Lane) EndWatch(r *core.RuntimeMemory) {
	r.Monitor.Store(2)
	close(l.monitor)
}

// Rest implements core.Lane.
func (l *Lane) Rest(w *core.WorkerMemory) bool {
	timer := time.NewTimer(restFor)
	defer timer.Stop()
	for {
		switch w.Life.Load() {
		case core.LifeStarting:
			return true
		case core.LifeDismissed:
			return false
		}
		select {
		case <-l.resting[w.Index]:
		case <-timer.C:
			if w.Life.CompareAndSwap(core.LifeCached, core.LifeAbsent) {
				return false
			}
		}
	}
}

// Rouse implements core.Lane.
func (l *Lane) Rouse(w *core.WorkerMemory) {
	select {
	case l.resting[w.Index] <- struct{}{}:
	default:
	}
}

// Linger implements core.Lane.
func (l *Lane) Linger(_ *core.RuntimeMemory, ns int64) {
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-l.drained:
	case <-timer.C:
	}
}

// EndLinger implements core.Lane.
func (l *Lane) EndLinger(_ *core.RuntimeMemory) { close(l.drained) }

// view is what the monitor remembers of a worker.
type view struct {
	ticks   uint64
	since   int64 // ns: when a look first saw them
	backlog bool
	counted bool // as a stall
}

// Watch is the monitor's loop; lane_watch in capi/watch.c, with these differences: an idle runtime is looked at a thousand times a second; whether a
// thread is blocked, computes or has lost its CPU is not known, so a worker is held up when it stays in one op for long, and there is no bound on
// those that compute; and stalls are counted, but reported to nobody.
func (l *Lane) Watch(r *core.RuntimeMemory) core.Reason {
	period := periodMin
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		select {
		case <-l.monitor:
			return core.ReasonStop
		case <-timer.C:
		}
		now := l.Now()
		found, waits, live, held := l.look(r, now)
		running := r.State.Load() == core.StateRunning
		reason := l.unminded(r)
		if reason != 0 && running && !r.AnyIdle() {
			return reason
		}
		if found || reason != 0 {
			l.WakeOne(r)
		}
		free, base := live-held, int(r.WorkerCount)
		if waits && !r.AnyIdle() && free < base && live < int(r.WorkerMax) && now-r.RefusedAt.Load() > int64(refusal) {
			return core.ReasonReplace
		}
		if free <= base {
			l.surplusSince = 0
		} else if l.surplusSince == 0 {
			l.surplusSince = now
		} else if running && now-l.surplusSince > int64(surplus) {
			l.ask(r)
		}
		if period = min(period*2, periodMax); found {
			period = periodMin
		}
		timer.Reset(period)
	}
}

// look compares each worker with the last look.
func (l *Lane) look(r *core.RuntimeMemory, now int64) (found, waits bool, live, held int) {
	// What was injected without a wake, by a worker that has been held up since, before it came to drain it.
	injected := r.Inject.Load() > core.InjectClosed
	found, waits = injected && l.injected, injected
	l.injected = injected
	since := now
	for i := range int(r.Active.Load()) {
		w, v := r.Worker(i), &l.views[i]
		switch w.Life.Load() {
		case core.LifeStarting, core.LifeRunning:
			live++
		case core.LifeAsked:
		default:
			continue
		}
		ticks, length := w.Ticks.Load(), w.Length()
		if ticks != v.ticks || w.Running.Load() == 0 {
			if v.counted {
				r.StalledLongest.Store(max(r.StalledLongest.Load(), now-v.since))
			}
			found = found || length >= 2 && v.backlog
			waits = waits || length >= 2 && v.backlog
			*v = view{ticks: ticks, since: now, backlog: length >= 2}
			continue
		}
		if length > 0 {
			w.Stalled.Store(ticks)
			found, waits = true, true
		}
		v.backlog = length >= 2
		if now-v.since > int64(heldFor) {
			held++
			since = min(since, v.since)
			if waits && !v.counted {
				v.counted = true
				r.Stalls.Add(1)
			}
		}
	}
	r.ReplaceSince.Store(since)
	return found, waits, live, held
}

// ask asks a replacement that is not held up to leave.
func (l *Lane) ask(r *core.RuntimeMemory) {
	for i := int(r.Active.Load()) - 1; i >= int(r.WorkerCount); i-- {
		w := r.Worker(i)
		busy := w.Running.Load() != 0 && w.Ticks.Load() == l.views[i].ticks && l.Now()-l.views[i].since > int64(heldFor)
		if !busy && w.Life.CompareAndSwap(core.LifeRunning, core.LifeAsked) {
			l.Wake(r, w)
			return
		}
	}
}

func (l *Lane) unminded(r *core.RuntimeMemory) core.Reason {
	if r.Keeper.Load() != 0 {
		return 0
	}
	now := l.Now()
	if r.EarliestTimer() < now-int64(overdue) {
		return core.ReasonTimers
	}
	if r.Descriptors.Load() != 0 && now-r.PolledAt.Load() > int64(unpolled) {
		return core.ReasonPoll
	}
	return 0
}
