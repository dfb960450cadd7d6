package core

// Stop begins the end of the runtime, as the package comment describes it, and returns at once; Wait waits for it. Any thread, any number of
// times.
func (r *Runtime) Stop() {
	if !r.shared.State.CompareAndSwap(StateRunning, StateStopping) {
		return
	}
	r.mu.Lock()
	r.stopping = true
	begun := int(r.shared.Begun.Load())
	r.mu.Unlock()
	var cancelled chain
	for i := range begun {
		w := r.shared.Worker(i)
		w.Accepts.Store(0)
		w.Wheel.close(r.lane, &cancelled)
	}
	r.injectChain(&cancelled, false)
	var waiting chain
	r.descriptors.cancelAll(&waiting)
	r.injectChain(&waiting, false)
	if r.cancel != nil {
		r.cancel()
	}
	r.shared.releaseEnd()
	r.wakeAll()
}

// Wait returns when workers and monitor have ended. Not from a worker.
func (r *Runtime) Wait() { <-r.stopped }

// Destroy gives the memory back. Only after Wait, when the threads themselves are gone, and once. Counters can no longer be read.
func (r *Runtime) Destroy() {
	r.shared.ID.Store(0)
	// The workers have ended, so nobody takes an idle bit any more. Who has one may be about to wake the poller.
	for spins := uint32(0); r.shared.Wakers.Load() != 0; spins++ {
		r.lane.Pause(spins)
	}
	r.descriptors.closeAll()
	r.poller.Close()
	r.free()
	r.shared.State.Store(StateFree)
}

// holdEnd puts the end of a runtime off, for a thread that may be no worker of it and has an op in its hands; false when the end has come. capi/end.h.
func (r *RuntimeMemory) holdEnd() bool {
	for {
		pending := r.Pending.Load()
		if pending == 0 {
			return false
		}
		if r.Pending.CompareAndSwap(pending, pending+1) {
			return true
		}
	}
}

// releaseEnd is called when the op was handed back.
func (r *RuntimeMemory) releaseEnd() { r.Pending.Add(^uint64(0)) }

// wakeAll makes every sleeping worker look again.
func (r *Runtime) wakeAll() {
	for i := range int(r.shared.Active.Load()) {
		r.lane.Wake(r.shared, r.shared.Worker(i))
	}
}

// How long, in ns, a worker that has drained its part waits until it looks again: in the end of a runtime the others, and blocking calls, may still be at
// something long, whose continuations it will help with. The longer that takes, the more seldom it looks; and the more workers there are, the more seldom each:
// a look takes one of Go's processors, and where ops block there may be hundreds.
const (
	restMin   = 50_000
	restMax   = 2_000_000 // for up to restShare workers; proportionally longer for more
	restShare = 16
)

// drained is called by a worker that found nothing while the runtime stops. It reports whether the runtime is at its end.
//
// The end is when every worker rests, all queues are empty, nobody else will hand back an op, and the injection stack can be closed while it is empty. A worker rests with
// an empty queue, but one that was about to leave when the stop began may give him its own (giveAway) before it rests itself. Only
// a worker that does not rest can fill a queue; so when all rest, work can only come by injection. Pending, read as 0, stays 0, and whoever was counted in it has
// injected his op before; so the compare-and-swap either closes that door or finds the work. Models: docs/models/stop.pml, takeover.pml.
//
// A worker goes on resting while it looks whether there is anything to do. If it went back to the lane each time, hundreds of them, each waiting its turn at one of
// Go's processors on the way, would hardly ever rest all at once.
//
// Where the system reports completion, ops are under way that nobody waits for; they are polled for here. When none is left, none can
// come (IOLane.Start), so it does not matter that others go on after the look.
func (r *Runtime) drained(w *worker) bool {
	if ran := w.shared.Ticks.Load(); ran != w.rested {
		w.rested, w.rest = ran, restMin
	}
	busy := r.collect(w)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.resting++; !r.closed; {
		if !busy && r.resting == r.live && r.shared.Pending.Load() == 0 && !r.queued() && r.shared.Inject.CompareAndSwap(0, InjectClosed) {
			r.closed = true
			r.dismiss()
			r.lane.EndLinger(r.shared)
			break
		}
		span := min(w.rest, restMax*(1+int64(r.live)/restShare))
		w.rest = 2 * span
		r.mu.Unlock()
		r.lane.Linger(r.shared, span)
		busy = r.collect(w)
		r.mu.Lock()
		// Closed, there is nothing. What is pending may have to be collected by a worker.
		if !r.closed && (busy || r.shared.Pending.Load() != 0 || r.shared.Inject.Load() != 0 || r.queued()) {
			r.resting--
			return false
		}
	}
	return true
}

// collect polls for what is under way where the system reports completion, and tells whether anything is.
// What it takes is still under way, or pending, until it has run; so one who rests may take it.
func (r *Runtime) collect(w *worker) bool {
	if !r.descriptors.completes {
		return false
	}
	r.pollTurn(&w.poll, &w.shared.IOEvents, false)
	return r.descriptors.busy()
}

// queued tells whether anything is in any worker's queue. When all rest, what they have put there was put there before they did, under mu.
func (r *Runtime) queued() bool {
	for i := range int(r.shared.Active.Load()) {
		if r.shared.Worker(i).Length() != 0 {
			return true
		}
	}
	return false
}

// workerEnds is the last thing that a worker does.
func (r *Runtime) workerEnds(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.shared.Index >= r.shared.WorkerCount {
		w.shared.Life.Store(LifeDismissed)
	}
	if r.live--; r.live == 0 {
		r.shared.State.Store(StateStopped)
		r.lane.EndWatch(r.shared)
	}
}
