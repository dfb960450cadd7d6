package core

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// States of IO.State. An op that was asked to end before it was started, and one that was asked under way, are told apart: a
// second start of the latter is refused instead of completing it twice. Model: docs/models/op.pml.
const (
	IOIdle           uint32 = iota // never started
	IOStarted                      // under way
	IOCancelling                   // under way, and asked to end
	IOCompleted                    // has its result; may be started again
	IOCancelledEarly               // asked to end before it was started
)

// Kinds of IO.Kind.
const (
	KindReceive uint16 = iota + 1
	KindSend
	KindReceiveBuffers
	KindSendBuffers
	KindAccept
	KindConnect
	KindReceiveFrom // of a Datagram's IO, and so the next
	KindSendTo
)

// Flags of IO.Flags.
const (
	IOAll      uint16 = 1      // WEFT_IO_ALL
	IOUnderWay uint16 = 0x8000 // the system is at it: a connect, or, where it reports completion, any transfer
)

// Buffer is weft_buffer: a piece of memory that is not Go's, or that the caller keeps.
type Buffer struct {
	Data   uint64 // address
	Length uint64 // bytes
}

// where is the descriptor and the direction of the op, which stand in one word: Descriptor is the record's address, which
// has its low bits free, and the direction. nil when the op is not under way.
func (io *IO) where() (d *DescriptorMemory, direction int) {
	word := atomic.LoadUint64(&io.Descriptor)
	return at[DescriptorMemory](word &^ 1), int(word & 1)
}

// directionOf is the slot that a kind of op uses.
func directionOf(kind uint16) int {
	switch kind {
	case KindReceive, KindReceiveBuffers, KindAccept, KindReceiveFrom:
		return Receive
	}
	return Send
}

// moves tells whether a kind of op moves bytes of a stream.
func moves(kind uint16) bool { return kind <= KindSendBuffers }

// buffers is the op's memory as pieces: Length of them at Data for the kinds with buffers, else one.
func (io *IO) buffers() []Buffer {
	if io.Kind == KindReceiveBuffers || io.Kind == KindSendBuffers {
		return slice[Buffer](io.Data, int(io.Length))
	}
	return []Buffer{{io.Data, io.Length}}
}

// total is how many bytes the op would like to move.
func (io *IO) total() (total uint64) {
	for _, b := range io.buffers() {
		total += b.Length
	}
	return total
}

// Rest appends what is left of the op's buffers after Count bytes to pieces.
func (io *IO) Rest(pieces [][]byte) [][]byte {
	skip := io.Count
	for _, b := range io.buffers() {
		if skip >= b.Length {
			skip -= b.Length
			continue
		}
		pieces = append(pieces, slice[byte](b.Data+skip, int(b.Length-skip)))
		skip = 0
	}
	return pieces
}

// Datagram is the whole of an op that moves one.
func (io *IO) Datagram() *Datagram { return at[Datagram](addressOf(io)) }

// Peer is where a connect goes. The endpoint is kept in the fields that a connect does not use otherwise.
func (io *IO) Peer() (e Endpoint) {
	e.Family, e.Port, e.Scope = uint16(io.Spare[0]), uint16(io.Spare[0]>>16), uint32(io.Spare[0]>>32)
	binary.NativeEndian.PutUint64(e.Address[:8], io.Length)
	binary.NativeEndian.PutUint64(e.Address[8:], io.Data)
	return e
}

func (io *IO) keepPeer(e *Endpoint) {
	switch io.Kind {
	case KindReceiveFrom:
		io.Datagram().Peer, io.Datagram().Truncated = Endpoint{}, 0
		return
	case KindSendTo:
		io.Datagram().Peer = *e
		return
	}
	io.Spare[0] = uint64(e.Family) | uint64(e.Port)<<16 | uint64(e.Scope)<<32
	io.Length = binary.NativeEndian.Uint64(e.Address[:8])
	io.Data = binary.NativeEndian.Uint64(e.Address[8:])
}

// slice is n pieces of memory at an address.
func slice[T any](address uint64, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice(at[T](address), n)
}

// retry is the op that tries again.
func (io *IO) retry() *Op { return at[Op](addressOf(&io.System)) }

// complete writes the result. Whoever calls it has the op in his hands; from the moment that its run is called it is its
// owner's again.
func (io *IO) complete(code Error, osError int32) {
	io.Status, io.OSError = int32(code), osError
	// No descriptor, so that a cancel of the op's next life does not look at this one's.
	atomic.StoreUint64(&io.Descriptor, 0)
	// A store: a request that comes in between is as good as one that comes too late. Release: with the state comes the result.
	io.State.Store(IOCompleted)
}

