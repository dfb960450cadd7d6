package core

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// This file defines the memory that C and Go both touch. capi/lane.h is its twin; a test in capi compares every
// offset. The memory is never Go's: it comes from Memory, is zeroed, never moves, and lives as long as its runtime. It
// holds no Go pointers, only addresses as integers.
//
// "turn" marks fields that are touched only inside the worker's queue section: by the owner between enter and leave, or
// by a thief that holds the queue (queue.go). "lock" marks fields under the wheel's lock (wheel.go).

// Limits and units of the shared memory.
const (
	WorkersMax       = 256
	WheelLevels      = 9
	WheelSlots       = 64
	WheelTickShift   = 14 // a tick is 2^14 ns: finer than the wake of a thread
	ChunkDescriptors = 1024
	ChunksMax        = 1024
)

// States of a runtime.
const (
	StateFree uint32 = iota
	StateRunning
	StateStopping
	StateStopped
)

// Values of Worker.Park.
const (
	Awake uint32 = iota
	Announced
	Parked
	ParkedInPoller
	Notified
)

// Values of WorkerMemory.Life. A worker of the base is running for all its life; the others come and go, as takeover.go tells.
const (
	LifeAbsent    uint32 = iota // no thread
	LifeStarting                // by the monitor: a thread is on its way here
	LifeRunning                 // by the worker
	LifeAsked                   // by the monitor: leave, when your queue is empty
	LifeCached                  // by the worker: the thread waits to be wanted again
	LifeDismissed               // at the end: the cached thread ends
	LifeLeaving                 // by the worker: the thread ends, and absent is next
)

// InjectClosed stands in RuntimeMemory.Inject when nothing more is accepted.
const InjectClosed = uint64(1)

// Reason tells why the lane went back to Go.
type Reason uint32

const (
	ReasonTimers  Reason = iota + 1 // a timer is due somewhere
	ReasonPoll                      // nobody has polled for a while: every worker is held up, or cannot do it without Go
	ReasonStop                      // the runtime is stopping, and nothing is left here
	ReasonRetire                    // the monitor has asked this worker to leave
	ReasonReplace                   // to the monitor: a worker is held up, and another is to take its place
)

// Op is weft_op: a function to be called with the op's own address, and a link.
type Op struct {
	Run      uintptr // owner: caller
	Context  uintptr // owner: caller
	Next     uint64  // owner: whoever holds the op
	Reserved uint64
}

// Timer is weft_timer.
type Timer struct {
	Op       Op
	Status   int32 // result
	State    uint32
	Deadline int64 // ns
	Next     uint64
	Previous uint64
	Slot     uint32
	_        uint32
	Worker   uint64 // address of the WorkerMemory in whose wheel it is, or was
}

// IO is weft_io.
type IO struct {
	Op         Op
	Status     int32
	OSError    int32
	Count      uint64
	Accepted   uint64
	State      atomic.Uint32
	Kind       uint16
	Flags      uint16
	Descriptor uint64
	Data       uint64
	Length     uint64
	System     [4]uint64 // the Op that tries again; where the system reports completion, its own while it is at it: transfer.go
	Spare      [1]uint64
}

// Datagram is weft_datagram: the op that moves one.
type Datagram struct {
	IO        IO
	Peer      Endpoint
	Truncated uint32
	Reserved  uint32
	Address   [4]uint64 // the system's, where it reports completion: an address and, in the last 4 bytes, how long it is
}

// Wheel is lane_wheel: the timers of one worker.
type Wheel struct {
	Lock      atomic.Uint32 // 0 free, 1 held
	Closed    uint32        // lock: 1 once the runtime stops
	Earliest  atomic.Int64  // ns at which someone must advance; MaxInt64: never. Written under the lock, read by all
	Elapsed   int64         // lock: ticks that have been advanced over
	Pending   uint64        // lock: timers linked
	Started   uint64        // lock: statistics
	Fired     uint64        // lock: statistics
	Cancelled uint64        // lock: statistics
	Occupied  [WheelLevels]uint64
	Never     uint64 // lock: first timer without a deadline
	Slots     [WheelLevels * WheelSlots]uint64
	Minimum   [WheelLevels * WheelSlots]int64
}

// Ring is lane_ring: a growing ring of runnables. Old ones are taken at Head, new ones put in, and by a stack's owner taken, at Tail.
type Ring struct {
	Head  atomic.Int64 // turn, peeked at by others
	Tail  atomic.Int64 // turn, peeked at by others
	Words uint64       // turn: address of Mask + 1 words
	Mask  int64        // turn
}

