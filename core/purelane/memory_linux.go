package purelane

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is core.Memory from the system, a mapping a piece: pages are zeroed, aligned, and unknown to Go's collector.
type Memory struct{}

// Alloc maps memory; its length is kept in a page before it.
func (Memory) Alloc(bytes uintptr) unsafe.Pointer {
	page := uintptr(unix.Getpagesize())
	p, err := unix.MmapPtr(-1, 0, nil, bytes+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	*(*uintptr)(p) = bytes + page
	return unsafe.Add(p, page)
}

// Free unmaps it.
func (Memory) Free(p unsafe.Pointer) {
	if p == nil {
		return
	}
	base := unsafe.Add(p, -unix.Getpagesize())
	if err := unix.MunmapPtr(base, *(*uintptr)(base)); err != nil {
		panic(err)
	}
}

// Map is Alloc: a mapping costs nothing until it is touched.
func (m Memory) Map(bytes uintptr) unsafe.Pointer { return m.Alloc(bytes) }

// Clear gives the pages back, and keeps their addresses.
func (m Memory) Clear(p unsafe.Pointer, bytes uintptr) {
	if err := unix.Madvise(unsafe.Slice((*byte)(p), bytes), unix.MADV_DONTNEED); err != nil {
		panic(err)
	}
}