// Request is what an op is to do.
type Request struct {
	Kind, Flags  uint16
	Data, Length uint64    // as in IO
	Peer         *Endpoint // of a connect or a send of a datagram; only read during Start
}

// IOLane starts I/O ops and tries them again, for a lane in Go. Twin: capi/io.c, whose arguments hold here too.
type IOLane struct {
	table   *DescriptorTable
	sockets Sockets
	retry   uintptr // what a retry op runs: a function that calls Retry with the op
}

// NewIOLane makes the I/O side of a lane. retry is the Op.Run of the ops that try again: called with such an op's address it
// must call Retry.
func NewIOLane(table *DescriptorTable, sockets Sockets, retry uintptr) *IOLane {
	table.RetryWith(retry)
	return &IOLane{table: table, sockets: sockets, retry: retry}
}

// callsMax is how many system calls an op makes before it gives others a turn; CALLS_MAX in capi/io.c.
const callsMax = 16

// Start starts an op on a descriptor. It returns true when the op is complete, and its run is not called; false when it is
// pending, and goes through queue when it can go on or is complete. Errors, with the op untouched: EBadHandle, EBusy,
// EStopped. Any thread.
func (l *IOLane) Start(io *IO, handle uint64, request Request, queue func(op *Op)) (done bool, err error) {
	t := l.table
	if t.shared.State.Load() != StateRunning {
		return false, EStopped
	}
	d, generation := t.find(handle)
	if d == nil {
		return false, EBadHandle
	}
	before, err := io.begin()
	if err != nil {
		return false, err
	}
	io.Count, io.Accepted = 0, 0
	if before == IOCancelledEarly {
		io.complete(ECanceled, 0)
		return true, nil
	}
	io.Kind, io.Flags, io.Data, io.Length = request.Kind, request.Flags, request.Data, request.Length
	// Before the claim, and the claim before the look at the state: against Cancel, which writes the state before it reads
	// the descriptor.
	direction := directionOf(request.Kind)
	atomic.StoreUint64(&io.Descriptor, addressOf(d)|uint64(direction))
	news, code := d.claim(direction)
	if code == 0 && d.Generation.Load() != generation {
		t.unclaim(d, direction)
		code = EBadHandle
	}
	if code == 0 && t.completes && t.shared.State.Load() != StateRunning {
		// Once more, behind the claim: who stops waits for all who have claimed before (busy).
		t.unclaim(d, direction)
		code = EStopped
	}
	if code != 0 {
		io.abandon(before)
		return false, code
	}
	t.shared.IOStarted.Add(1)
	if request.Kind >= KindConnect {
		io.keepPeer(request.Peer)
	}
	io.retry().Run = l.retry
	if l.settle(d, direction, io, !news && d.callIsVain(direction), queue) {
		t.shared.IOImmediate.Add(1)
		return true, nil
	}
	return false, nil
}

// begin takes an idle op. before is what it was.
func (io *IO) begin() (before uint32, err error) {
	for {
		before = io.State.Load()
		if before == IOStarted || before == IOCancelling {
			return 0, EBusy
		}
		if io.State.CompareAndSwap(before, IOStarted) {
			return before, nil
		}
	}
}

// abandon undoes begin, for an op that could not be started. A request that came meanwhile is kept for the next start.
func (io *IO) abandon(before uint32) {
	atomic.StoreUint64(&io.Descriptor, 0)
	if !io.State.CompareAndSwap(IOStarted, before) {
		io.State.Store(IOCancelledEarly)
	}
}

// callIsVain tells that a receive would be refused: the last one left nothing, nothing has been reported since (the caller's
// claim found no news), and the peer has not ended. Argument: capi/io.c.
func (d *DescriptorMemory) callIsVain(direction int) bool {
	return direction == Receive && d.Hints.Load()&(HintReceiveDrained|HintHangup) == HintReceiveDrained
}

// Retry tries an op again, on a worker: op is what Ready handed out. It returns the IO when that is complete: the caller
// then calls its run.
func (l *IOLane) Retry(op *Op, queue func(op *Op)) *IO {
	io := at[IO](addressOf(op) - uint64(unsafe.Offsetof(IO{}.System)))
	d, direction := io.where()
	if d.reclaim(direction) {
		l.discard(io)
		l.finish(d, direction, io, EClosed, 0)
		return io
	}
	if l.settle(d, direction, io, false, queue) {
		return io
	}
	return nil
}

