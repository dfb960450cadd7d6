package core

// Inject hands a chain of ops to the runtime from any thread: first is the newest and runs last, the chain is linked by Op.Next. With wake, an
// idle worker is woken if nobody is on its way. It returns EStopped once the runtime has drained; the chain is then still the caller's. Twin:
// lane_inject in capi/lane.c, with the argument.
func (r *Runtime) Inject(first, last *Op, wake bool) error {
	for {
		head := r.shared.Inject.Load()
		if head == InjectClosed {
			return EStopped
		}
		last.Next = head
		if r.shared.Inject.CompareAndSwap(head, addressOf(first)) {
			if wake && head == 0 && r.shared.Spinning.Load() == 0 {
				r.lane.WakeOne(r.shared)
			}
			return nil
		}
	}
}

// Schedule queues an op by injection: the Go twin of weft_schedule for a thread that is no worker. Op.Run is set and the memory is the
// runtime's until the op begins. It returns nil or EStopped.
func (r *Runtime) Schedule(op *Op) error {
	if r.shared.State.Load() != StateRunning {
		return EStopped
	}
	return r.Inject(op, op, true)
}

// finish queues an accepted op that its canceller holds. When no worker is left, it runs here: see step 5 of Stop in the package comment.
func (r *Runtime) finish(op *Op) {
	if r.Inject(op, op, true) != nil {
		r.call(op.Run, uintptr(addressOf(op)))
	}
}

// injectChain queues what a worker or the monitor has made ready, in the same way.
func (r *Runtime) injectChain(c *chain, wake bool) {
	if c.first == nil {
		return
	}
	if r.Inject(c.first, c.last, wake) == nil {
		return
	}
	for op := c.first; op != nil; {
		next := at[Op](op.Next)
		r.call(op.Run, uintptr(addressOf(op)))
		op = next
	}
}

// drainBatch is how many runnables are moved in one queue section; DRAIN_BATCH in capi/lane.c.
const drainBatch = 64

// Drain moves everything injected to a worker's queue of such, for a lane in Go. Owner only. It returns how many.
func (r *RuntimeMemory) Drain(l Lane, m Memory, w *WorkerMemory) (count uint64) {
	head := r.Inject.Load()
	for ; ; head = r.Inject.Load() {
		if head <= InjectClosed {
			return 0
		}
		if r.Inject.CompareAndSwap(head, 0) {
			break
		}
	}
	oldest := uint64(0)
	for op := head; op != 0; count++ { // the stack is newest first
		older := at[Op](op).Next
		at[Op](op).Next = oldest
		oldest, op = op, older
	}
	for op := oldest; op != 0; {
		w.Enter(l)
		for i := 0; i < drainBatch && op != 0; i++ {
			newer := at[Op](op).Next
			w.Injected.put(m, op)
			op = newer
		}
		w.Leave()
	}
	w.InjectedCount.Add(count)
	return count
}
