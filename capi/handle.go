package capi

/*
#include "lane_internal.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"weft/core"
)

// A runtime's handle is its slot + 1 in the low byte and a number that no handle of the slot had before above it. The slot's shared memory
// is a static table in C, so that a stale handle is compared with live memory and found stale.

const slotsMax = C.LANE_RUNTIMES_MAX

// entry is a slot that is in use.
type entry struct {
	id        uint64
	slot      uint32
	runtime   *core.Runtime
	main      func(i int) // what the slot's threads call
	join      sync.Once   // waits for the threads
	destroyed bool        // guarded by table.mu: somebody is destroying it
}

var table struct {
	mu      sync.Mutex
	entries [slotsMax]*entry
	issued  uint64 // guarded by mu: handles given out
}

func shared(slot uint32) *core.RuntimeMemory {
	return (*core.RuntimeMemory)(unsafe.Pointer(&C.lane_table[slot]))
}

// reserve takes a free slot, or returns nil.
func reserve() *entry {
	table.mu.Lock()
	defer table.mu.Unlock()
	for slot, used := range table.entries {
		if used == nil {
			table.issued++
			e := &entry{id: table.issued<<8 | uint64(slot+1), slot: uint32(slot)}
			table.entries[slot] = e
			return e
		}
	}
	return nil
}

// release frees the slot.
func (e *entry) release() {
	table.mu.Lock()
	defer table.mu.Unlock()
	table.entries[e.slot] = nil
}

// claim marks the entry for destruction; false when somebody else did.
func (e *entry) claim() bool {
	table.mu.Lock()
	defer table.mu.Unlock()
	first := !e.destroyed
	e.destroyed = true
	return first
}

// find returns the entry of a live handle, or nil.
func find(id uint64) *entry {
	slot := id&0xff - 1
	if slot >= slotsMax {
		return nil
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	if e := table.entries[slot]; e != nil && e.id == id && e.runtime != nil {
		return e
	}
	return nil
}

// runtimeOf returns the runtime of a live handle, or nil.
func runtimeOf(id uint64) *core.Runtime {
	if e := find(id); e != nil {
		return e.runtime
	}
	return nil
}
