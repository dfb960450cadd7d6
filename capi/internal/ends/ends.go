// Package ends gives the C end of cancellation to Go's tests, which cannot use cgo themselves. It compiles
// capi/cancel.c alone, without the rest of the library, and installs the host as the library does.
//
// The files of capi and the header stand here as symbolic links, because the go command looks for changes in a package's own
// directory only: a file that is merely included would be tested as it was when it was compiled first.
package ends

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I${SRCDIR}/../../../include
// #cgo windows CFLAGS: -DWEFT_STATIC
// #include <stdlib.h>
// #include "cancel_host.h"
// #include "ends.h"
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
		Allocate: Allocate,
	})
}

//export weftgo_cancel_dispatch
func weftgo_cancel_dispatch(context C.uintptr_t) { cancel.Dispatch(uintptr(context)) }

// Allocate gives memory of C's.
func Allocate(bytes uintptr) unsafe.Pointer { return C.calloc(1, C.size_t(bytes)) }

// End is the end in C, with a C function for callbacks.
type End struct{}

func source(s *cancel.SourceMemory) *C.weft_cancel_source {
	return (*C.weft_cancel_source)(unsafe.Pointer(s))
}

func registration(r *cancel.RegistrationMemory) *C.weft_cancel_registration {
	return (*C.weft_cancel_registration)(unsafe.Pointer(r))
}

func (End) Name() string { return "c" }

func (End) Request(s *cancel.SourceMemory) int { return int(C.weft_cancel_request(source(s))) }

func (End) Requested(s *cancel.SourceMemory) bool { return C.weft_cancel_requested(source(s)) != 0 }

func (End) Register(s *cancel.SourceMemory, r *cancel.RegistrationMemory, function, context uintptr) int {
	return int(C.ends_register(source(s), registration(r), C.uintptr_t(function), C.uintptr_t(context)))
}

func (End) Deregister(r *cancel.RegistrationMemory) int {
	return int(C.weft_cancel_deregister(registration(r)))
}

func (End) Function() uintptr { return uintptr(C.ends_callback) }

// Layout tells sizes and offsets as C sees them, in the order of ends_layout in ends.c.
func Layout() []uintptr {
	var layout []uintptr
	for _, n := range C.ends_layout {
		layout = append(layout, uintptr(n))
	}
	return layout
}

// Codes tells C's values of cancel.OK, Invalid and Busy.
func Codes() [3]int { return [3]int{C.WEFT_OK, C.WEFT_EINVAL, C.WEFT_EBUSY} }