// settle takes an op whose slot is held to its result (true), or leaves it waiting (false): then it is not ours any more.
// vain tells that the first call would be.
func (l *IOLane) settle(d *DescriptorMemory, direction int, io *IO, vain bool, queue func(op *Op)) (done bool) {
	for calls := 0; ; {
		if !vain {
			if calls++; calls > callsMax && !l.lent(io) {
				io.retry().Run = l.retry
				d.requeue(direction, io)
				queue(io.retry())
				return false
			}
			attempt := l.try(d, io)
			if !attempt.Wait {
				d.note(direction, attempt)
				io.Count += attempt.Moved
				if attempt.Err == ECanceled && !l.unwanted(io) {
					if attempt = d.givenUp(direction, attempt); attempt.Wait {
						continue
					}
				}
				if attempt.Err != 0 || attempt.Moved == 0 || io.Flags&IOAll == 0 || io.Count >= io.total() {
					l.conclude(d, direction, io, attempt)
					return true
				}
				if vain = d.callIsVain(direction); !vain {
					continue
				}
			}
		}
		vain = false
		if io.Kind == KindConnect {
			io.Flags |= IOUnderWay
		}
		if l.unwanted(io) && !l.interrupt(d, io) {
			l.finish(d, direction, io, ECanceled, 0)
			return true
		}
		armed := d.arm(direction, io)
		if armed == armClosed {
			if !l.interrupt(d, io) {
				l.finish(d, direction, io, EClosed, 0)
				return true
			}
			armed = d.armInClosed(direction, io)
		}
		if armed == armWaits {
			return false
		}
	}
}

// unwanted tells that nobody wants the op to wait any more.
func (l *IOLane) unwanted(io *IO) bool {
	return io.State.Load() == IOCancelling || l.table.shared.State.Load() != StateRunning
}

// try makes one system call; an op that has nothing to move needs none.
func (l *IOLane) try(d *DescriptorMemory, io *IO) Attempt {
	if l.table.completes {
		return l.transfer(d, io)
	}
	if moves(io.Kind) && io.Count >= io.total() {
		return Attempt{}
	}
	return l.sockets.Try(d.System.Load(), d.Hints.Load(), io)
}

// note keeps what a receive has told about the stream. One that failed has left there what it could have taken, and used up the event that told
// of it. The slot is held, so nobody else writes this hint.
func (d *DescriptorMemory) note(direction int, attempt Attempt) {
	if direction != Receive || (attempt.Moved == 0 && attempt.Err == 0) {
		return
	}
	hints := d.Hints.Load()
	switch drained := attempt.Short && hints&HintStream != 0; {
	case drained && hints&HintReceiveDrained == 0:
		d.Hints.Or(HintReceiveDrained)
	case !drained && hints&HintReceiveDrained != 0:
		d.Hints.And(^HintReceiveDrained)
	}
}

// conclude gives an op the result of its last call.
func (l *IOLane) conclude(d *DescriptorMemory, direction int, io *IO, attempt Attempt) {
	if attempt.Err != 0 {
		l.finish(d, direction, io, attempt.Err, attempt.OSError)
		return
	}
	if moves(io.Kind) && io.Flags&IOAll != 0 && io.Count < io.total() {
		l.finish(d, direction, io, EEOF, 0)
		return
	}
	kind := d.Hints.Load() & HintStream
	l.table.release(d, direction)
	code := Error(0)
	if io.Kind == KindAccept {
		// After the release: the listener may be closed by somebody who waits for it.
		handle, err := l.table.Open(attempt.Accepted, kind)
		if err != nil {
			l.sockets.Close(attempt.Accepted)
			code = err.(Error)
		}
		io.Accepted = handle
	}
	io.complete(code, 0)
}

// finish frees the slot and completes the op.
func (l *IOLane) finish(d *DescriptorMemory, direction int, io *IO, code Error, osError int32) {
	l.table.release(d, direction)
	io.complete(code, osError)
}

// Cancel asks an op to end early, and tells whether the request was noted: not if there was one before, or the op has
// completed. The op still completes once; if this call did it, it goes through queue. Any thread, as long as the op's memory
// is there.
func (l *IOLane) Cancel(io *IO, queue func(op *Op)) (noted bool) {
	for {
		switch io.State.Load() {
		case IOIdle:
			if io.State.CompareAndSwap(IOIdle, IOCancelledEarly) {
				return true
			}
		case IOStarted:
			if io.State.CompareAndSwap(IOStarted, IOCancelling) {
				// The request stands in the state. An op that waits is taken out; one that holds its slot looks again.
				d, direction := io.where()
				if d == nil || !l.table.shared.holdEnd() {
					return true // at the end nothing waits any more
				}
				if l.table.completes {
					l.table.askForEnd(d, direction, io)
				} else if d.nudge(direction) == addressOf(io) {
					l.table.takeOut(d, direction, io, ECanceled, queue)
				}
				l.table.shared.releaseEnd()
				return true
			}
		default:
			return false
		}
	}
}
