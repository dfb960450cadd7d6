package core

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// DescriptorTable holds the open descriptors of a runtime: records in shared memory that C and Go work on, and the list of
// free ones, which is Go's alone. A record is never moved, nor freed: when the runtime has ended, the next one in its place uses it. So a
// stale handle reads a live word and finds the wrong generation, and whoever comes late, with an op that has completed, finds a record and the runtime
// that it is of.
//
// A handle is index + 1 in bits 0 to 23, the low byte of the runtime's handle (its slot) in bits 24 to 31, and the
// generation, which is odd while the descriptor is open, in bits 32 to 63.
type DescriptorTable struct {
	shared *RuntimeMemory
	poller Poller
	memory Memory
	retry  uintptr // immutable once there are ops: what Finished has an op run

	completes bool   // immutable: Poller.Completes
	watch     func() // immutable: called when there is a descriptor where there was none

	mu       sync.Mutex
	used     uint32 // guarded by mu: records that this table has used
	freeHead uint64 // guarded by mu: free records, the one that is longest free first, linked by NextFree
	freeTail uint64 // guarded by mu
}

// Bits of DescriptorMemory.Hints beyond those of shared.go.
const (
	// HintStream: a TCP socket, on which a receive that took less than it asked for has emptied the queue. Other kinds keep
	// boundaries.
	HintStream = uint32(8)
	// HintFile: no socket: read and write instead of recv and send.
	HintFile = uint32(16)
	// HintSkips: a call that succeeds at once is not reported as well. HintIPv6: what an accept of this listener makes. Both are for
	// systems that report completion.
	HintSkips = uint32(32)
	HintIPv6  = uint32(64)
	// HintPin is added by each who makes a system call on the descriptor without being its op: Close waits until they are gone.
	HintPin = uint32(0x100)

	hintMask = HintPin - 1
)

// NewDescriptorTable makes an empty table, of records that the one before it in this memory has left.
func NewDescriptorTable(shared *RuntimeMemory, poller Poller, memory Memory) *DescriptorTable {
	return &DescriptorTable{shared: shared, poller: poller, memory: memory, completes: poller.Completes()}
}

// RetryWith tells what the ops run that try again, before there are any.
func (t *DescriptorTable) RetryWith(run uintptr) { t.retry = run }

// newDescriptorTable makes the table of a runtime. A keeper who went to sleep while there was nothing to poll sleeps outside
// the poller, and is woken for the first descriptor. The count was raised before the look at Keeper, and the keeper announces
// himself before he reads the count (lane_keep): one sees the other.
func newDescriptorTable(r *Runtime) *DescriptorTable {
	t := NewDescriptorTable(r.shared, r.poller, r.memory)
	t.watch = r.wakeKeeper
	return t
}

// handleOf is the handle of a record in a generation.
func (t *DescriptorTable) handleOf(d *DescriptorMemory, generation uint32) uint64 {
	return uint64(generation)<<32 | t.shared.ID.Load()&0xff<<24 | uint64(d.Index+1)
}

// Data is what a poller is given to report for a descriptor: index and generation.
func (d *DescriptorMemory) data(generation uint32) uint64 {
	return uint64(generation)<<32 | uint64(d.Index)
}

// recordAt returns record index, or nil if it was never used.
func (t *DescriptorTable) recordAt(index uint64) *DescriptorMemory {
	if index >= ChunksMax*ChunkDescriptors {
		return nil
	}
	// The chunk is published by Store in take, before any handle or event can name it.
	chunk := t.shared.Chunks[index/ChunkDescriptors].Load()
	if chunk == 0 {
		return nil
	}
	return at[DescriptorMemory](chunk + index%ChunkDescriptors*uint64(unsafe.Sizeof(DescriptorMemory{})))
}

// find returns the record of a handle and its generation, or nil when the handle is stale or foreign.
func (t *DescriptorTable) find(handle uint64) (*DescriptorMemory, uint32) {
	if handle&0xffffff == 0 || handle>>24&0xff != t.shared.ID.Load()&0xff {
		return nil, 0
	}
	d := t.recordAt(handle&0xffffff - 1)
	generation := uint32(handle >> 32)
	// Acquire: with the generation come the fields that Open wrote before it.
	if d == nil || generation&1 == 0 || d.Generation.Load() != generation {
		return nil, 0
	}
	return d, generation
}

