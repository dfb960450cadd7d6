package cancel

import (
	"sync"
	"unsafe"
)

// pool hands out records of shared memory for Go's own sources and registrations. It never gives memory back to the host, so
// a late look at a source that was closed reads a source and no foreign memory.
type pool[T any] struct {
	mu   sync.Mutex
	free []*T // guarded by mu
}

const poolChunk = 64 // records per Allocate: 1.5 and 3.5 KiB

var (
	sources       pool[SourceMemory]
	registrations pool[RegistrationMemory]
)

// get gives a zeroed record.
func (p *pool[T]) get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		chunk := unsafe.Slice((*T)(host.Allocate(poolChunk*unsafe.Sizeof(*new(T)))), poolChunk)
		for i := range chunk {
			p.free = append(p.free, &chunk[i])
		}
	}
	t := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	clear(unsafe.Slice(t, 1))
	return t
}

// put takes a record back that nothing refers to any more.
func (p *pool[T]) put(t *T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, t)
}
