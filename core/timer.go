package core

// Start starts a timer in a worker's wheel: the Go twin of weft_schedule_at in capi/timer.c, for callers in Go and for purelane. The timer's
// memory is shared memory, its Op.Run is set, and it is the runtime's until the op begins. deadline is in monotonic nanoseconds;
// MaxInt64 is never. It returns nil, EBusy (already started) or EStopped. Any thread.
func (r *Runtime) Start(t *Timer, deadline int64) error {
	if r.shared.State.Load() != StateRunning {
		return EStopped
	}
	// A thread that is no worker may use any wheel; spreading by address keeps locks apart.
	w := r.shared.Worker(int(addressOf(t) >> 7 % uint64(r.shared.WorkerCount)))
	wheel := &w.Wheel
	tick := tickOf(deadline)
	wheel.lock(r.lane)
	if wheel.Closed != 0 || t.State == timerPending {
		defer wheel.unlock()
		if wheel.Closed != 0 {
			return EStopped
		}
		return EBusy
	}
	wheel.Started++
	t.Deadline, t.Status, t.Worker = deadline, 0, addressOf(w)
	if tick <= wheel.Elapsed {
		wheel.Fired++
		wheel.unlock()
		return r.Inject(&t.Op, &t.Op, true)
	}
	t.State = timerPending
	wheel.link(t, tick)
	at := tick << WheelTickShift
	earliest := tick != tickNever && at < wheel.Earliest.Load()
	if earliest {
		// Published before the look at SleepUntil, against the keeper, who publishes SleepUntil and looks at the wheels again.
		wheel.Earliest.Swap(at)
	}
	wheel.unlock()
	if earliest && at < r.shared.SleepUntil.Load() {
		r.wakeKeeper()
	}
	return nil
}

// Cancel takes a pending timer out of its wheel; its op then runs with Status ECanceled. It reports whether the timer was pending: if not, the
// op has begun or is queued. Any thread, as long as the caller knows that the timer's memory is still there.
func (r *Runtime) Cancel(t *Timer) bool {
	if t.Worker == 0 {
		return false
	}
	wheel := &at[WorkerMemory](t.Worker).Wheel
	wheel.lock(r.lane)
	pending := t.State == timerPending
	if pending {
		wheel.unlink(t)
		t.State, t.Status = timerIdle, int32(ECanceled)
		wheel.Cancelled++
		r.shared.Pending.Add(1) // not 0 before: as long as the timer was there, Stop has not closed the wheel
	}
	wheel.unlock()
	if pending {
		r.finish(&t.Op)
		r.shared.releaseEnd()
	}
	return pending
}

// wakeKeeper makes the sleeper who minds timers and poller look again.
func (r *Runtime) wakeKeeper() {
	if keeper := r.shared.Keeper.Load(); keeper != 0 {
		r.lane.Wake(r.shared, r.shared.Worker(int(keeper-1)))
	}
}