// Open takes a descriptor of the system over. kind is HintStream, HintFile or 0. Errors: as Poller.Register, and ELimit,
// ENoMem.
func (t *DescriptorTable) Open(system int32, kind uint32) (handle uint64, err error) {
	d, err := t.take()
	if err != nil {
		return 0, err
	}
	generation := d.Generation.Load() + 1
	handle = t.handleOf(d, generation)
	d.ID = handle
	d.NextFree.Store(0)
	d.System.Store(system)
	// Not a Store: a call through a stale handle may have the record pinned for a moment.
	d.Hints.And(^hintMask)
	d.Hints.Or(kind)
	d.Slot[Receive].Store(0)
	d.Slot[Send].Store(0)
	d.Generation.Store(generation)
	first := t.shared.Descriptors.Add(1) == 1
	// The first events may be reported before this returns; they find the record open.
	hints, err := t.poller.Register(system, d.data(generation))
	if err != nil {
		d.Generation.Store(generation + 1)
		t.shut(d, EClosed, func(*Op) {}) // nobody has had the handle, so nobody waits
		d.System.Store(-1)
		t.leave(d)
		return 0, err
	}
	if hints != 0 {
		d.Hints.Or(hints)
	}
	if first && t.watch != nil {
		t.watch()
	}
	return handle, nil
}

// System tells the system's descriptor behind a handle; it stays the table's. The error is EBadHandle.
func (t *DescriptorTable) System(handle uint64) (int32, error) {
	d, _ := t.find(handle)
	if d == nil {
		return -1, EBadHandle
	}
	return d.System.Load(), nil
}

// Close closes a descriptor. Ops that wait on it get EClosed and are handed to ready, to be queued. It waits for system
// calls that are under way on it, and returns nil or EBadHandle: of two calls at once, to the second.
func (t *DescriptorTable) Close(handle uint64, ready func(op *Op)) error {
	d, generation := t.find(handle)
	if d == nil || !t.end(d, generation, ready) {
		return EBadHandle
	}
	return nil
}

// end closes a record, if it still is of this generation.
func (t *DescriptorTable) end(d *DescriptorMemory, generation uint32, ready func(op *Op)) bool {
	// From here on starts are refused, and events ignored.
	if !d.Generation.CompareAndSwap(generation, generation+1) {
		return false
	}
	system := d.System.Load()
	t.poller.Deregister(system)
	t.shut(d, EClosed, ready)
	d.System.Store(-1)
	// Nobody is inside a system call on it any more, nor can anybody begin one: the number may be used again.
	t.poller.Discard(system)
	t.leave(d)
	return true
}

// shut closes both slots, takes out the ops that wait, and returns when no system call is under way.
func (t *DescriptorTable) shut(d *DescriptorMemory, why Error, ready func(op *Op)) {
	for direction := range d.Slot {
		owner := d.close(direction)
		switch {
		case owner == 0:
			t.letGo(d)
		case owner&SlotHeld == 0:
			t.takeOut(d, direction, at[IO](owner), why, ready)
		}
		// An op that is queued to try again sees SlotClosed when it does (reclaim), and makes no call.
	}
	for direction := range d.Slot {
		for spins := 0; d.Slot[direction].Load()&SlotOwner == SlotHeld; spins++ {
			rest(spins)
		}
	}
	// Seq-cst, against io_pin in capi/io.c: who pins after this load sees the new generation, and lets go.
	for spins := 0; d.Hints.Load() >= HintPin; spins++ {
		rest(spins)
	}
}

// rest waits a little for another thread's system call, which does not block but may be long, and whose thread may have lost
// its CPU.
func rest(spins int) {
	if spins < 100 {
		runtime.Gosched()
	} else {
		time.Sleep(20 * time.Microsecond)
	}
}

// takeOut completes an op that waits, unless the system has to be asked first, or somebody else is faster. It tells whether
// the slot is to be looked at no more.
func (t *DescriptorTable) takeOut(d *DescriptorMemory, direction int, io *IO, why Error, ready func(op *Op)) bool {
	if t.poller.Interrupt(d.System.Load(), io) {
		return true
	}
	if !t.disarm(d, direction, io) {
		return false
	}
	io.complete(why, 0)
	ready(&io.Op)
	return true
}

// leave ends a close: the closer's part of letGo.
func (t *DescriptorTable) leave(d *DescriptorMemory) {
	if !t.completes {
		t.shared.Descriptors.Add(^uint32(0))
	}
	t.letGo(d)
}

// letGo is called once by each of the three who hold a closed record: the closer, and whoever frees each slot, or finds it
// free. The last one gives the record back. NextFree counts them; it is no link before.
func (t *DescriptorTable) letGo(d *DescriptorMemory) {
	if d.NextFree.Add(1) != Parties {
		return
	}
	if t.completes {
		// Not before: as long as there are descriptors somebody polls, and the packets of this one may still have been to come.
		t.shared.Descriptors.Add(^uint32(0))
	}
	// A stack that is only taken whole, so it has no ABA problem. C pushes, too.
	for {
		head := t.shared.Released.Load()
		d.NextFree.Store(head)
		if t.shared.Released.CompareAndSwap(head, addressOf(d)) {
			return
		}
	}
}

