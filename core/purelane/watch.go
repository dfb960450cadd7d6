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
)

// EndWatch ends the monitor.
func (l *Lane) EndWatch(r *core.RuntimeMemory) {
	r.Monitor.Store(2)
	close(l.monitor)
}

// Watch is the monitor's loop; lane_watch in capi/watch.c, but that an idle runtime is looked at a thousand times a second here.
func (l *Lane) Watch(r *core.RuntimeMemory) core.Reason {
	var ticks [core.WorkersMax]uint64
	var backlog [core.WorkersMax]bool
	period := periodMin
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		select {
		case <-l.monitor:
			return core.ReasonStop
		case <-timer.C:
		}
		if r.State.Load() != core.StateRunning {
			continue
		}
		found := false
		for i := range int(r.WorkerCount) {
			w := r.Worker(i)
			now, length := w.Ticks.Load(), w.Length()
			if length > 0 && now == ticks[i] {
				w.Stalled.Store(now)
				found = true
			}
			found = found || length >= 2 && backlog[i]
			ticks[i], backlog[i] = now, length >= 2
		}
		reason := l.unminded(r)
		if reason != 0 && !r.AnyIdle() {
			return reason
		}
		if found || reason != 0 {
			l.WakeOne(r)
		}
		if period = min(period*2, periodMax); found {
			period = periodMin
		}
		timer.Reset(period)
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
