package core

import "unsafe"

// A worker's queue: a growing ring (Deque) that its owner uses as a stack at the newest end and thieves as a queue at the oldest; a word for the
// newest runnable of all (Next), which enters the ring when a newer one comes; and two rings that are first in first out for everybody: what was
// injected, and those who yielded. The owner takes from them in this order.
//
// All of it belongs to whoever is inside the queue section. It is a lock that is biased to the owner:
//
//	owner, enter:   Turn = 1; barrier; if Thief != 0: Turn = 0, wait for Thief == 0, again
//	owner, leave:   Turn = 0
//	thief, seize:   Thief 0 -> 1; process-wide barrier; wait for Turn == 0 (or give up: Thief = 0)
//	thief, release: Thief = 0
//
// Either the owner sees Thief or the thief sees Turn, since a barrier stands between store and load on both sides. On the C side the owner's
// barrier is the compiler's alone and the thief pays for both (membarrier), so an owner that nobody robs executes no locked instruction. The
// owner's section is a handful of instructions and runs no op: a worker whose op blocks is never inside it, and its queue can be stolen to the
// last op. docs/models/queue.pml checks it; capi/lane_internal.h is the owner's end in C, capi/steal.c the thief's.

const ringInitial = 1024 // runnables; 8 KiB, grown by doubling

// lootMax bounds a steal, and a gift. Half of a longer queue takes another steal, by which time others may have come for it.
const lootMax = 512

// seizeSpins bounds how long a thief waits for an owner that is inside its section: the section takes nanoseconds, so one that lasts longer
// means that the owner has lost its CPU, and another victim is the better choice.
const seizeSpins = 256

func (w *WorkerMemory) rings() [3]*Ring { return [3]*Ring{&w.Deque, &w.Injected, &w.Yielded} }

func (w *WorkerMemory) initQueue(m Memory) bool {
	for _, ring := range w.rings() {
		words := m.Alloc(ringInitial * 8)
		if words == nil {
			return false
		}
		ring.Words, ring.Mask = uint64(uintptr(words)), ringInitial-1
	}
	return true
}

func (w *WorkerMemory) freeQueue(m Memory) {
	for _, ring := range w.rings() {
		if ring.Words != 0 {
			m.Free(unsafe.Pointer(at[byte](ring.Words)))
			ring.Words = 0
		}
	}
}

func (r *Ring) length() int64 { return r.Tail.Load() - r.Head.Load() }

// Length tells how many runnables are queued. Outside the queue section it is a hint.
func (w *WorkerMemory) Length() (n int64) {
	for _, ring := range w.rings() {
		n += ring.length()
	}
	if w.Next.Load() != 0 {
		n++
	}
	return n
}

// HasBacklog tells whether another worker should take something: two runnables or more, or one behind a stalled op. A lone one of a worker
// that makes progress is left to it: taking it would cost more than running it.
func (w *WorkerMemory) HasBacklog() bool {
	n := w.Length()
	return n >= 2 || n == 1 && w.Stalled.Load() == w.Ticks.Load()
}

// Enter opens the owner's queue section. The swap of Turn is the barrier, too. Pairs with seize. Not a Store: under the race detector that is only
// a release on memory that is not Go's, and the load of Thief may then come first; the same goes for every other word of shared memory that
// is written before another is looked at.
func (w *WorkerMemory) Enter(l Lane) {
	w.Turn.Swap(1)
	for w.Thief.Load() != 0 {
		w.Turn.Store(0)
		for spins := uint32(0); w.Thief.Load() != 0; spins++ {
			l.Pause(spins)
		}
		w.Turn.Swap(1)
	}
}

// Leave closes the owner's queue section. Pairs with seize's load of Turn, which then sees what was done inside.
func (w *WorkerMemory) Leave() { w.Turn.Store(0) }

func (r *Ring) slot(i int64) *uint64 { return at[uint64](r.Words + uint64(i&r.Mask)*8) }

// put appends, growing the ring by doubling. Inside the queue section, so that no thief reads the old words and they can go at once.
func (r *Ring) put(m Memory, runnable uint64) {
	head, tail := r.Head.Load(), r.Tail.Load()
	if tail-head > r.Mask {
		size := (r.Mask + 1) * 2
		words := m.Alloc(uintptr(size) * 8)
		if words == nil {
			panic("weft: out of memory while a worker's queue grows")
		}
		grown := Ring{Words: uint64(uintptr(words)), Mask: size - 1}
		for i := head; i < tail; i++ {
			*grown.slot(i) = *r.slot(i)
		}
		m.Free(unsafe.Pointer(at[byte](r.Words)))
		r.Words, r.Mask = grown.Words, grown.Mask
	}
	*r.slot(tail) = runnable
	r.Tail.Store(tail + 1)
}

