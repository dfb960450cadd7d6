package cancel

import "sync/atomic"

// Registration is one Go function that waits for one source. Zero is idle. It must not be copied while registered.
type Registration struct {
	memory   atomic.Pointer[RegistrationMemory] // atomic: of several who deregister, one does; nil while idle
	callback Callback                           // written before memory
}

// Register has f called when the token is requested, on the requester's thread; at once, on this one, if it has been requested
// already. It tells whether it called f. f must be short and must not panic; it may deregister this or any other
// registration, and register new ones.
func (r *Registration) Register(t Token, f func()) bool {
	if t.memory == nil {
		return false
	}
	memory := registrations.get()
	callback := NewCallback(f)
	r.callback = callback
	if !r.memory.CompareAndSwap(nil, memory) {
		panic("cancel: registration is in use")
	}
	return memory.Register(t.memory, callback.Function(), uintptr(callback)) == Already
}

// Deregister waits until f has ended, if another thread is in it, and never for itself. It tells whether it came before f:
// true means that f was not called and never will be. Of several calls the first one counts, and the others, which do not wait, tell
// false; so does one for an idle registration.
func (r *Registration) Deregister() bool {
	callback := r.callback
	memory := r.memory.Swap(nil)
	if memory == nil {
		return false
	}
	result := memory.Deregister()
	callback.Release()
	registrations.put(memory)
	return result == OK
}
