package core

// lootMax bounds a steal. Half of a longer queue takes another steal, by which time others may have come for it.
const lootMax = 512

// worker is the Go side of one worker thread.
type worker struct {
	runtime *Runtime
	shared  *WorkerMemory // this worker's place
	victim  int           // where the next search begins
	poll    poll
	rest    uint32 // spins of the next pause of a worker that has drained its part
	rested  uint64 // ops that it had run at the last one
	loot    [lootMax]uint64
	_       [64]byte
}

// RunWorker is the life of worker i: the thread that the lane's starter made for it calls this once, and ends when it returns.
func (r *Runtime) RunWorker(i int) {
	w := &worker{runtime: r, shared: r.shared.Worker(i), victim: i, rest: restPause}
	w.poll.init()
	w.begins()
	for futile := uint32(0); ; {
		w.shared.Crossings.Add(1)
		reason := r.lane.Run(w.shared)
		if reason == ReasonSteal && !w.stealPatiently(&futile) {
			continue
		}
		futile = 0
		switch reason {
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

// stealTries is how often a steal is tried before the lane looks for other work: enough to outlast a victim that queues op after op.
const stealTries = 8

// stealPatiently tries a few times, for the victim may be inside its queue section, or others be faster. Each try in a row gives them more time.
func (w *worker) stealPatiently(futile *uint32) bool {
	for range stealTries {
		if w.steal() {
			return true
		}
		*futile++
		w.runtime.lane.Pause(min(*futile*16, restPause))
	}
	return false
}

// steal takes half of the queue of the next worker that has a backlog.
func (w *worker) steal() bool {
	r := w.runtime
	places := int(r.shared.Active.Load())
	for range places {
		w.victim = (w.victim + 1) % places
		victim := r.shared.Worker(w.victim)
		if victim == w.shared || !victim.HasBacklog() {
			continue
		}
		n := victim.StealHalf(r.lane, w.loot[:])
		if n == 0 {
			continue
		}
		w.shared.Steals.Add(1)
		w.shared.OpsStolen.Add(uint64(n))
		// Newest first onto our stack: the oldest, likely the one with most work behind it, is taken next.
		w.shared.Enter(r.lane)
		for i := n - 1; i >= 0; i-- {
			w.shared.Put(r.memory, w.loot[i])
		}
		w.shared.Leave()
		if n > 1 {
			r.lane.WakeOne(r.shared)
		}
		return true
	}
	return false
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
