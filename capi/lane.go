package capi

/*
#include <stdlib.h>
#include <string.h>
#include "crossing.h"
#include <sys/mman.h>
#include "lane_internal.h"
#include "threads.h"

// The lane runs in the ops' floating-point environment, and Go in its own.
static uint32_t lane_run_ops(lane_worker *worker) {
	lane_set_floating(lane_ops_floating);
	uint32_t reason = lane_run(worker);
	lane_ops_floating = lane_take_floating();
	return reason;
}

static void lane_call(uintptr_t function, uintptr_t argument) { ((void (*)(void *))function)((void *)argument); }

static void *lane_alloc(size_t bytes) {
	size_t rounded = (bytes + 127) & ~(size_t)127;
	void *memory = aligned_alloc(128, rounded);
	if (memory != NULL) memset(memory, 0, rounded);
	return memory;
}

static void lane_rouse(lane_worker *worker) { lane_futex_wake(&worker->life); }

// LeakSanitizer does not look for pointers in mappings of which it was not told.
extern __attribute__((weak)) void __lsan_register_root_region(const void *, size_t);

static void *lane_map(size_t bytes) {
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) return NULL;
	if (__lsan_register_root_region != NULL) __lsan_register_root_region(memory, bytes);
	return memory;
}

static void lane_end_watch(lane_runtime *runtime) {
	atomic_store_explicit(&runtime->monitor, LANE_MONITOR_ENDS, memory_order_seq_cst);
	lane_futex_wake(&runtime->monitor);
}
*/
import "C"

import (
	"unsafe"

	"weft/core"
)

// lane is core.Lane in C.
type lane struct{}

func workerOf(w *core.WorkerMemory) *C.lane_worker   { return (*C.lane_worker)(unsafe.Pointer(w)) }
func memoryOf(r *core.RuntimeMemory) *C.lane_runtime { return (*C.lane_runtime)(unsafe.Pointer(r)) }

func (lane) Run(w *core.WorkerMemory) core.Reason { return core.Reason(C.lane_run_ops(workerOf(w))) }

func (lane) Watch(r *core.RuntimeMemory) core.Reason { return core.Reason(C.lane_watch(memoryOf(r))) }

func (lane) EndWatch(r *core.RuntimeMemory) { C.lane_end_watch(memoryOf(r)) }

func (lane) Wake(r *core.RuntimeMemory, w *core.WorkerMemory) {
	C.lane_wake(memoryOf(r), workerOf(w))
}

func (lane) WakeOne(r *core.RuntimeMemory) { C.lane_wake_one(memoryOf(r)) }

func (lane) Rest(w *core.WorkerMemory) bool { return bool(C.lane_rest(workerOf(w))) }

func (lane) Rouse(w *core.WorkerMemory) { C.lane_rouse(workerOf(w)) }

func (lane) Barrier() { C.lane_barrier() }

func (lane) Pause(spins uint32) { C.lane_pause(C.uint32_t(spins)) }

func (lane) Now() int64 { return int64(C.lane_now()) }

// memory is core.PageMemory from C's heap; the rings that it gives out are grown and freed by C, too.
type memory struct{}

func (memory) Alloc(bytes uintptr) unsafe.Pointer { return C.lane_alloc(C.size_t(bytes)) }

func (memory) Free(p unsafe.Pointer) { C.free(p) }

func (memory) Map(bytes uintptr) unsafe.Pointer { return C.lane_map(C.size_t(bytes)) }

func (memory) Clear(p unsafe.Pointer, bytes uintptr) { C.madvise(p, C.size_t(bytes), C.MADV_DONTNEED) }

func call(function, argument uintptr) { C.lane_call(C.uintptr_t(function), C.uintptr_t(argument)) }
