package capi

/*
#include <string.h>
#include "crossing.h"
#include "lane_internal.h"
#include "threads.h"
#include "tsan.h"

// The lane runs in the ops' floating-point environment, and Go in its own.
static uint32_t lane_run_ops(lane_worker *worker) {
	lane_set_floating(lane_ops_floating);
	uint32_t reason = lane_run(worker);
	lane_ops_floating = lane_take_floating();
	return reason;
}

static void lane_call(uintptr_t function, uintptr_t argument) { ((void (*)(void *))function)((void *)argument); }

static void *lane_allocate_zeroed(size_t bytes) {
	void *memory = lane_allocate(bytes);
	if (memory != NULL) memset(memory, 0, bytes);
	tsan_release(memory);
	return memory;
}

static void lane_rouse(lane_worker *worker) { lane_futex_wake(&worker->life); }

static void lane_linger(lane_runtime *runtime, int64_t ns) {
	lane_futex_wait(&runtime->drained, 0, lane_now() + ns);
	WEFT_TEST_DELAY(lane_lingered);
}

static void lane_end_linger(lane_runtime *runtime) {
	atomic_store_explicit(&runtime->drained, 1, memory_order_seq_cst);
	WEFT_TEST_DELAY(lane_drained);
	lane_futex_wake(&runtime->drained);
}

static void lane_end_watch(lane_runtime *runtime) {
	atomic_store_explicit(&runtime->monitor, LANE_MONITOR_ENDS, memory_order_seq_cst);
	WEFT_TEST_DELAY(lane_watch_to_end);
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

func (lane) Linger(r *core.RuntimeMemory, ns int64) { C.lane_linger(memoryOf(r), C.int64_t(ns)) }

func (lane) EndLinger(r *core.RuntimeMemory) { C.lane_end_linger(memoryOf(r)) }

func (lane) Barrier() { C.lane_barrier() }

func (lane) Pause(spins uint32) { C.lane_pause(C.uint32_t(spins)) }

func (lane) Now() int64 { return int64(C.lane_now()) }

// memory is core.PageMemory from C's heap; the rings that it gives out are grown and freed by C, too.
type memory struct{}

func (memory) Alloc(bytes uintptr) unsafe.Pointer { return C.lane_allocate_zeroed(C.size_t(bytes)) }

func (memory) Free(p unsafe.Pointer) { C.lane_free(p) }

func (memory) Map(bytes uintptr) unsafe.Pointer { return C.lane_map(C.size_t(bytes)) }

func (memory) Clear(p unsafe.Pointer, bytes uintptr) { C.lane_map_clear(p, C.size_t(bytes)) }

func call(function, argument uintptr) { C.lane_call(C.uintptr_t(function), C.uintptr_t(argument)) }
