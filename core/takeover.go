package core

// A worker that stays in one op holds nothing that others could not take, but it takes a place: too few workers are left. The monitor, who
// sees that, lets another worker begin, and asks one to leave when the held-up one is back. The workers below WorkerCount are always there;
// the places above it are for replacements, which come and go:
//
//	absent --monitor--> starting --worker--> running <--monitor--> asked --worker--> cached --worker, not wanted for long--> absent
//	                       ^                                                            |
//	                       +--------------------------monitor---------------------------+     cached --end--> dismissed
//
// Every step is a compare-and-swap of Life, so who is late finds that his step is not his any more. A worker leaves with an empty queue: what is
// left in it goes to another first, and the last look and the step to cached are made inside its queue section. Who gives looks at Life
// inside the other's section, and gives only to one that runs. So nothing is ever queued where nobody is. A wheel stays where it is, and is
// advanced by anybody; Active covers it until it is empty. Model: docs/models/takeover.pml.

// replace lets one more worker run. Monitor only.
func (r *Runtime) replace() {
	since := r.shared.ReplaceSince.Load()
	places := int(r.shared.Begun.Load())
	for i := int(r.shared.WorkerCount); i < places; i++ { // one that has not left yet
		if r.shared.Worker(i).Life.CompareAndSwap(LifeAsked, LifeRunning) {
			return
		}
	}
	for i := int(r.shared.WorkerCount); i < places; i++ {
		if w := r.shared.Worker(i); w.Life.Load() == LifeCached && r.enlist(w, LifeCached, since) {
			r.lane.Rouse(w)
			return
		}
	}
	for i := int(r.shared.WorkerCount); i < int(r.shared.WorkerMax); i++ {
		if i == places && !r.newPlace(i) {
			break
		}
		w := r.shared.Worker(i)
		if w.Life.Load() != LifeAbsent {
			continue
		}
		if !r.enlist(w, LifeAbsent, since) {
			return // stopped meanwhile
		}
		if r.add(i) == nil {
			return
		}
		r.mu.Lock()
		w.Life.Store(LifeAbsent)
		r.live--
		r.mu.Unlock()
		r.shared.Replacements.Add(^uint64(0))
		break
	}
	r.shared.Refused.Add(1)
	r.shared.RefusedAt.Store(r.lane.Now())
}

// newPlace begins a place that was never used.
func (r *Runtime) newPlace(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beginPlace(i, r.shared.ID.Load(), r.stopping)
}

// enlist makes a worker one of those that live, before its thread runs. False when there is no runtime left to run for, or no thread there.
func (r *Runtime) enlist(w *WorkerMemory, from uint32, since int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || !w.Life.CompareAndSwap(from, LifeStarting) {
		return false
	}
	r.live++
	w.ReplacesSince.Store(since)
	if w.Index >= r.shared.Active.Load() {
		r.shared.Active.Store(w.Index + 1)
	}
	r.shared.Replacements.Add(1)
	return true
}

// begins is a worker's first step, at the beginning of its thread and after it was cached.
func (w *worker) begins() {
	w.shared.Life.CompareAndSwap(LifeStarting, LifeRunning)
	if since := w.shared.ReplacesSince.Swap(0); since != 0 {
		took := w.runtime.lane.Now() - since
		w.shared.Recoveries.Add(1)
		w.shared.RecoveryTotal.Add(took)
		w.shared.RecoveryLongest.Store(max(took, w.shared.RecoveryLongest.Load()))
	}
}

// retire leaves, if nobody minds: the worker's queue goes to others, and the thread rests until it is wanted again. It returns false when the
// thread is to end.
func (w *worker) retire() bool {
	if !w.giveAway() || !w.leave() {
		return true
	}
	if !w.runtime.lane.Rest(w.shared) {
		return false
	}
	w.begins()
	return true
}

// leave takes the step from asked to cached. False when it is not to be taken: something came into the queue, or the worker is wanted again.
func (w *worker) leave() bool {
	r := w.runtime
	r.mu.Lock()
	defer r.mu.Unlock()
	w.shared.Enter(r.lane)
	defer w.shared.Leave()
	if w.shared.Length() != 0 || !w.shared.Life.CompareAndSwap(LifeAsked, LifeCached) {
		return false
	}
	r.live--
	return true
}

// giveAway moves all that is queued here to workers that make progress. False when that did not work out: then the worker goes on, and its
// next look at the clock tries again.
func (w *worker) giveAway() bool {
	r := w.runtime
	var gift [lootMax]uint64
	places := int(r.shared.Active.Load())
	for w.shared.Length() != 0 {
		w.shared.Enter(r.lane)
		n := 0
		for ; n < len(gift); n++ {
			if gift[n] = w.shared.Take(); gift[n] == 0 {
				break
			}
		}
		w.shared.Leave()
		given := false
		for i := 0; i < places && !given; i++ {
			other := r.shared.Worker(i)
			given = other != w.shared && other.Life.Load() == LifeRunning && other.Stalled.Load() != other.Ticks.Load() &&
				other.Accept(r.lane, r.memory, gift[:n])
			if given {
				r.lane.Wake(r.shared, other) // after the queue: against its second look before it sleeps
			}
		}
		if !given {
			w.shared.Enter(r.lane)
			for i := n - 1; i >= 0; i-- {
				w.shared.Put(r.memory, gift[i])
			}
			w.shared.Leave()
			return false
		}
	}
	return true
}

// dismiss lets cached threads end. Under mu, when closed is set: nobody leaves any more, and none is wanted again. Not sooner: an op that
// blocks in the drain may wait for one that is queued, and the cached worker may be the only one that there may be beside it.
func (r *Runtime) dismiss() {
	for i := range int(r.shared.Begun.Load()) {
		if w := r.shared.Worker(i); w.Life.CompareAndSwap(LifeCached, LifeDismissed) {
			r.lane.Rouse(w)
		}
	}
}
