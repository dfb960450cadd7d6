package cancel

import "runtime"

// Register is weft_cancel_register: callback is a C function that will be called with context. It gives OK, Already (the
// source had been requested, and callback was called here and now), Invalid, or Busy. A nil source is never requested.
func (r *RegistrationMemory) Register(s *SourceMemory, callback, context uintptr) int {
	if r == nil || callback == 0 {
		return Invalid
	}
	if r.Source != 0 {
		return Busy
	}
	if s == nil {
		return OK
	}
	r.Callback, r.Context, r.Source = uint64(callback), uint64(context), addressOf(s)
	// The decision falls under the lock: either the requester will find the registration, or it is seen here that it came
	// too late (MUTANT_CHECK_BEFORE_LOCK of docs/models/cancel.pml loses a callback).
	bits := s.lock(0)
	if bits&sourceRequested == 0 {
		r.State = waiting
		link(&s.Newest, r)
		s.unlock(bits)
		return OK
	}
	s.unlock(bits) // a request stays: the lock may be let go while the thread is asked for
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := host.Thread()
	s.lock(0)
	r.begin(s, thread)
	s.unlock(bits)
	invoke(uint64(callback), uint64(context))
	s.lock(0)
	s.end(r, thread)
	s.unlock(bits)
	return Already
}

// Deregister is weft_cancel_deregister: when it returns, the callback has ended or will never run, unless this very
// thread is in it. It gives OK (never called), Already (called, or being called by this thread) or Invalid.
func (r *RegistrationMemory) Deregister() int {
	if r == nil {
		return Invalid
	}
	s := at[SourceMemory](r.Source)
	if s == nil {
		return OK
	}
	bits := s.lock(0)
	if r.State == running {
		s.unlock(bits)
		bits = r.await(s)
	}
	result := Already
	switch r.State {
	case waiting:
		unlink(&s.Newest, r)
		result = OK
	case running:
		unlink(&s.Running, r)
	}
	r.State = idle
	r.Source = 0
	s.unlock(bits)
	return result
}

// await waits until no other thread runs the callback, and returns with the source locked. The goroutine stays on its
// thread, so that equal numbers mean that it is itself inside the callback.
func (r *RegistrationMemory) await(s *SourceMemory) uint32 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := host.Thread()
	for attempt := 0; ; attempt++ {
		bits := s.lock(0)
		if r.State != running || r.Thread == thread {
			return bits
		}
		s.unlock(bits)
		pause(attempt)
	}
}