func (r *Ring) takeOldest() uint64 {
	head := r.Head.Load()
	if head == r.Tail.Load() {
		return 0
	}
	r.Head.Store(head + 1)
	return *r.slot(head)
}

func (r *Ring) takeNewest() uint64 {
	tail := r.Tail.Load()
	if tail == r.Head.Load() {
		return 0
	}
	r.Tail.Store(tail - 1)
	return *r.slot(tail - 1)
}

// Put queues a runnable as the newest and tells whether there was a newest already. Inside the queue section; so are the next three.
func (w *WorkerMemory) Put(m Memory, runnable uint64) (held bool) {
	older := w.Next.Swap(runnable)
	if older != 0 {
		w.Deque.put(m, older)
	}
	return older != 0
}

// PutBehind queues a runnable behind everything.
func (w *WorkerMemory) PutBehind(m Memory, runnable uint64) { w.Yielded.put(m, runnable) }

// Take takes the runnable that is the owner's next, or 0.
func (w *WorkerMemory) Take() uint64 {
	if next := w.Next.Swap(0); next != 0 {
		return next
	}
	if newest := w.Deque.takeNewest(); newest != 0 {
		return newest
	}
	if injected := w.Injected.takeOldest(); injected != 0 {
		return injected
	}
	return w.Yielded.takeOldest()
}

// TakeOldest takes from the old end of one of the three rings, or 0.
func (w *WorkerMemory) TakeOldest(r *Ring) uint64 { return r.takeOldest() }

// seize enters another worker's queue. Thieves exclude each other by the compare-and-swap; the barrier and the load of Turn pair with Enter
// (lane_enter in capi/lane_internal.h): without the barrier both could be inside, and a runnable would run twice.
func (w *WorkerMemory) seize(l Lane) bool {
	if !w.Thief.CompareAndSwap(0, 1) {
		return false
	}
	l.Barrier()
	for spins := uint32(0); w.Turn.Load() != 0; spins++ {
		if spins == seizeSpins {
			w.Thief.Store(0)
			return false
		}
		l.Pause(0)
	}
	return true
}

// release gives the queue back. Pairs with the owner's load of Thief, which then sees what was taken.
func (w *WorkerMemory) release() { w.Thief.Store(0) }

// StealHalf moves the older half of the first ring that holds something, or else the newest runnable, into loot, oldest first, and returns how
// many. At least one if there is any; at most len(loot).
func (w *WorkerMemory) StealHalf(l Lane, loot []uint64) (n int) {
	if !w.seize(l) {
		return 0
	}
	defer w.release()
	for _, ring := range w.rings() {
		if length := ring.length(); length != 0 {
			for want := min(int((length+1)/2), len(loot)); n < want; n++ {
				loot[n] = ring.takeOldest()
			}
			return n
		}
	}
	if next := w.Next.Swap(0); next != 0 {
		loot[0] = next
		return 1
	}
	return 0
}

// Steal takes half of the queue of the next worker that has a backlog, for a lane in Go. place is where the last search ended. backlog tells
// that there was one, stolen that it was got at. The twin of lane_steal in capi/steal.c, without its pace.
func (w *WorkerMemory) Steal(l Lane, m Memory, place *int) (stolen, backlog bool) {
	var loot [lootMax]uint64
	r := w.RuntimeMemory()
	places := int(r.Active.Load())
	for range places {
		*place = (*place + 1) % places
		victim := r.Worker(*place)
		if victim == w || !victim.HasBacklog() {
			continue
		}
		backlog = true
		n := victim.StealHalf(l, loot[:])
		if n == 0 {
			continue
		}
		w.Steals.Add(1)
		w.OpsStolen.Add(uint64(n))
		// Newest first onto our stack: the oldest, likely the one with most work behind it, is taken next.
		w.Enter(l)
		for i := n - 1; i >= 0; i-- {
			w.Put(m, loot[i])
		}
		w.Leave()
		if n > 1 {
			l.WakeOne(r)
		}
		return true, true
	}
	return false, backlog
}

// Accept queues runnables, first in first out, at a worker that runs, from another thread. False when it does not run, or is inside its section
// for long. The caller wakes it.
func (w *WorkerMemory) Accept(l Lane, m Memory, runnables []uint64) bool {
	if !w.seize(l) {
		return false
	}
	defer w.release()
	if w.Life.Load() != LifeRunning {
		return false
	}
	for _, runnable := range runnables {
		w.Injected.put(m, runnable)
	}
	return true
}
