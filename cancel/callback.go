package cancel

import "sync"

// Callback is a Go function as C sees it: a number, to be passed as context to Callback's Function.
type Callback uintptr

// callbacks holds the functions, by number - 1. A table, because C must not keep Go pointers.
var callbacks struct {
	mu        sync.RWMutex
	functions []func() // guarded by mu
	free      []Callback
}

// NewCallback enters a Go function; Release takes it out again.
func NewCallback(f func()) Callback {
	callbacks.mu.Lock()
	defer callbacks.mu.Unlock()
	if n := len(callbacks.free); n > 0 {
		c := callbacks.free[n-1]
		callbacks.free = callbacks.free[:n-1]
		callbacks.functions[c-1] = f
		return c
	}
	callbacks.functions = append(callbacks.functions, f)
	return Callback(len(callbacks.functions))
}

// Function is the C function to register, with the callback as its context.
func (c Callback) Function() uintptr { return host.Function }

// Release forgets the Go function. Deregister first. A callback that is running, on this thread, may release itself.
func (c Callback) Release() {
	raceAcquire(uint64(c))
	callbacks.mu.Lock()
	defer callbacks.mu.Unlock()
	callbacks.functions[c-1] = nil
	callbacks.free = append(callbacks.free, c)
}

// Dispatch calls a Go callback, by its number. Host.Function is C's way to it.
func Dispatch(context uintptr) {
	callbacks.mu.RLock()
	f := callbacks.functions[context-1]
	callbacks.mu.RUnlock()
	f()
	raceRelease(uint64(context))
}
