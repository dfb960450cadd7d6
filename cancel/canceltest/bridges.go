package canceltest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"

	"weft/cancel"
)

// bridges: child sources and contexts, which are Go's, on sources of either end.
var bridges = []scenario{
	{"a child is requested with its parent", func(h *harness) {
		parent := h.source()
		child := cancel.NewChild(tokenOf(parent))
		grandchild := cancel.NewChild(child.Token())
		leaf := cancel.TokenAt(grandchild.Token().Address())
		var order []int
		r := h.registration()
		h.registerBy(h.Registrar, sourceAt(leaf), r, func() { order = append(order, 1) })
		assert.False(h, grandchild.Requested())
		h.request(parent)
		assert.True(h, child.Requested())
		assert.True(h, h.Registrar.Requested(sourceAt(leaf)))
		assert.Equal(h, []int{1}, order)
		h.drop(r)
		grandchild.Close()
		child.Close()
	}},
	{"a child that is requested leaves its parent alone", func(h *harness) {
		parent := h.source()
		child := cancel.NewChild(tokenOf(parent))
		assert.Equal(h, cancel.OK, h.request(sourceAt(child.Token())))
		assert.True(h, child.Requested())
		assert.False(h, h.Requester.Requested(parent))
		child.Close()
		h.destroySource(parent) // nothing of the child is left on it
	}},
	{"a child of a requested parent is requested from the start", func(h *harness) {
		parent := h.source()
		h.request(parent)
		child := cancel.NewChild(tokenOf(parent))
		assert.True(h, child.Requested())
		child.Close()
	}},
	{"a token's context ends with the request, and says why", func(h *harness) {
		s := h.source()
		type key struct{}
		ctx, stop := tokenOf(s).Context(context.WithValue(context.Background(), key{}, 7))
		defer stop()
		assert.NoError(h, ctx.Err())
		h.request(s)
		h.await("the context", ctx.Done())
		assert.ErrorIs(h, ctx.Err(), context.Canceled)
		assert.ErrorIs(h, context.Cause(ctx), cancel.ErrRequested)
		assert.Equal(h, 7, ctx.Value(key{}))
	}},
	{"a token's context that is stopped leaves nothing on the source", func(h *harness) {
		s := h.source()
		ctx, stop := tokenOf(s).Context(context.Background())
		stop()
		stop()
		h.await("the context", ctx.Done())
		assert.NotErrorIs(h, context.Cause(ctx), cancel.ErrRequested)
		h.destroySource(s)
	}},
	{"a source from a context is requested when the context ends", func(h *harness) {
		ctx, end := context.WithCancel(context.Background())
		source, stop := cancel.FromContext(ctx)
		s, called := sourceAt(source.Token()), make(chan struct{})
		r := h.add(s, func() { close(called) })
		assert.False(h, h.Requester.Requested(s))
		end()
		h.await("the callback", called)
		assert.True(h, h.Requester.Requested(s))
		assert.Equal(h, cancel.Already, h.drop(r))
		stop()
		stop()
	}},
	{"a deadline goes through a source and out again", func(h *harness) {
		in, end := context.WithTimeout(context.Background(), time.Millisecond)
		defer end()
		source, stop := cancel.FromContext(in)
		defer stop()
		out, stopOut := source.Token().Context(context.Background())
		defer stopOut()
		h.await("the context", out.Done())
		assert.ErrorIs(h, context.Cause(out), cancel.ErrRequested)
	}},
}

func tokenOf(s *cancel.SourceMemory) cancel.Token { return cancel.TokenAt(addressOf(s)) }

func sourceAt(t cancel.Token) *cancel.SourceMemory { return pointerTo(t.Address()) }
