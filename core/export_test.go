package core

// What core's own tests reach into.

// Init makes a zeroed wheel usable.
func (w *Wheel) Init() { w.init(false) }

// LinkAt links a timer as Start does, without a runtime. It tells whether the timer is due at once instead.
func (w *Wheel) LinkAt(l Lane, t *Timer, deadline int64) (due bool) {
	w.lock(l)
	defer w.unlock()
	tick := tickOf(deadline)
	t.Deadline = deadline
	if tick <= w.Elapsed {
		return true
	}
	t.State = timerPending
	w.link(t, tick)
	if at := tick << WheelTickShift; tick != tickNever && at < w.Earliest.Load() {
		w.Earliest.Store(at)
	}
	return false
}

// Unlink takes a pending timer out.
func (w *Wheel) Unlink(l Lane, t *Timer) {
	w.lock(l)
	defer w.unlock()
	w.unlink(t)
	t.State = timerIdle
}

// Advance fires what is due and returns it in the order in which it will run.
func (w *Wheel) Advance(l Lane, now int64) (fired []*Timer) {
	for done := false; !done; {
		var c chain
		done = w.advance(l, now, &c)
		batch := make([]*Timer, c.count)
		for op, i := addressOf(c.first), int(c.count)-1; i >= 0; i-- {
			batch[i] = at[Timer](op) // an op is the first member of its timer
			op = at[Op](op).Next
		}
		fired = append(fired, batch...)
	}
	return fired
}

// Close closes the wheel and counts what it cancelled.
func (w *Wheel) Close(l Lane) uint64 {
	var c chain
	w.close(l, &c)
	return c.count
}

// InitQueue gives a worker its rings.
func (w *WorkerMemory) InitQueue(m Memory) bool { return w.initQueue(m) }

// FreeQueue takes them back.
func (w *WorkerMemory) FreeQueue(m Memory) { w.freeQueue(m) }

// FireAsMonitor fires what is due, as the monitor does when every worker is held up.
func (r *Runtime) FireAsMonitor() { r.fire(true) }

// PollTurn is the monitor's turn at the poller.
func (r *Runtime) PollTurn() { r.pollTurn(&r.monitorPoll, &r.shared.IOEvents, true) }

// GiveAway does for a worker whose owner is not at its queue what that one does before it leaves.
func (r *Runtime) GiveAway(i int) bool {
	w := &worker{runtime: r, shared: r.shared.Worker(i)}
	return w.giveAway()
}
