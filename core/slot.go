package core

// A slot is the word of one direction of a descriptor: who uses it, whether something has happened that nobody has looked at
// (SlotReady), and whether the descriptor is closed (SlotClosed). Twin: capi/slot.h, where each step has its argument.
// Model: docs/models/op.pml.
//
//	free --claim--> held --arm--> armed --Ready--> queued --reclaim--> held --release--> free
//	                              armed --disarm--> free
//
// Whoever takes an op out of a slot, by release or by disarm, is the one who completes it. Whoever frees the slot of a
// closed descriptor says so by letGo. Every word is an atomic since C works on it at the same time.

// claim takes a free slot, and forgets its readiness: news from before the system call that now follows are no news. news
// tells whether there was some.
func (d *DescriptorMemory) claim(direction int) (news bool, code Error) {
	slot := &d.Slot[direction]
	for {
		word := slot.Load()
		switch {
		case word&SlotClosed != 0:
			return false, EBadHandle
		case word&SlotOwner != 0:
			return false, EBusy
		}
		if slot.CompareAndSwap(word, SlotHeld) {
			return word&SlotReady != 0, 0
		}
	}
}

// unclaim undoes a claim that turned out to be stale. The readiness that it took belongs to others: it is given back,
// whether there was some or not, in the same step.
func (t *DescriptorTable) unclaim(d *DescriptorMemory, direction int) {
	slot := &d.Slot[direction]
	for {
		word := slot.Load()
		if slot.CompareAndSwap(word, word&^SlotOwner|SlotReady) {
			if word&SlotClosed != 0 {
				t.letGo(d)
			}
			return
		}
	}
}

// armed is what arm came to.
type armed int

const (
	armWaits  armed = iota // the op is in the slot, and may be anybody's by now
	armNews                // something has happened since the claim: try again
	armClosed              // the slot is still held
)

// arm leaves an op in a slot that its starter holds.
func (d *DescriptorMemory) arm(direction int, io *IO) armed {
	slot := &d.Slot[direction]
	for {
		if slot.CompareAndSwap(SlotHeld, addressOf(io)) {
			return armWaits
		}
		word := slot.Load()
		if word&SlotClosed != 0 {
			return armClosed
		}
		if word&SlotReady != 0 {
			slot.And(^SlotReady)
			return armNews
		}
	}
}

// armInClosed is arm in the slot of a closed descriptor, for an op whose transfer the system still has. It has been interrupted, and the
// closer, who waits while the slot is held, goes on.
func (d *DescriptorMemory) armInClosed(direction int, io *IO) armed {
	slot := &d.Slot[direction]
	if slot.CompareAndSwap(SlotHeld|SlotClosed, addressOf(io)|SlotClosed) {
		return armWaits
	}
	slot.And(^SlotReady)
	return armNews
}

// release frees a slot that is held.
func (t *DescriptorTable) release(d *DescriptorMemory, direction int) {
	if d.Slot[direction].And(^SlotOwner)&SlotClosed != 0 {
		t.letGo(d)
	}
}

// requeue turns held into queued, for an op that gives others a turn.
func (d *DescriptorMemory) requeue(direction int, io *IO) { d.Slot[direction].Or(addressOf(io)) }

// reclaim turns queued into held, as claim does, and tells whether the descriptor was closed meanwhile.
func (d *DescriptorMemory) reclaim(direction int) (closed bool) {
	return d.Slot[direction].And(SlotHeld|SlotClosed)&SlotClosed != 0
}

// disarm takes an op out of its slot, if it still waits there.
func (t *DescriptorTable) disarm(d *DescriptorMemory, direction int, io *IO) bool {
	slot := &d.Slot[direction]
	for {
		word := slot.Load()
		if word&SlotOwner != addressOf(io) {
			return false
		}
		if slot.CompareAndSwap(word, word&^SlotOwner) {
			if word&SlotClosed != 0 {
				t.letGo(d)
			}
			return true
		}
	}
}

// nudge makes an op that holds the slot look again before it arms, by a readiness without a cause: so a request that came
// while it was in its system call is seen by the op itself, and need not be looked for once it is armed, when it may be
// gone. It returns the address of the op that waits instead, if one does, and 0 otherwise.
func (d *DescriptorMemory) nudge(direction int) (waiting uint64) {
	slot := &d.Slot[direction]
	for {
		word := slot.Load()
		owner := word & SlotOwner
		if owner != 0 && owner&SlotHeld == 0 {
			return owner
		}
		if word&(SlotReady|SlotClosed) != 0 || slot.CompareAndSwap(word, word|SlotReady) {
			return 0
		}
	}
}

// ready notes that a direction may have become ready, and returns the op that waited for it, now queued.
func (d *DescriptorMemory) ready(direction int) *IO {
	slot := &d.Slot[direction]
	for {
		word := slot.Load()
		owner := word & SlotOwner
		if owner == 0 || owner&SlotHeld != 0 {
			if word&SlotReady != 0 || slot.CompareAndSwap(word, word|SlotReady) {
				return nil
			}
			continue
		}
		if slot.CompareAndSwap(word, word|SlotHeld) {
			return at[IO](owner)
		}
	}
}

// close marks a slot as closed and tells who used it just before.
func (d *DescriptorMemory) close(direction int) (owner uint64) {
	return d.Slot[direction].Or(SlotClosed) & SlotOwner
}
