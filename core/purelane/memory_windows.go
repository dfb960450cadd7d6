package purelane

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// Memory is core.Memory from the system: zeroed, aligned to the allocation granularity, and unknown to Go's collector.
type Memory struct{}

// Alloc reserves and commits memory.
func (Memory) Alloc(bytes uintptr) unsafe.Pointer {
	p, err := windows.VirtualAlloc(0, bytes, windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// Free releases it.
func (Memory) Free(p unsafe.Pointer) {
	if p == nil {
		return
	}
	if err := windows.VirtualFree(uintptr(p), 0, windows.MEM_RELEASE); err != nil {
		panic(err)
	}
}

// Map is Alloc: a mapping costs nothing until it is touched.
func (m Memory) Map(bytes uintptr) unsafe.Pointer { return m.Alloc(bytes) }

// Clear zeroes it.
func (m Memory) Clear(p unsafe.Pointer, bytes uintptr) { clear(unsafe.Slice((*byte)(p), bytes)) }
