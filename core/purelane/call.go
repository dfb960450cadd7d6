package purelane

import (
	"sync"

	"github.com/ebitengine/purego"
)

// arguments keeps the argument slices of Call, so that a call allocates nothing.
var arguments = sync.Pool{New: func() any { return new([1]uintptr) }}

// Call calls a C function pointer with one argument, without cgo.
func Call(function, argument uintptr) {
	args := arguments.Get().(*[1]uintptr)
	args[0] = argument
	purego.SyscallN(function, args[:]...)
	arguments.Put(args)
}
