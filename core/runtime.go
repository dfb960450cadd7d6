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
	Workers int            // 1 to WorkersMax
	CPUs    int            // CPUs that this process may use
	Lane    Lane
	Memory  Memory
	Poller  Poller
	// Start starts count threads; thread i calls main(i) once, and ends when it returns. On an error no main has been or will be called.
	Start func(count int, main func(i int)) error
	// Call calls a C function pointer with one argument, on the calling thread.
	Call func(function, argument uintptr)
	// Cancel, if there is one, is called once when the runtime begins to stop: it refuses and cancels what completes from threads that are
	// no workers. Each such op is counted in Shared.Pending until it was handed back.
	Cancel func()
	// Asymmetric tells that Lane.Barrier is a process-wide barrier.
	Asymmetric bool
}

// Runtime is a set of workers with their timers, one poller and one monitor.
type Runtime struct {
	shared      *RuntimeMemory
	lane        Lane
	memory      Memory
	poller      Poller
	descriptors *DescriptorTable
	call        func(function, argument uintptr)
	cancel      func()
	workers     []*worker
	monitorPoll poll // owner: monitor

	mu      sync.Mutex
	resting int           // guarded by mu: workers that have found nothing to drain
	closed  bool          // guarded by mu: nothing can come any more
	running int           // guarded by mu: workers that have not ended
	stopped chan struct{} // closed by the monitor, who ends last
}

// New makes a runtime and starts its threads: Workers of them, and one more for the monitor. Errors: EInval, ENoMem, and what Start and the
// poller return; nothing is left behind then.
func New(c Config) (*Runtime, error) {
	if c.Workers < 1 || c.Workers > WorkersMax {
		return nil, EInval
	}
	r := &Runtime{
		shared: c.Shared, lane: c.Lane, memory: c.Memory, poller: c.Poller, call: c.Call, cancel: c.Cancel,
		running: c.Workers, stopped: make(chan struct{}),
	}
	r.monitorPoll.init()
	*c.Shared = RuntimeMemory{}
	c.Shared.SleepUntil.Store(math.MinInt64)
	c.Shared.Pending.Store(1) // Stop's own
	c.Shared.WorkerCount = uint32(c.Workers)
	c.Shared.CPUs = uint32(c.CPUs)
	if c.Asymmetric {
		c.Shared.Asymmetric = 1
	}
	block := c.Memory.Alloc(uintptr(c.Workers) * unsafe.Sizeof(WorkerMemory{}))
	if block == nil {
		return nil, ENoMem
	}
	c.Shared.Workers = uint64(uintptr(block))
	for i := range c.Workers {
		shared := c.Shared.Worker(i)
		shared.Index = uint32(i)
		shared.Runtime = addressOf(c.Shared)
		shared.RuntimeID = c.ID
		shared.Accepts.Store(c.ID)
		shared.CheckInterval = checkIntervalInitial
		shared.Wheel.init()
		w := &worker{runtime: r, shared: shared, victim: i, rest: restPause}
		w.poll.init()
		r.workers = append(r.workers, w)
		if !shared.initQueue(c.Memory) {
			r.free()
			return nil, ENoMem
		}
	}
	r.descriptors = newDescriptorTable(r)
	if err := c.Poller.Attach(r.descriptors, c.Shared); err != nil {
		r.free()
		return nil, err
	}
	c.Shared.State.Store(StateRunning)
	// From here on C finds the runtime: everything above is visible to whoever sees the handle (lane_runtime_of).
	c.Shared.ID.Store(c.ID)
	err := c.Start(c.Workers+1, func(i int) {
		if i == c.Workers {
			r.RunMonitor()
		} else {
			r.RunWorker(i)
		}
	})
	if err != nil {
		c.Shared.ID.Store(0)
		c.Shared.State.Store(StateFree)
		c.Poller.Close()
		r.free()
		return nil, err
	}
	return r, nil
}

const checkIntervalInitial = 61 // ops; FAIR_INTERVAL of the lane

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
	// The turn may have taken a wake that was meant for a keeper who went to sleep meanwhile (lane_poll in capi/poll_linux.c). A poller does
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
			r.fire()
		case ReasonPoll:
			r.pollTurn(&r.monitorPoll, &r.shared.IOEvents, true)
		case ReasonStop:
			close(r.stopped)
			return
		}
	}
}

// free gives the shared memory back. No thread uses it any more.
func (r *Runtime) free() {
	for _, w := range r.workers {
		w.shared.freeQueue(r.memory)
	}
	if r.descriptors != nil {
		r.descriptors.free()
	}
	r.memory.Free(unsafe.Pointer(at[byte](r.shared.Workers)))
	r.shared.Workers, r.shared.WorkerCount = 0, 0
}
