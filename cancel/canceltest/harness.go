package canceltest

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"weft/cancel"
)

// Memory makes zeroed shared memory, as cancel.Host.Allocate does.
type Memory func(bytes uintptr) unsafe.Pointer

// patience is how long a scenario waits for something that must happen: the watchdog, never the measure of success.
const patience = 30 * time.Second

// harness gives a scenario memory that can be destroyed, callbacks and threads. Destroyed memory is poisoned, reused newest
// first, and checked: nobody may write to it.
type harness struct {
	*testing.T
	Pair
	memory Memory

	mu            sync.Mutex
	callbacks     map[*cancel.RegistrationMemory]cancel.Callback // guarded by mu
	sources       []*cancel.SourceMemory                         // guarded by mu: destroyed
	registrations []*cancel.RegistrationMemory                   // guarded by mu: destroyed
}

func newHarness(t *testing.T, pair Pair, memory Memory) *harness {
	h := &harness{T: t, Pair: pair, memory: memory, callbacks: map[*cancel.RegistrationMemory]cancel.Callback{}}
	t.Cleanup(func() {
		for _, s := range h.sources {
			assert.True(t, poisoned(s), "a destroyed source was written to")
		}
		for _, r := range h.registrations {
			assert.True(t, poisoned(r), "a destroyed registration was written to")
		}
	})
	return h
}

const poison = 0xa5

func bytesOf[T any](p *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p)) }

func fill[T any](p *T) {
	for i := range bytesOf(p) {
		bytesOf(p)[i] = poison
	}
}

func poisoned[T any](p *T) bool {
	for _, b := range bytesOf(p) {
		if b != poison {
			return false
		}
	}
	return true
}

func addressOf(s *cancel.SourceMemory) uintptr { return uintptr(unsafe.Pointer(s)) }

func pointerTo(address uintptr) *cancel.SourceMemory {
	return *(**cancel.SourceMemory)(unsafe.Pointer(&address)) // not Go's memory, or pinned
}

// reuse takes the record that was destroyed last, or makes one.
func reuse[T any](h *harness, free *[]*T) *T {
	if len(*free) == 0 {
		return (*T)(h.memory(unsafe.Sizeof(*new(T))))
	}
	p := (*free)[len(*free)-1]
	*free = (*free)[:len(*free)-1]
	assert.True(h, poisoned(p), "destroyed memory was written to")
	clear(bytesOf(p))
	return p
}

func (h *harness) source() *cancel.SourceMemory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return reuse(h, &h.sources)
}

func (h *harness) registration() *cancel.RegistrationMemory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return reuse(h, &h.registrations)
}

func (h *harness) destroySource(s *cancel.SourceMemory) {
	fill(s) // first of all, so as to catch who comes too late
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources = append(h.sources, s)
}

func (h *harness) destroy(r *cancel.RegistrationMemory) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.callbacks[r]; ok {
		delete(h.callbacks, r)
		c.Release()
	}
	fill(r)
	h.registrations = append(h.registrations, r)
}

func (h *harness) request(s *cancel.SourceMemory) int { return h.Requester.Request(s) }

// registerBy registers a Go function through an end, with that end's kind of callback.
func (h *harness) registerBy(end End, s *cancel.SourceMemory, r *cancel.RegistrationMemory, f func()) int {
	c := cancel.NewCallback(f)
	h.mu.Lock()
	if old, ok := h.callbacks[r]; ok {
		old.Release()
	}
	h.callbacks[r] = c
	h.mu.Unlock()
	return end.Register(s, r, end.Function(), uintptr(c))
}

func (h *harness) register(s *cancel.SourceMemory, r *cancel.RegistrationMemory, f func()) int {
	return h.registerBy(h.Registrar, s, r, f)
}

// add registers with new memory.
func (h *harness) add(s *cancel.SourceMemory, f func()) *cancel.RegistrationMemory {
	r := h.registration()
	assert.Equal(h, cancel.OK, h.register(s, r, f))
	return r
}

func (h *harness) deregister(r *cancel.RegistrationMemory) int { return h.Registrar.Deregister(r) }

// drop deregisters and destroys.
func (h *harness) drop(r *cancel.RegistrationMemory) int {
	result := h.deregister(r)
	h.destroy(r)
	return result
}

// thread runs f on a thread of its own; the channel closes at its end.
func (h *harness) thread(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f()
	}()
	return done
}

// await waits for a channel to close. A test that waits too long has deadlocked, and only all stacks can tell where.
func (h *harness) await(what string, c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(patience):
		panic("canceltest: " + h.Name() + ": waited too long for " + what)
	}
}
