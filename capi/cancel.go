package capi

// #include <stdlib.h>
// #include "cancel_host.h"
import "C"

import (
	"unsafe"

	"weft/cancel"
)

func init() {
	cancel.Install(cancel.Host{
		Thread:   func() uint64 { return uint64(C.weft_cancel_thread()) },
		Call:     func(function, context uintptr) { C.weft_cancel_call(C.uintptr_t(function), C.uintptr_t(context)) },
		Function: uintptr(C.weft_cancel_call_go),
		Allocate: func(bytes uintptr) unsafe.Pointer {
			p := C.calloc(1, C.size_t(bytes))
			if p == nil {
				panic("weft: out of memory") // as when Go's own heap cannot grow
			}
			return p
		},
	})
}

//export weftgo_cancel_dispatch
func weftgo_cancel_dispatch(context C.uintptr_t) { cancel.Dispatch(uintptr(context)) }
