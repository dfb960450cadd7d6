package cancel

import (
	"sync/atomic"
	"unsafe"
)

// SourceMemory is weft_cancel_source. Zeroed memory is a source that has not been requested. It must not move, so it is
// never a Go variable: C owns it, or Host.Allocate made it.
type SourceMemory struct {
	State    atomic.Uint32 // atomic, see lock
	Reserved uint32
	Newest   uint64 // lock: registrations that wait, newest first
	Running  uint64 // lock: registrations whose callback runs
}

// RegistrationMemory is weft_cancel_registration. Zeroed memory is a registration that is not registered. It must not move.
type RegistrationMemory struct {
	Callback uint64 // immutable while registered: C function
	Context  uint64 // immutable while registered
	Source   uint64 // owner: registrant; 0 while idle
	Previous uint64 // lock
	Next     uint64 // lock
	Thread   uint64 // lock: who runs the callback
	State    uint32 // lock
	Reserved uint32
}

// Bits of SourceMemory.State.
const (
	sourceRequested = uint32(1)
	sourceLocked    = uint32(2)
)

// Values of RegistrationMemory.State.
const (
	idle    uint32 = iota
	waiting        // on Newest
	running        // on Running
	called         // on no list; its callback has ended
)

// What the functions on shared memory return, as in include/weft/c/cancel.h.
const (
	OK      = 0
	Already = 1  // had been requested, or called, before
	Invalid = -1 // WEFT_EINVAL
	Busy    = -4 // WEFT_EBUSY
)

// at turns an address in shared memory into a pointer; nil for 0. The memory is not Go's, or pinned, so no rule of unsafe
// is at stake; the detour keeps vet from taking it for a Go pointer in an integer.
func at[T any](address uint64) *T {
	p := uintptr(address)
	return *(**T)(unsafe.Pointer(&p))
}

// addressOf is the inverse of at.
func addressOf[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

// link puts a registration at the front of a list of a source, under its lock.
func link(first *uint64, r *RegistrationMemory) {
	r.Previous, r.Next = 0, *first
	if r.Next != 0 {
		at[RegistrationMemory](r.Next).Previous = addressOf(r)
	}
	*first = addressOf(r)
}

// unlink takes a registration off the list that it is on, under the lock.
func unlink(first *uint64, r *RegistrationMemory) {
	if r.Previous != 0 {
		at[RegistrationMemory](r.Previous).Next = r.Next
	} else {
		*first = r.Next
	}
	if r.Next != 0 {
		at[RegistrationMemory](r.Next).Previous = r.Previous
	}
}
