package core

import (
	"math"
	"math/bits"
)

// The timer wheel of one worker: Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987. Time is cut into ticks of 2^14 ns. A timer
// whose tick differs from Elapsed first in (base 64) digit d stands in level d, in the slot of that digit. So within a level slots never wrap
// around, every timer of a lower level is due before every timer of a higher one, and the first occupied slot of the lowest occupied
// level holds the earliest. When time enters a slot of a level above 0, its timers move down. Minimum keeps a lower bound of the ticks in a slot,
// so that Earliest is the moment of the earliest timer itself and not of its slot: a lone far timer costs one wake.
//
// Everything is under Lock, which is held for a few list steps. C links and unlinks (capi/timer.c); advancing is Go's, by any worker or the
// monitor, for any wheel. A pending timer is in exactly one list; whoever takes it out, canceller or advance, decides its status.

const (
	timerIdle uint32 = iota
	timerPending
)

const (
	slotNever = WheelLevels * WheelSlots // timers without a deadline
	tickNever = math.MaxInt64
	// After so many timers fired, or moved down, the lock is given back, at the end of a slot: they and the largest slot above level 0
	// bound how long a canceller waits.
	fireBatch = 256
	moveBatch = 1024
)

// init makes a zeroed wheel usable; a closed one refuses all timers.
func (w *Wheel) init(closed bool) {
	w.Earliest.Store(math.MaxInt64)
	if closed {
		w.Closed = 1
	}
}

// lock takes the wheel. Pairs with unlock here and lane_unlock in capi/timer.c: what the last holder linked is seen.
func (w *Wheel) lock(l Lane) {
	for spins := uint32(0); !w.Lock.CompareAndSwap(0, 1); spins++ {
		l.Pause(spins)
	}
}

func (w *Wheel) unlock() { w.Lock.Store(0) }

// tickOf is the tick at which a deadline is due: rounded up, so that no timer is early.
func tickOf(deadline int64) int64 {
	switch {
	case deadline <= 0:
		return 0
	case deadline > math.MaxInt64-1<<WheelTickShift:
		return tickNever
	}
	return (deadline + 1<<WheelTickShift - 1) >> WheelTickShift
}

// slotOf tells where a tick after elapsed stands. Twin: lane_slot_of in capi/timer.c.
func slotOf(tick, elapsed int64) int {
	level := (63 - bits.LeadingZeros64(uint64(tick^elapsed))) / 6
	return level*WheelSlots + int(tick>>(level*6)&(WheelSlots-1))
}

func (w *Wheel) head(slot int) *uint64 {
	if slot == slotNever {
		return &w.Never
	}
	return &w.Slots[slot]
}

// link puts a timer in. Under the lock, tick > Elapsed.
func (w *Wheel) link(t *Timer, tick int64) {
	slot := slotNever
	if tick != tickNever {
		slot = slotOf(tick, w.Elapsed)
		occupied, bit := &w.Occupied[slot/WheelSlots], uint64(1)<<(slot%WheelSlots)
		if *occupied&bit == 0 || tick < w.Minimum[slot] {
			w.Minimum[slot] = tick
		}
		*occupied |= bit
	}
	head := w.head(slot)
	t.Next, t.Previous, t.Slot = *head, 0, uint32(slot)
	if *head != 0 {
		at[Timer](*head).Previous = addressOf(t)
	}
	*head = addressOf(t)
	w.Pending++
}

// unlink takes a timer out. Under the lock.
func (w *Wheel) unlink(t *Timer) {
	if t.Next != 0 {
		at[Timer](t.Next).Previous = t.Previous
	}
	if t.Previous != 0 {
		at[Timer](t.Previous).Next = t.Next
	} else {
		slot := int(t.Slot)
		*w.head(slot) = t.Next
		if t.Next == 0 && slot != slotNever {
			w.Occupied[slot/WheelSlots] &^= 1 << (slot % WheelSlots)
		}
	}
	w.Pending--
}

// first tells the first occupied slot of the lowest occupied level and the tick at which it begins.
func (w *Wheel) first() (slot int, begins int64, ok bool) {
	for level, occupied := range w.Occupied {
		if occupied != 0 {
			digit := bits.TrailingZeros64(occupied)
			shift := level * 6
			return level*WheelSlots + digit, w.Elapsed>>(shift+6)<<(shift+6) | int64(digit)<<shift, true
		}
	}
	return 0, 0, false
}

// publishEarliest tells the sleepers when to come back. Under the lock.
func (w *Wheel) publishEarliest() {
	earliest := int64(math.MaxInt64)
	if slot, _, ok := w.first(); ok {
		earliest = w.Minimum[slot] << WheelTickShift
	}
	w.Earliest.Store(earliest)
}

// chain is a list of ops in the order in which the injection stack wants it: the op that is to run first comes last.
type chain struct {
	first, last *Op
	count       uint64
}

func (c *chain) add(op *Op) {
	op.Next = 0
	if c.first != nil {
		op.Next = addressOf(c.first)
	} else {
		c.last = op
	}
	c.first = op
	c.count++
}

// advance fires timers that are due at now, earliest tick first, until a batch is full (fireBatch, moveBatch), and tells whether that was all.
// Any thread.
func (w *Wheel) advance(l Lane, now int64, fired *chain) (done bool) {
	w.lock(l)
	defer w.unlock()
	target := now >> WheelTickShift
	moved := 0
	for limit := fired.count + fireBatch; ; {
		slot, begins, ok := w.first()
		if !ok || begins > target {
			break
		}
		if fired.count >= limit || moved >= moveBatch {
			w.publishEarliest()
			return false
		}
		// Nothing stands between Elapsed and begins, so no timer's level changes but those of this slot. Elapsed is already past begins
		// when the slot is the rest of one that was too large for one holding of the lock. Only one of level 0 may be left so: the rest
		// of a higher one would stand behind those of its timers that were moved down, and be late.
		w.Elapsed = max(w.Elapsed, begins)
		for w.Slots[slot] != 0 {
			t := at[Timer](w.Slots[slot])
			w.unlink(t)
			if tick := tickOf(t.Deadline); tick > w.Elapsed {
				w.link(t, tick)
				moved++
				continue
			}
			t.State = timerIdle
			w.Fired++
			fired.add(&t.Op)
			if slot < WheelSlots && fired.count >= limit {
				break
			}
		}
	}
	// The remaining timers differ from Elapsed in the same digit as from target, since none of their slots has begun.
	w.Elapsed = max(w.Elapsed, target)
	w.publishEarliest()
	return true
}

// close refuses timers from now on and takes all that are pending out, as cancelled.
func (w *Wheel) close(l Lane, cancelled *chain) {
	w.lock(l)
	defer w.unlock()
	w.Closed = 1
	for slot := 0; slot <= slotNever; slot++ {
		for head := w.head(slot); *head != 0; {
			t := at[Timer](*head)
			w.unlink(t)
			t.State, t.Status = timerIdle, int32(ECanceled)
			w.Cancelled++
			cancelled.add(&t.Op)
		}
	}
	w.publishEarliest()
}
