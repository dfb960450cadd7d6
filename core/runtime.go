package core

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Config is what a runtime is made of.
type Config struct {
	Shared  *RuntimeMemory // zeroed or left by a runtime that has ended; stays the caller's
	ID      uint64         // handle; published in Shared.ID when everything is ready
	Workers int            // 1 to WorkersMax: the base, workers that are always there
	Most    int            // Workers to WorkersMax: with replacements for held-up workers; 0: none are made
	CPUs    int            // CPUs that this process may use
	Lane    Lane
	Memory  PageMemory
	Poller  Poller
	// Start starts a thread for each of the numbers 0 to workers-1, and one for MonitorThread. Thread i calls main(i) once, and ends when it
	// returns. On an error no main has been or will be called.
	Start func(workers int, main func(i int)) error
	// Add starts one more thread, which calls the same main with i. Only the monitor calls it, with an i whose last thread has no more to do.
	Add func(i int) error
	// Call calls a C function pointer with one argument, on the calling thread.
	Call func(function, argument uintptr)
	// Cancel, if there is one, is called once when the runtime begins to stop: it refuses and cancels what completes from threads that are
	// no workers. Each such op is counted in Shared.Pending until it was handed back.
	Cancel func()
	// Asymmetric tells that Lane.Barrier is a process-wide barrier.
	Asymmetric bool
}

// MonitorThread is the number of the monitor's thread.
const MonitorThread = -1

// Runtime is a set of workers with their timers, one poller and one monitor.
type Runtime struct {
	shared      *RuntimeMemory
	lane        Lane
	memory      PageMemory
	poller      Poller
	descriptors *DescriptorTable
	call        func(function, argument uintptr)
	cancel      func()
	add         func(i int) error
	monitorPoll poll // owner: monitor

	mu       sync.Mutex
	stopping bool          // guarded by mu: stop has begun, and knows all places that were begun until then
	resting  int           // guarded by mu: workers that have found nothing to drain
	closed   bool          // guarded by mu: nothing can come any more
	live     int           // guarded by mu: workers that have not ended and are not cached
	stopped  chan struct{} // closed by the monitor, who ends last
}

// New makes a runtime and starts its threads: Workers of them, and one more for the monitor. Errors: EInval, ENoMem, and what Start and the
// poller return; nothing is left behind then.
func New(c Config) (*Runtime, error) {
	if c.Most == 0 {
		c.Most = c.Workers
	}
	if c.Workers < 1 || c.Most < c.Workers || c.Most > WorkersMax {
		return nil, EInval
	}
	r := &Runtime{
		shared: c.Shared, lane: c.Lane, memory: c.Memory, poller: c.Poller, call: c.Call, add: c.Add, cancel: c.Cancel,
		live: c.Workers, stopped: make(chan struct{}),
	}
	r.monitorPoll.init()
	places := c.Shared.Workers
	c.Shared.reset()
	c.Shared.SleepUntil.Store(math.MinInt64)
	c.Shared.Pending.Store(1) // Stop's own
	c.Shared.WorkerCount, c.Shared.WorkerMax = uint32(c.Workers), uint32(c.Most)
	c.Shared.CPUs = uint32(c.CPUs)
	if c.Asymmetric {
		c.Shared.Asymmetric = 1
	}
	if places == 0 {
		block := c.Memory.Map(workersSize)
		if block == nil {
			return nil, ENoMem
		}
		places = uint64(uintptr(block))
	}
	c.Shared.Workers = places
	for i := range c.Workers {
		if !r.beginPlace(i, c.ID, false) {
			r.abandon()
			return nil, ENoMem
		}
		c.Shared.Worker(i).Life.Store(LifeRunning)
	}
	r.descriptors = newDescriptorTable(r)
	if err := c.Poller.Attach(r.descriptors, c.Shared); err != nil {
		r.abandon()
		return nil, err
	}
	c.Shared.State.Store(StateRunning)
	// From here on C finds the runtime: everything above is visible to whoever sees the handle (lane_runtime_of).
	c.Shared.ID.Store(c.ID)
	err := c.Start(c.Workers, func(i int) {
		if i == MonitorThread {
			r.RunMonitor()
		} else {
			r.RunWorker(i)
		}
	})
	if err != nil {
		c.Shared.ID.Store(0)
		c.Shared.State.Store(StateFree)
		c.Poller.Close()
		r.abandon()
		return nil, err
	}
	return r, nil
}