// WorkerMemory is lane_worker.
type WorkerMemory struct {
	Turn      atomic.Uint32 // 1 while the owner is inside its queue section
	Index     uint32        // immutable
	Ticks     atomic.Uint64 // ops begun; owner writes
	Next      atomic.Uint64 // turn, peeked at by others: the newest runnable, or 0
	Deque     Ring          // turn: a stack to its owner, a queue to thieves
	Injected  Ring          // turn: first in, first out: taken from the injection stack
	Yielded   Ring          // turn: first in, first out: behind everything
	Runtime   uint64        // immutable: address of the RuntimeMemory
	RuntimeID uint64        // immutable
	Accepts   atomic.Uint64 // RuntimeID while new ops are accepted, else 0

	TurnAt        uint64        // owner: Ticks of the op at which others get their turn
	Running       atomic.Uint64 // function of the op that runs; 0 while the worker is not in one. Owner writes, the monitor reads
	IOStreakTick  uint64        // owner: Ticks of the op that IOStreak counts for
	IOStreak      uint32        // owner: I/O ops completed at once in that op
	CheckInterval uint32        // owner: ops between two looks at the clock
	CheckedAt     int64         // owner: ns
	SpinNS        int64         // owner: how long to look for work before parking
	WakeAfter     uint64        // owner: ticks before which a push wakes nobody
	LeaveAt       int64         // owner: ns before which a worker that was asked to leave, and could not, does not try again

	Crossings     atomic.Uint64 // owner writes, all read; so the rest of the line
	Steals        atomic.Uint64
	OpsStolen     atomic.Uint64
	Parks         atomic.Uint64
	Wakes         atomic.Uint64
	InjectedCount atomic.Uint64
	IOStarted     atomic.Uint64
	IOEvents      atomic.Uint64
	IOImmediate   atomic.Uint64
	_             [104]byte

	Thief   atomic.Uint32 // 1 while somebody else holds, or wants to hold, the queue
	Stalled atomic.Uint64 // ticks at which the monitor found the worker stalled: its last op may be taken
	_       [112]byte

	Park            atomic.Uint32 // Awake ...; the futex word of the C lane
	Life            atomic.Uint32 // LifeAbsent ...; the futex word of a cached worker
	Thread          atomic.Uint32 // the system's number of the thread; 0 in a lane that does not know it
	_               [4]byte
	ReplacesSince   atomic.Int64  // ns at which the stall was seen that this worker was started for; 0: none
	Recoveries      atomic.Uint64 // owner writes, statistics: times that it began to run for a held-up one,
	RecoveryTotal   atomic.Int64  // ns from ReplacesSince until then, all together,
	RecoveryLongest atomic.Int64  // and the longest
	_               [128 - 48]byte

	Wheel Wheel
	_     [(128 - unsafe.Sizeof(Wheel{})%128) % 128]byte
}

// Flags and owner of a descriptor's slot word. The owner is 0 (free), SlotHeld (an op is in its system call), the address
// of an IO (it waits), or that address | SlotHeld (an event took it and it is queued to try again).
const (
	SlotReady  = uint64(1)
	SlotClosed = uint64(2)
	SlotHeld   = uint64(4)
	SlotOwner  = ^uint64(3)
)

// The two directions of a descriptor.
const (
	Receive = 0
	Send    = 1
)

// Bits of DescriptorMemory.Hints.
const (
	HintReceiveDrained = uint32(1) // the last receive took less than it asked for
	HintHangup         = uint32(4) // the peer ended, or the socket failed: never wait without trying
)

// DescriptorMemory is lane_descriptor.
type DescriptorMemory struct {
	Slot       [2]atomic.Uint64
	Generation atomic.Uint32 // odd while open
	System     atomic.Int32  // file descriptor, -1 when closed
	Hints      atomic.Uint32
	Index      uint32 // immutable
	Runtime    uint64 // immutable
	NextFree   atomic.Uint64
	ID         uint64 // written at open
	_          [128 - 56]byte
}

