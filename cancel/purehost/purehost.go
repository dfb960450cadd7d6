// Package purehost lets package cancel work in a program without cgo: C functions are called, and made, by purego. It is
// for tests; importing it installs it.
package purehost

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"weft/cancel"
)

func init() {
	cancel.Install(cancel.Host{
		Thread:   thread,
		Call:     func(function, context uintptr) { purego.SyscallN(function, context) },
		Function: purego.NewCallback(Dispatch),
		Allocate: Allocate,
	})
}

// Dispatch is cancel.Dispatch in the shape that purego.NewCallback wants.
func Dispatch(context uintptr) uintptr {
	cancel.Dispatch(context)
	return 0
}

var pinned struct {
	mu     sync.Mutex
	pinner runtime.Pinner
}

// Allocate gives Go memory that is pinned for good. It holds no pointers, so the collector has nothing to find in it. Being Go's, it
// lets the race detector see every access, which C's memory would hide.
func Allocate(bytes uintptr) unsafe.Pointer {
	words := make([]uint64, (bytes+7)/8)
	pinned.mu.Lock()
	defer pinned.mu.Unlock()
	pinned.pinner.Pin(&words[0])
	return unsafe.Pointer(&words[0])
}
