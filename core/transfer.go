package core

import "sync/atomic"

// A transfer is what the system has under way for an op, where it reports completion. While it has, IO.System is the system's record
// of it (Windows: the OVERLAPPED), in four words:
//
//	0  status of the system's       then Op.Run: what tries again
//	1  bytes moved                  then Op.Context: stays as it is
//	2  offset                       then Op.Next
//	3  event: always 0              then Op.Reserved: status, and TransferLanded
//
// The system owns them from the call until its packet is taken from the port. Whoever takes it turns them into the op that tries again
// (land), before he touches the slot; the op's holder finds that out by the fourth word, which the system leaves alone. Until then the
// op is not given back to its owner: cancel, close and stop only ask the system to give it up (Poller.Interrupt). So every transfer
// that the system has begun is collected by who holds the slot, once, and a success is reported although somebody has asked for the
// end. Twin: capi/io.c and io_windows.c; docs/decisions/io.md argues it.

// TransferLanded stands beside the status in the fourth word once the packet was taken.
const TransferLanded = uint64(1) << 32

// Lend readies System for the transfer that Try begins next; status is what the system's first word says of one that has not ended.
func (io *IO) Lend(status uint32) { io.System = [4]uint64{uint64(status)} }

// land takes System back from the system. The last store tells the op's holder, who may be about to arm it. Atomic, since he looks
// at it meanwhile.
func (io *IO) land(retry uintptr) {
	op := io.retry()
	status := uint64(uint32(io.System[0]))
	op.Run = retry
	atomic.StoreUint64(&op.Reserved, status|TransferLanded)
}

// Landed tells whether the system has given System back, and then what it left there: a status of its own, and how many bytes.
func (io *IO) Landed() (status uint32, bytes uint64, ok bool) {
	op := io.retry()
	word := atomic.LoadUint64(&op.Reserved)
	if word&TransferLanded == 0 {
		return 0, 0, false
	}
	return uint32(word), uint64(op.Context), true
}

// Finished reports the end of a transfer that the system had under way, for pollers that report completion. Any thread.
func (t *DescriptorTable) Finished(io *IO, ready func(op *Op)) {
	io.land(t.retry)
	d, direction := io.where()
	if waiting := d.ready(direction); waiting != nil {
		ready(waiting.retry())
	}
}

// transfer begins a transfer, or collects the one that is under way. The op's slot is held.
func (l *IOLane) transfer(d *DescriptorMemory, io *IO) (attempt Attempt) {
	system := d.System.Load()
	switch {
	case l.lent(io):
		attempt = l.sockets.Collect(system, d.Hints.Load(), io)
	case moves(io.Kind) && io.Count >= io.total():
	default:
		attempt = l.sockets.Try(system, d.Hints.Load(), io)
	}
	io.Flags &^= IOUnderWay
	if attempt.Wait {
		io.Flags |= IOUnderWay
	}
	return attempt
}

// lent tells whether the system has the op's System.
func (l *IOLane) lent(io *IO) bool { return l.table.completes && io.Flags&IOUnderWay != 0 }

// interrupt asks the system for the end of a transfer, and tells whether there is one. The slot is held, so the descriptor is open.
func (l *IOLane) interrupt(d *DescriptorMemory, io *IO) bool {
	return l.lent(io) && l.table.poller.Interrupt(d.System.Load(), io)
}

// givenUp is what becomes of a transfer that the system gave up though nobody has asked for the end of this op: the descriptor was
// closed; or a cancel was late, and hit what its op did next, which has moved nothing and is begun again (Wait).
func (d *DescriptorMemory) givenUp(direction int, attempt Attempt) Attempt {
	if d.Slot[direction].Load()&SlotClosed != 0 {
		attempt.Err = EClosed
	} else if direction == Receive && attempt.Moved == 0 {
		attempt.Wait = true
	}
	return attempt
}

// discard collects what a transfer has brought to an op whose descriptor is closed. Its bytes are counted; a connection is of no use.
func (l *IOLane) discard(io *IO) {
	if !l.lent(io) {
		return
	}
	io.Flags &^= IOUnderWay
	attempt := l.sockets.Collect(-1, 0, io)
	io.Count += attempt.Moved
	if io.Kind == KindAccept && attempt.Err == 0 {
		l.sockets.Close(attempt.Accepted)
	}
}

// busy tells whether any op is under way on a descriptor. Once a runtime stops and this is false, it stays so: a start looks at the
// state after it has claimed its slot.
func (t *DescriptorTable) busy() (busy bool) {
	t.each(func(d *DescriptorMemory) {
		busy = busy || (d.Slot[Receive].Load()|d.Slot[Send].Load())&SlotOwner != 0
	})
	return busy
}
