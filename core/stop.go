package core

// Stop begins the end of the runtime, as the package comment describes it, and returns at once; Wait waits for it. Any thread, any number of
// times.
func (r *Runtime) Stop() {
	if !r.shared.State.CompareAndSwap(StateRunning, StateStopping) {
		return
	}
	var cancelled chain
	for _, w := range r.workers {
		w.shared.Accepts.Store(0)
		w.shared.Wheel.close(r.lane, &cancelled)
	}
	r.injectChain(&cancelled, false)
	var waiting chain
	r.descriptors.cancelAll(&waiting)
	r.injectChain(&waiting, false)
	r.wakeAll()
}

// Wait returns when workers and monitor have ended. Not from a worker.
func (r *Runtime) Wait() { <-r.stopped }

// Destroy gives the memory back. Only after Wait, when the threads themselves are gone, and once. Counters can no longer be read.
func (r *Runtime) Destroy() {
	r.shared.ID.Store(0)
	r.descriptors.closeAll()
	r.poller.Close()
	r.free()
	r.shared.State.Store(StateFree)
}

// wakeAll makes every sleeping worker look again.
func (r *Runtime) wakeAll() {
	for _, w := range r.workers {
		r.lane.Wake(r.shared, w.shared)
	}
}

// restPause is how hard a worker that has drained its part pauses before it looks again: in the end of a runtime the others may still be in
// long ops, whose continuations it will help with.
const restPause = 1 << 10

// drained is called by a worker that found nothing while the runtime stops. It reports whether the runtime is at its end.
//
// The end is when every worker rests and the injection stack can be closed while it is empty. A resting worker's own queue is empty, and only
// a worker that does not rest can fill one; so when all rest, work can only come by injection, and the compare-and-swap either closes that
// door or finds the work.
func (r *Runtime) drained(w *worker) bool {
	r.mu.Lock()
	r.resting++
	if !r.closed && r.resting == len(r.workers) && r.shared.Inject.CompareAndSwap(0, InjectClosed) {
		r.closed = true
	}
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return true
	}
	r.lane.Pause(restPause)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return true
	}
	r.resting--
	return false
}

// workerEnds is the last thing that a worker does.
func (r *Runtime) workerEnds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running--; r.running == 0 {
		r.shared.State.Store(StateStopped)
		r.lane.EndWatch(r.shared)
	}
}
