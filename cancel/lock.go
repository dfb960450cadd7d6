package cancel

import (
	"runtime"
	"time"
)

// lock takes the source's lock and sets bits in the same step; it returns the bits from before. It pairs with the stores
// that free the lock: unlock here and cancel_unlock in capi/cancel.c; what the last holder did to the lists is visible then.
// Setting sourceRequested pairs with the loads in Requested and in weft_cancel_requested, which may see the bit before the lock
// is free. It must be atomic because any thread, in Go or C, may try at the same time.
func (s *SourceMemory) lock(set uint32) uint32 {
	if set != 0 {
		raceRelease(addressOf(s))
	}
	for attempt := 0; ; attempt++ {
		seen := s.State.Load()
		if seen&sourceLocked == 0 && s.State.CompareAndSwap(seen, seen|set|sourceLocked) {
			raceAcquire(addressOf(s))
			return seen
		}
		pause(attempt)
	}
}

// unlock frees the lock: a store, because only the holder changes the word. It is the holder's last access, for whoever locks
// next may free the source. It pairs with the compare-and-swap in lock and in cancel_lock of capi/cancel.c.
func (s *SourceMemory) unlock(bits uint32) {
	raceRelease(addressOf(s))
	s.State.Store(bits)
}

// pause waits a little, longer each time; the twin of cancel_pause in capi/cancel.c. The holder of a lock may be a
// goroutine that lost its processor or a thread that lost its CPU, so it ends in sleeping.
func pause(attempt int) {
	switch {
	case attempt < 64:
	case attempt < 128:
		runtime.Gosched()
	default:
		time.Sleep(min(50*time.Microsecond<<min(attempt-128, 5), time.Millisecond))
	}
}
