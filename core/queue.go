package core

import "unsafe"

// A worker's queue: a growing ring that its owner uses as a stack at the newest end (Bottom) and thieves as a queue at the oldest (Top); a word
// for the newest runnable of all (Next), which enters the ring when a newer one comes; and a second ring, first in first out, for those who yielded.
//
// Both belong to whoever is inside the queue section. It is a lock that is biased to the owner:
//
//	owner, enter:   Turn = 1; barrier; if Thief != 0: Turn = 0, wait for Thief == 0, again
//	owner, leave:   Turn = 0
//	thief, seize:   Thief 0 -> 1; process-wide barrier; wait for Turn == 0 (or give up: Thief = 0)
//	thief, release: Thief = 0
//
// Either the owner sees Thief or the thief sees Turn, since a barrier stands between store and load on both sides. On the C side the owner's
// barrier is the compiler's alone and the thief pays for both (membarrier), so an owner that nobody robs executes no locked instruction. The
// owner's section is a handful of instructions and runs no op: a worker whose op blocks is never inside it, and its queue can be stolen to the
// last op. docs/models/queue.pml checks it; capi/lane_internal.h is the owner's end in C.

const ringInitial = 1024 // runnables; 8 KiB, grown by doubling

// seizeSpins bounds how long a thief waits for an owner that is inside its section: the section takes nanoseconds, so one that lasts longer
// means that the owner has lost its CPU, and another victim is the better choice.
const seizeSpins = 256

func (w *WorkerMemory) initQueue(m Memory) bool {
	ring, yields := m.Alloc(ringInitial*8), m.Alloc(ringInitial*8)
	if ring == nil || yields == nil {
		return false
	}
	w.Ring, w.Mask = uint64(uintptr(ring)), ringInitial-1
	w.YieldRing, w.YieldMask = uint64(uintptr(yields)), ringInitial-1
	return true
}

func (w *WorkerMemory) freeQueue(m Memory) {
	for _, ring := range []*uint64{&w.Ring, &w.YieldRing} {
		if *ring != 0 {
			m.Free(unsafe.Pointer(at[byte](*ring)))
			*ring = 0
		}
	}
}

// Length tells how many runnables are queued. Outside the queue section it is a hint.
func (w *WorkerMemory) Length() int64 {
	n := w.Bottom.Load() - w.Top.Load() + w.YieldTail.Load() - w.YieldHead.Load()
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

// Enter opens the owner's queue section. Go's atomics are sequentially consistent, so the store of Turn is the barrier, too. Pairs with seize.
func (w *WorkerMemory) Enter(l Lane) {
	w.Turn.Store(1)
	for w.Thief.Load() != 0 {
		w.Turn.Store(0)
		for spins := uint32(0); w.Thief.Load() != 0; spins++ {
			l.Pause(spins)
		}
		w.Turn.Store(1)
	}
}

// Leave closes the owner's queue section. Pairs with seize's load of Turn, which then sees what was done inside.
func (w *WorkerMemory) Leave() { w.Turn.Store(0) }

func slot(ring uint64, i, mask int64) *uint64 { return at[uint64](ring + uint64(i&mask)*8) }

func grow(m Memory, ring *uint64, mask *int64, first, end int64) {
	size := (*mask + 1) * 2
	grown := m.Alloc(uintptr(size) * 8)
	if grown == nil {
		panic("weft: out of memory while a worker's queue grows")
	}
	for i := first; i < end; i++ {
		*slot(uint64(uintptr(grown)), i, size-1) = *slot(*ring, i, *mask)
	}
	m.Free(unsafe.Pointer(at[byte](*ring)))
	*ring, *mask = uint64(uintptr(grown)), size-1
}

// Put queues a runnable at the newest end and tells whether there was one already. Inside the queue section.
func (w *WorkerMemory) Put(m Memory, runnable uint64) (held bool) {
	older := w.Next.Swap(runnable)
	if older != 0 {
		w.putInRing(m, older)
	}
	return older != 0
}

func (w *WorkerMemory) putInRing(m Memory, runnable uint64) {
	bottom, top := w.Bottom.Load(), w.Top.Load()
	if bottom-top > w.Mask {
		grow(m, &w.Ring, &w.Mask, top, bottom)
	}
	*slot(w.Ring, bottom, w.Mask) = runnable
	w.Bottom.Store(bottom + 1)
}

// PutBehind queues a runnable behind everything. Inside the queue section.
func (w *WorkerMemory) PutBehind(m Memory, runnable uint64) {
	tail, head := w.YieldTail.Load(), w.YieldHead.Load()
	if tail-head > w.YieldMask {
		grow(m, &w.YieldRing, &w.YieldMask, head, tail)
	}
	*slot(w.YieldRing, tail, w.YieldMask) = runnable
	w.YieldTail.Store(tail + 1)
}

// TakeNewest takes from the owner's end, 0 when the deque is empty. Inside the queue section; so are the next two.
func (w *WorkerMemory) TakeNewest() uint64 {
	if next := w.Next.Swap(0); next != 0 {
		return next
	}
	bottom := w.Bottom.Load()
	if bottom == w.Top.Load() {
		return 0
	}
	w.Bottom.Store(bottom - 1)
	return *slot(w.Ring, bottom-1, w.Mask)
}

// TakeOldest takes from the thieves' end.
func (w *WorkerMemory) TakeOldest() uint64 {
	top := w.Top.Load()
	if top == w.Bottom.Load() {
		return 0
	}
	w.Top.Store(top + 1)
	return *slot(w.Ring, top, w.Mask)
}

// TakeYielded takes the one that yielded first.
func (w *WorkerMemory) TakeYielded() uint64 {
	head := w.YieldHead.Load()
	if head == w.YieldTail.Load() {
		return 0
	}
	w.YieldHead.Store(head + 1)
	return *slot(w.YieldRing, head, w.YieldMask)
}

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

// StealHalf moves the older half of the ring, or when that is empty of those who yielded, or else the newest, into loot, oldest first, and
// returns how many. At least one if there is any; at most len(loot).
func (w *WorkerMemory) StealHalf(l Lane, loot []uint64) int {
	if !w.seize(l) {
		return 0
	}
	n := 0
	take, length := w.TakeOldest, w.Bottom.Load()-w.Top.Load()
	if length == 0 {
		take, length = w.TakeYielded, w.YieldTail.Load()-w.YieldHead.Load()
	}
	if length == 0 && w.Next.Load() != 0 {
		take, length = w.TakeNewest, 1
	}
	for want := min(int((length+1)/2), len(loot)); n < want; n++ {
		loot[n] = take()
	}
	w.release()
	return n
}
