package cancel

import "unsafe"

// Host is what the end in Go needs of the program that it lives in. The library's is in capi/cancel.go, the one for
// tests without cgo in purehost.
type Host struct {
	// Thread tells who the calling thread is: a number that no other living thread has, and the one that the C end of the same
	// program uses. It is called by goroutines that are locked to their thread.
	Thread func() uint64

	// Call calls a C function of type weft_cancel_fn on the calling thread.
	Call func(function, context uintptr)

	// Function is a C function of type weft_cancel_fn that calls Dispatch with its context.
	Function uintptr

	// Allocate gives zeroed memory, aligned for 8 bytes, that is never moved and never freed; Go's sources and
	// registrations are made of it. Where there is a C end it must be C's memory: a Go pointer may be kept by C only while it is pinned,
	// and the lists of a source are kept by C.
	Allocate func(bytes uintptr) unsafe.Pointer
}

// host is set once, before anything else of this package is used.
var host = Host{
	Thread:   func() uint64 { panic(noHost) },
	Call:     func(uintptr, uintptr) { panic(noHost) },
	Allocate: func(uintptr) unsafe.Pointer { panic(noHost) },
}

const noHost = "cancel: Install has not been called"

// Install sets the host. Call it from an init function or from TestMain, once.
func Install(h Host) {
	if host.Function != 0 {
		panic("cancel: Install called twice")
	}
	host = h
}

// Thread tells who the calling thread is; see Host.Thread.
func Thread() uint64 { return host.Thread() }

// invoke calls a callback. A Go function needs no way round through C.
func invoke(callback, context uint64) {
	if uintptr(callback) == host.Function {
		Dispatch(uintptr(context))
		return
	}
	host.Call(uintptr(callback), uintptr(context))
}