// Parties is how many hold a closed record.
const Parties = 3

// take finds a free record: the one that is longest free, or a new one.
func (t *DescriptorTable) take() (*DescriptorMemory, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.collect()
	if t.freeHead != 0 {
		d := at[DescriptorMemory](t.freeHead)
		if t.freeHead = d.NextFree.Load(); t.freeHead == 0 {
			t.freeTail = 0
		}
		return d, nil
	}
	chunk := &t.shared.Chunks[min(t.used/ChunkDescriptors, ChunksMax-1)]
	if t.used == ChunksMax*ChunkDescriptors {
		return nil, ELimit
	}
	if chunk.Load() == 0 {
		memory := t.memory.Alloc(ChunkDescriptors * unsafe.Sizeof(DescriptorMemory{}))
		if memory == nil {
			return nil, ENoMem
		}
		records := unsafe.Slice((*DescriptorMemory)(memory), ChunkDescriptors)
		for i := range records {
			d := &records[i]
			d.Index = t.used + uint32(i)
			d.Runtime = addressOf(t.shared)
			d.System.Store(-1)
			d.Slot[Receive].Store(SlotClosed)
			d.Slot[Send].Store(SlotClosed)
		}
		chunk.Store(addressOf(&records[0]))
	}
	d := t.recordAt(uint64(t.used))
	t.used++
	return d, nil
}

// collect moves the records that were let go to the end of the free list, oldest first. Under mu.
func (t *DescriptorTable) collect() {
	var oldest uint64
	for released := t.shared.Released.Swap(0); released != 0; { // a stack: newest first
		d := at[DescriptorMemory](released)
		older := d.NextFree.Load()
		d.NextFree.Store(oldest)
		oldest, released = released, older
	}
	if oldest == 0 {
		return
	}
	if t.freeTail != 0 {
		at[DescriptorMemory](t.freeTail).NextFree.Store(oldest)
	} else {
		t.freeHead = oldest
	}
	for t.freeTail = oldest; at[DescriptorMemory](t.freeTail).NextFree.Load() != 0; {
		t.freeTail = at[DescriptorMemory](t.freeTail).NextFree.Load()
	}
}

// each calls f with every record that this table has used.
func (t *DescriptorTable) each(f func(d *DescriptorMemory)) {
	t.mu.Lock()
	used := t.used
	t.mu.Unlock()
	for i := range used {
		f(t.recordAt(uint64(i)))
	}
}

// Ready reports that directions of a descriptor (1 << Receive, 1 << Send) may have become ready since the registration with
// this data, and with hangup, that the peer has ended or the socket failed: from then on no receive waits without having
// tried. Ops that can go on are handed to ready. Any thread.
func (t *DescriptorTable) Ready(data uint64, directions int, hangup bool, ready func(op *Op)) {
	d := t.recordAt(data & 0xffffffff)
	// An event for an older generation. One that slips through, since the record is closed just now, does no harm: it is
	// spurious.
	if d == nil || d.Generation.Load() != uint32(data>>32) {
		return
	}
	// Before the slot, so that whoever learns of the event there sees the hint: callIsVain reads it after the claim.
	if hangup && d.Hints.Load()&HintHangup == 0 {
		d.Hints.Or(HintHangup)
	}
	for direction := range d.Slot {
		if directions&(1<<direction) != 0 {
			if io := d.ready(direction); io != nil {
				ready(io.retry())
			}
		}
	}
}

// cancelAll completes every op that waits with ECanceled, for a runtime that stops: its state is published before. An op
// that is about to wait sees the state by itself (unwanted), for which it is nudged.
func (t *DescriptorTable) cancelAll(cancelled *chain) {
	t.each(func(d *DescriptorMemory) {
		if t.completes {
			t.askForEnds(d)
			return
		}
		for direction := range d.Slot {
			for {
				waiting := d.nudge(direction)
				if waiting == 0 || t.takeOut(d, direction, at[IO](waiting), ECanceled, cancelled.add) {
					break
				}
			}
		}
	})
}

// closeAll closes what is still open, when all threads of the runtime have ended.
func (t *DescriptorTable) closeAll() {
	t.each(func(d *DescriptorMemory) {
		if generation := d.Generation.Load(); generation&1 != 0 {
			t.end(d, generation, func(*Op) {})
		}
	})
}
