package cancel

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrRequested is the cause of a context that Token.Context ended.
var ErrRequested = errors.New("cancel: source requested")

// FromContext makes a source that is requested when ctx ends; before FromContext returns if it has ended already. No goroutine
// waits meanwhile; the callbacks run on one that starts when ctx ends. Call stop instead of Close, when no registrations are left:
// it cuts the tie and gives the source's memory back, or leaves that to a request that is just running. More
// calls of stop do nothing. stop never waits, so a callback of the source may call it.
func FromContext(ctx context.Context) (source *Source, stop func()) {
	source = NewSource()
	if ctx.Err() != nil {
		source.Request()
	}
	var left atomic.Int32 // of two: who calls stop, and who requests or will never; the second one closes
	leave := func() {
		if left.Add(1) == 2 {
			source.Close()
		}
	}
	cut := context.AfterFunc(ctx, func() {
		source.Request()
		leave()
	})
	var stopped atomic.Bool
	return source, func() {
		if stopped.Swap(true) {
			return
		}
		if cut() {
			leave()
		}
		leave()
	}
}

// Context makes a child of parent that ends when the token is requested, with ErrRequested as its cause. Call stop when
// it is no longer needed: it ends the context and deregisters it from the token.
func (t Token) Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	r := new(Registration)
	r.Register(t, func() { end(ErrRequested) })
	return ctx, func() {
		r.Deregister()
		end(context.Canceled)
	}
}
