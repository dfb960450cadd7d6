package core

// A transfer is what the system has under way for an op, where it reports completion. While it has, IO.System is the system's record
// of it (Windows: the OVERLAPPED), in four words:
//
//	0  status of the system's       then Op.Run: what tries again
//	1  bytes moved                  then Op.Context: stays as it is
//	2  offset                       then Op.Next
//	3  event: always 0              then Op.Reserved: the status
//
// The system owns them from the call until its packet is taken from the port. Whoever takes it turns them into the op that tries again
// (land), and then either takes the op out of its slot or, if its holder has not armed it yet, leaves SlotReady there. Nothing else sets that flag
// under an op: so who holds a slot and finds it ready knows that the transfer has ended, and whoever took its packet is through with the op. Until
// then the op is not given back to its owner: cancel, close and stop only ask the system to give the transfer up (Poller.Interrupt). So every transfer
// that the system has begun is collected by who holds the slot, once, and a success is reported although somebody has asked for the end.
//
// Who asks for the end publishes his request, waits until nobody holds the slot, and asks the system if the op is armed; who begins a transfer looks for
// requests after the call. One of the two reaches the transfer, and nobody asks for the end of one whose call has not returned. Model: docs/models/transfer.pml. Twin: capi/transfer.h, io.c and io_windows.c.

// Lend readies System for the transfer that Try begins next; status is what the system's first word says of one that has not ended.
func (io *IO) Lend(status uint32) { io.System = [4]uint64{uint64(status)} }

// land takes System back from the system. The step on the slot that follows tells the op's holder.
func (io *IO) land(retry uintptr) {
	op := io.retry()
	op.Reserved = uint64(uint32(io.System[0]))
	op.Run = retry
}

// Landed is what the system has left in System when it gave it back: a status of its own, and how many bytes.
func (io *IO) Landed() (status uint32, bytes uint64) {
	op := io.retry()
	return uint32(op.Reserved), uint64(op.Context)
}

// Finished reports the end of a transfer that the system had under way, for pollers that report completion. Any thread.
func (t *DescriptorTable) Finished(io *IO, ready func(op *Op)) {
	io.land(t.retry)
	d, direction := io.where()
	if waiting := d.ready(direction); waiting != nil {
		ready(waiting.retry())
	}
}

// transfer begins a transfer, or collects the one that was under way and has ended. The op's slot is held.
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

// askForEnd asks the system for the end of an op that was requested to end, unless its holder does. He is in a call that does not block.
func (t *DescriptorTable) askForEnd(d *DescriptorMemory, direction int, io *IO) {
	slot := &d.Slot[direction]
	for spins := 0; slot.Load()&SlotOwner == SlotHeld && io.State.Load() == IOCancelling; spins++ {
		rest(spins)
	}
	if slot.Load()&SlotOwner == addressOf(io) {
		t.poller.Interrupt(d.System.Load(), io)
	}
}

// askForEnds is askForEnd of all ops of a descriptor, for a runtime that stops: its state is published.
func (t *DescriptorTable) askForEnds(d *DescriptorMemory) {
	for direction := range d.Slot {
		slot := &d.Slot[direction]
		for spins := 0; slot.Load()&SlotOwner == SlotHeld; spins++ {
			rest(spins)
		}
		if owner := slot.Load() & SlotOwner; owner != 0 && owner&SlotHeld == 0 {
			t.poller.Interrupt(d.System.Load(), at[IO](owner))
		}
	}
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
