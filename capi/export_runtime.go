package capi

/*
#include "blocking.h"
#include "crossing.h"
#include "file.h"
#include "threads.h"
#include "watch.h"
*/
import "C"

import (
	"runtime"

	"weft/core"
)

// guard turns a panic of an export into WEFT_EPANIC. Deferred, with the export's result.
func guard(code *C.int) {
	if recover() != nil {
		*code = C.WEFT_EPANIC
	}
}

// codeOf translates what core returns.
func codeOf(err error) C.int {
	if err == nil {
		return C.WEFT_OK
	}
	if e, ok := err.(core.Error); ok {
		return C.int(e)
	}
	return C.WEFT_ESYSTEM
}

// errorOf is the inverse of codeOf.
func errorOf(code C.int) error {
	if code == C.WEFT_OK {
		return nil
	}
	return core.Error(code)
}

//export weftgo_runtime_create
func weftgo_runtime_create(config *C.weft_runtime_config, id *C.uint64_t) (code C.int) {
	defer guard(&code)
	e := reserve()
	if e == nil {
		return C.WEFT_ELIMIT
	}
	cpus := runtime.GOMAXPROCS(0)
	workers, most := int(config.workers), int(config.max_workers)
	if workers == 0 {
		workers = min(cpus, most)
	}
	r, err := core.New(core.Config{
		Shared:     shared(e.slot),
		ID:         e.id,
		Workers:    workers,
		Most:       most,
		CPUs:       cpus,
		Lane:       lane{},
		Memory:     memory{},
		Poller:     newPoller(),
		Call:       call,
		Cancel:     e.cancel,
		Asymmetric: bool(C.lane_asymmetric),
		Start: func(workers int, main func(i int)) error {
			e.main = main
			C.blocking_open(C.uint32_t(e.slot), C.uint64_t(e.id), config.blocking_threads, config.stack_bytes, config.name)
			report := C.watch_report{
				runtime: C.weft_runtime{id: C.uint64_t(e.id)}, callback: config.on_stall, context: config.stall_context,
				after_ns: config.stall_ns, log: config.flags&C.WEFT_RUNTIME_LOG_STALLS != 0,
			}
			C.watch_begin(C.uint32_t(e.slot), &report)
			return errorOf(C.lane_threads_start(C.uint32_t(e.slot), C.uint32_t(workers), config))
		},
		Add: func(i int) error { return errorOf(C.lane_threads_add(C.uint32_t(e.slot), C.uint32_t(i))) },
	})
	if err != nil {
		e.release()
		return codeOf(err)
	}
	r.Descriptors().RetryWith(retry())
	table.mu.Lock()
	e.runtime = r
	table.mu.Unlock()
	*id = C.uint64_t(e.id)
	return C.WEFT_OK
}

//export weftgo_thread_main
func weftgo_thread_main(slot C.uint32_t, index C.int32_t) {
	table.mu.Lock()
	main := table.entries[slot].main
	table.mu.Unlock()
	C.lane_threads_enter()
	main(int(index))
}

// cancel is core.Config.Cancel.
func (e *entry) cancel() {
	C.file_stop(C.uint32_t(e.slot))
	C.blocking_close(C.uint32_t(e.slot))
	cancelLookups(e.slot)
}

// end waits for the runtime's workers and its threads. Not on one of them.
func (e *entry) end() {
	e.runtime.Stop()
	e.join.Do(func() { // the long wait, in C, where the host's signals come through
		C.lane_threads_join(C.uint32_t(e.slot))
		C.blocking_join(C.uint32_t(e.slot))
	})
	e.runtime.Wait()
}

//export weftgo_runtime_stop
func weftgo_runtime_stop(id C.uint64_t, wait C.int) (code C.int) {
	defer guard(&code)
	e := find(uint64(id))
	if e == nil {
		return C.WEFT_EBADHANDLE
	}
	if wait == 0 {
		e.runtime.Stop()
	} else {
		e.end()
	}
	return C.WEFT_OK
}

//export weftgo_runtime_destroy
func weftgo_runtime_destroy(id C.uint64_t, wait C.int) (code C.int) {
	defer guard(&code)
	e := find(uint64(id))
	if e == nil || !e.claim() {
		return C.WEFT_EBADHANDLE
	}
	reap := func() {
		e.end()
		e.runtime.Destroy()
		C.file_close_all(C.uint32_t(e.slot))
		e.release()
	}
	if wait == 0 {
		e.runtime.Stop()
		go reap()
	} else {
		reap()
	}
	return C.WEFT_OK
}