// abandon is the end of a runtime that has not begun. Who comes too late for the one before may hold it off for a moment.
func (r *Runtime) abandon() {
	r.shared.releaseEnd()
	for spins := uint32(0); r.shared.Pending.Load() != 0; spins++ {
		r.lane.Pause(spins)
	}
	r.free()
}

const checkIntervalInitial = 61 // ops; FAIR_INTERVAL of the lane

const workersSize = WorkersMax * unsafe.Sizeof(WorkerMemory{})

// beginPlace makes the next place for a worker usable; its memory is zeroed. False when there is no memory for its queue.
func (r *Runtime) beginPlace(i int, id uint64, stopping bool) bool {
	shared := r.shared.Worker(i)
	shared.Index = uint32(i)
	shared.Runtime = addressOf(r.shared)
	shared.RuntimeID = id
	if !stopping {
		shared.Accepts.Store(id)
	}
	shared.CheckInterval = checkIntervalInitial
	shared.Wheel.init(stopping)
	ok := shared.initQueue(r.memory)
	r.shared.Begun.Store(uint32(i) + 1) // also without its queue: free knows what there is
	if ok {
		r.shared.Active.Store(uint32(i) + 1)
	}
	return ok
}

// Descriptors is the runtime's table of descriptors.
func (r *Runtime) Descriptors() *DescriptorTable { return r.descriptors }

// Poller is the runtime's poller.
func (r *Runtime) Poller() Poller { return r.poller }

// Shared is the runtime's part of the memory that C sees.
func (r *Runtime) Shared() *RuntimeMemory { return r.shared }

// poll is a turn of the poller in the making. It is kept by who takes the turn, so that none allocates.
type poll struct {
	ready chain
	add   func(op *Op) // ready.add
}

func (p *poll) init() { p.add = p.ready.add }

// pollTurn gives the poller a turn without waiting, for a busy worker whose lane cannot do it without Go, or the monitor, who count the events in their own word.
func (r *Runtime) pollTurn(p *poll, events *atomic.Uint64, wake bool) {
	r.shared.PolledAt.Store(r.lane.Now())
	p.ready = chain{}
	events.Add(uint64(r.poller.Poll(0, p.add)))
	// The turn may have taken a wake that was meant for a keeper who went to sleep meanwhile (lane_polled in capi/poll.c). A poller does
	// not tell of wakes, and one too many is harmless.
	if r.shared.Keeper.Load() != 0 {
		r.poller.Wake()
	}
	r.injectChain(&p.ready, wake)
}

// RunMonitor is the life of the monitor's thread, the last to end. Watching is the lane's; what is left for Go is to stand in when every worker is held up.
func (r *Runtime) RunMonitor() {
	for {
		switch r.lane.Watch(r.shared) {
		case ReasonTimers:
			r.fire(true)
		case ReasonPoll:
			r.pollTurn(&r.monitorPoll, &r.shared.IOEvents, true)
		case ReasonReplace:
			r.replace()
		case ReasonStop:
			close(r.stopped)
			return
		}
	}
}

// free gives the shared memory back, but for the workers' places, which the next runtime in this slot uses. A thread that has handed over
// an op may still be on its way to wake a worker when that op has run, and led to the end of the runtime. Once it has taken an idle bit, Destroy waits
// for it. Before that, what it finds is a worker of nobody, or of that next runtime, for whom a wake too many is nothing.
func (r *Runtime) free() {
	for i := range int(r.shared.Begun.Load()) {
		r.shared.Worker(i).freeQueue(r.memory)
	}
	r.memory.Clear(unsafe.Pointer(at[byte](r.shared.Workers)), workersSize)
	r.shared.Active.Store(0)
	r.shared.Begun.Store(0)
}
