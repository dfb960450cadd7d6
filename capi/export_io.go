package capi

/*
#include <stdint.h>
#include "io.h"
*/
import "C"

import (
	"unsafe"

	"weft/core"
)

// retry is what ops run that try again.
func retry() uintptr { return uintptr(unsafe.Pointer(C.io_retry)) }

//export weftgo_descriptor_open
func weftgo_descriptor_open(runtime C.uint64_t, system C.int32_t, kind C.uint32_t, handle *C.uint64_t) (code C.int) {
	defer guard(&code)
	r := runtimeOf(uint64(runtime))
	if r == nil {
		return C.WEFT_EBADHANDLE
	}
	opened, err := r.Descriptors().Open(int32(system), uint32(kind))
	if err != nil {
		return codeOf(err)
	}
	*handle = C.uint64_t(opened)
	return C.WEFT_OK
}

//export weftgo_descriptor_close
func weftgo_descriptor_close(runtime, descriptor C.uint64_t, waited *C.uint64_t) (code C.int) {
	defer guard(&code)
	r := runtimeOf(uint64(runtime))
	if r == nil {
		return C.WEFT_EBADHANDLE
	}
	// At most one op for each direction.
	ops := unsafe.Slice((*uint64)(unsafe.Pointer(waited)), 2)[:0]
	err := r.Descriptors().Close(uint64(descriptor), func(op *core.Op) { ops = append(ops, core.AddressOf(op)) })
	return codeOf(err)
}
