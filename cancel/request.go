package cancel

import "runtime"

// Request is weft_cancel_request: the first call runs all callbacks on this thread and gives OK, every other gives
// Already at once. The goroutine stays on its thread meanwhile. A callback must not panic.
func (s *SourceMemory) Request() int {
	if s == nil {
		return Invalid
	}
	if s.Requested() {
		return Already
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := host.Thread() // asked for outside the lock: it may be a call to C
	if s.lock(sourceRequested)&sourceRequested != 0 {
		s.unlock(sourceRequested)
		return Already
	}
	for s.Newest != 0 {
		r := at[RegistrationMemory](s.Newest)
		unlink(&s.Newest, r)
		r.begin(s, thread)
		callback, context := r.Callback, r.Context
		s.unlock(sourceRequested)
		invoke(callback, context)
		s.lock(0)
		// The end of one and the choice of the next are one step: were the lock given back between them, whoever
		// deregistered the last registration could free the source too early.
		s.end(r, thread)
	}
	s.unlock(sourceRequested)
	return OK
}

// Requested is weft_cancel_requested; nil is never requested. The load pairs with the compare-and-swap in lock and in
// cancel_lock of capi/cancel.c: who sees the request sees what was written before it.
func (s *SourceMemory) Requested() bool {
	if s == nil || s.State.Load()&sourceRequested == 0 {
		return false
	}
	raceAcquire(addressOf(s))
	return true
}

// begin puts a registration among the running ones, under the lock. Its twin is cancel_begin in capi/cancel.c.
func (r *RegistrationMemory) begin(s *SourceMemory, thread uint64) {
	r.State = running
	r.Thread = thread
	link(&s.Running, r)
}

// end takes a registration whose callback has ended off the running ones, under the lock. If the callback deregistered it, it is
// not there, and ran may be freed memory: so it is looked for by address, and by thread, for the memory may have become a
// registration that now runs on another thread. On this thread it cannot be running anew: that would have ended inside the
// callback. Its twin is cancel_end in capi/cancel.c; docs/models/cancel.pml fails without the thread (MUTANT_ADDRESS_ONLY).
func (s *SourceMemory) end(ran *RegistrationMemory, thread uint64) {
	for next := s.Running; next != 0; {
		r := at[RegistrationMemory](next)
		if r == ran && r.Thread == thread {
			unlink(&s.Running, r)
			r.State = called
			return
		}
		next = r.Next
	}
}
