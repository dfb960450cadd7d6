// Package canceltest holds every end of cancellation to one table of scenarios: whoever requests and whoever registers, be it Go
// or C, keep the same promises to each other. Run walks the table with one pair of ends, Sequence plays a random program
// against a model. The Go end's tests and those of the C end call both.
package canceltest

import "weft/cancel"

// End is one implementation of include/weft/c/cancel.h. The results are those of the C functions.
type End interface {
	Name() string
	Request(source *cancel.SourceMemory) int
	Requested(source *cancel.SourceMemory) bool
	Register(source *cancel.SourceMemory, registration *cancel.RegistrationMemory, function, context uintptr) int
	Deregister(registration *cancel.RegistrationMemory) int

	// Function is a C function that calls cancel.Dispatch with its context: what this end has as its callbacks.
	Function() uintptr
}

// Pair is who requests and who registers.
type Pair struct {
	Requester, Registrar End
}

// Name names a subtest.
func (p Pair) Name() string {
	return p.Requester.Name() + "-requests-" + p.Registrar.Name() + "-registers"
}

// Go is the Go end with Go's own callbacks.
type Go struct{}

func (Go) Name() string                               { return "go" }
func (Go) Request(source *cancel.SourceMemory) int    { return source.Request() }
func (Go) Requested(source *cancel.SourceMemory) bool { return source.Requested() }
func (Go) Register(s *cancel.SourceMemory, r *cancel.RegistrationMemory, function, context uintptr) int {
	return r.Register(s, function, context)
}
func (Go) Deregister(registration *cancel.RegistrationMemory) int { return registration.Deregister() }
func (Go) Function() uintptr                                      { return cancel.Callback(0).Function() }

func (Go) ofGo() {} // see watched

// Foreign is the Go end with callbacks that are C functions, which it must call through the host.
type Foreign struct {
	Go
	Callback uintptr
}

func (Foreign) Name() string        { return "foreign" }
func (f Foreign) Function() uintptr { return f.Callback }