// RuntimeMemory is lane_runtime.
type RuntimeMemory struct {
	ID          atomic.Uint64
	State       atomic.Uint32
	WorkerCount uint32        // immutable while it runs: the base, workers that are always there
	Workers     uint64        // immutable while it runs: address of WorkerMax WorkerMemory
	Asymmetric  uint32        // immutable: 1 when Lane.Barrier is a process-wide barrier
	CPUs        uint32        // immutable
	Port        int32         // immutable: the epoll descriptor, or the completion port
	Event       int32         // immutable: what ends a wait there: the eventfd in it, or the timer
	WorkerMax   uint32        // immutable: places for workers
	Active      atomic.Uint32 // places that may hold anything: all beyond are empty. The monitor writes
	Begun       atomic.Uint32 // places that have ever been used. The monitor writes
	_           [128 - 52]byte

	Inject  atomic.Uint64 // newest injected op, linked by Op.Next; or InjectClosed
	Pending atomic.Uint64 // ops that threads which are no workers will hand back, and 1 until Stop has cancelled; 0 is final
	_       [112]byte

	Idle        [WorkersMax / 64]atomic.Uint64 // bit per announced or parked worker
	Waking      atomic.Uint32                  // 1 while a woken worker has not yet looked for work
	Spinning    atomic.Uint32                  // workers that look for work before they park
	Keeper      atomic.Uint32                  // 1 + index of the sleeper who minds timers and poller
	Descriptors atomic.Uint32                  // open descriptors
	SleepUntil  atomic.Int64                   // when the keeper wakes by itself; MinInt64: there is none
	PolledAt    atomic.Int64                   // ns of the last poll
	Released    atomic.Uint64                  // closed descriptors whose last op has let go
	Wakers      atomic.Uint32                  // threads that are about to wake a worker; never reset
	Drained     atomic.Uint32                  // 1 once a stopping runtime can get no more work
	_           [128 - 80]byte

	Monitor        atomic.Uint32 // 1 while the monitor sleeps without a timeout
	_              [4]byte
	ReplaceSince   atomic.Int64  // monitor: ns at which the stall was seen that asks for a replacement
	RefusedAt      atomic.Int64  // monitor: ns at which a thread was last refused; 0: never
	Stalls         atomic.Uint64 // monitor writes, statistics; so the next four
	StalledLongest atomic.Int64
	Replacements   atomic.Uint64
	Refused        atomic.Uint64
	Dismissed      atomic.Uint64 // suspicions that came to nothing: the worker had only lost its CPU
	_              [128 - 64]byte

	Crossings   atomic.Uint64 // statistics of threads that are no workers
	Wakes       atomic.Uint64
	IOStarted   atomic.Uint64
	IOEvents    atomic.Uint64
	IOImmediate atomic.Uint64
	_           [128 - 40]byte

	Chunks [ChunksMax]atomic.Uint64 // addresses of ChunkDescriptors DescriptorMemory each, for all runtimes that come to be in this memory; never reset
}

// at turns an address in shared memory into a pointer. The memory is not Go's, so no rule of unsafe is at stake; the
// detour keeps vet from taking it for a Go pointer in an integer.
func at[T any](address uint64) *T {
	p := uintptr(address)
	return *(**T)(unsafe.Pointer(&p))
}

// reset makes the memory as new for the next runtime, but for the descriptors' records, and for Wakers: a thread that comes too late to find anything
// may be counted there, or in such a record.
func (r *RuntimeMemory) reset() {
	all := unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	wakers := unsafe.Offsetof(r.Wakers)
	clear(all[:wakers])
	clear(all[wakers+unsafe.Sizeof(r.Wakers) : unsafe.Offsetof(r.Chunks)])
}

// addressOf is the inverse of at.
func addressOf[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

// AddressOf is the address of a piece of shared memory, as queues and slots hold it.
func AddressOf[T any](p *T) uint64 { return addressOf(p) }

// RunOf is the function of a runnable: its first word.
func RunOf(runnable uint64) uintptr { return *at[uintptr](runnable) }

// RuntimeMemory is the runtime that the worker belongs to.
func (w *WorkerMemory) RuntimeMemory() *RuntimeMemory { return at[RuntimeMemory](w.Runtime) }

// Worker is worker i of WorkerMax.
func (r *RuntimeMemory) Worker(i int) *WorkerMemory {
	return at[WorkerMemory](r.Workers + uint64(i)*uint64(unsafe.Sizeof(WorkerMemory{})))
}

// AnyIdle tells whether any worker is announced or parked.
func (r *RuntimeMemory) AnyIdle() bool {
	for i := range r.Idle {
		if r.Idle[i].Load() != 0 {
			return true
		}
	}
	return false
}

// EarliestTimer is the moment at which the first wheel wants to be advanced; MaxInt64: none does.
func (r *RuntimeMemory) EarliestTimer() int64 {
	earliest := int64(math.MaxInt64)
	for i := range int(r.Active.Load()) {
		earliest = min(earliest, r.Worker(i).Wheel.Earliest.Load())
	}
	return earliest
}
