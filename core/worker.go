package core

// worker is the Go side of one worker thread.
type worker struct {
	runtime *Runtime
	shared  *WorkerMemory // this worker's place
	poll    poll
	rest    int64  // ns until the next look of a worker that has drained its part
	rested  uint64 // ops that it had run at the last one
	_       [64]byte
}

// RunWorker is the life of worker i: the thread that the lane's starter made for it calls this once, and ends when it returns.
func (r *Runtime) RunWorker(i int) {
	w := &worker{runtime: r, shared: r.shared.Worker(i), rest: restMin}
	w.poll.init()
	w.begins()
	for {
		w.shared.Crossings.Add(1)
		switch r.lane.Run(w.shared) {
		case ReasonTimers:
			r.fire(false)
		case ReasonPoll:
			r.pollTurn(&w.poll, &w.shared.IOEvents, false)
		case ReasonRetire:
			if !w.retire() {
				return
			}
		case ReasonStop:
			if r.drained(w) {
				r.workerEnds(w)
				return
			}
		}
	}
}

// fire fires every timer that is due, of all workers, so that nobody's timers wait for a worker that is held up. A worker drains what is fired
// itself, and needs wake nobody. The monitor must, although no worker was asleep when it looked: one may have gone to sleep since.
func (r *Runtime) fire(wake bool) {
	now := r.lane.Now()
	for i := range int(r.shared.Active.Load()) {
		wheel := &r.shared.Worker(i).Wheel
		for done := false; !done && wheel.Earliest.Load() <= now; {
			var fired chain
			done = wheel.advance(r.lane, now, &fired)
			r.injectChain(&fired, wake)
		}
	}
}
