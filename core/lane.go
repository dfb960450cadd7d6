package core

import "unsafe"

// Lane is what core needs from the code that runs ops. The C lane (capi) and purelane implement it.
type Lane interface {
	// Run enters the lane on the worker's own thread and runs ops until there is something that only Go can do.
	Run(w *WorkerMemory) Reason
	// Watch is the monitor's loop, on the monitor's own thread. It returns ReasonTimers or ReasonPoll when those are overdue and every worker
	// is held up in an op, ReasonReplace when a worker is to take the place of one that is held up, and ReasonStop after EndWatch.
	Watch(r *RuntimeMemory) Reason
	// EndWatch makes Watch return ReasonStop. Any thread.
	EndWatch(r *RuntimeMemory)
	// Wake makes an idle worker look again; one that is not idle is left alone. Any thread.
	Wake(r *RuntimeMemory, w *WorkerMemory)
	// WakeOne wakes one idle worker, if there is one and none is on its way already. Any thread.
	WakeOne(r *RuntimeMemory)
	// Rest keeps the thread of a cached worker, on that thread. It returns true when the worker is to run again (LifeStarting), and false when
	// the thread is to end: after stop (LifeDismissed), or when nobody wanted it for long, and Life is LifeAbsent then.
	Rest(w *WorkerMemory) bool
	// Rouse ends the Rest of a worker whose Life the caller has changed. Any thread.
	Rouse(w *WorkerMemory)
	// Linger waits until EndLinger, but at most for so many ns.
	Linger(r *RuntimeMemory, ns int64)
	// EndLinger ends all Lingers, also of those who come later. Any thread.
	EndLinger(r *RuntimeMemory)
	// Barrier is a full memory barrier in every worker's thread; see queue.go.
	Barrier()
	// Pause waits a moment for another thread's short section; longer with more spins.
	Pause(spins uint32)
	// Now tells the monotonic clock in nanoseconds.
	Now() int64
}

// Memory gives out the memory that C and Go share: zeroed, aligned to 128 bytes, not Go's.
type Memory interface {
	// Alloc returns nil when there is none.
	Alloc(bytes uintptr) unsafe.Pointer
	Free(p unsafe.Pointer)
}

// PageMemory is Memory for large pieces, too.
type PageMemory interface {
	Memory
	// Map gives out whole pages, which cost nothing until they are touched; nil when there are none.
	Map(bytes uintptr) unsafe.Pointer
	// Clear zeroes them and lets go of the memory behind them. The addresses stay.
	Clear(p unsafe.Pointer, bytes uintptr)
}
