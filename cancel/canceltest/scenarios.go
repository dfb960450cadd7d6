package canceltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"weft/cancel"
)

type scenario struct {
	promise string
	run     func(h *harness)
}

// Run holds a pair of ends to every promise of the table.
func Run(t *testing.T, pair Pair, memory Memory) {
	for _, table := range [][]scenario{basic, inside, concurrent, bridges} {
		for _, s := range table {
			t.Run(s.promise, func(t *testing.T) {
				watchdog := time.AfterFunc(2*patience, func() { panic("canceltest: " + t.Name() + " does not end") })
				defer watchdog.Stop()
				s.run(newHarness(t, pair, memory))
			})
		}
	}
}

// basic: one thread, and callbacks that do nothing with the source.
var basic = []scenario{
	{"zeroed memory is a source that has not been requested", func(h *harness) {
		s := h.source()
		assert.False(h, h.Requester.Requested(s))
		assert.False(h, h.Registrar.Requested(s))
		assert.False(h, h.Registrar.Requested(nil))
	}},
	{"a source is requested once", func(h *harness) {
		s := h.source()
		assert.Equal(h, cancel.OK, h.request(s))
		assert.Equal(h, cancel.Already, h.request(s))
		assert.Equal(h, cancel.Already, h.Registrar.Request(s), "the other end sees it too")
		assert.True(h, h.Requester.Requested(s))
		assert.True(h, h.Registrar.Requested(s))
	}},
	{"callbacks run once, inside request, on the requester's thread", func(h *harness) {
		s := h.source()
		var calls int
		var thread, requester uint64
		r := h.add(s, func() { calls++; thread = cancel.Thread(); assert.True(h, h.Registrar.Requested(s)) })
		h.await("the requester", h.thread(func() {
			requester = cancel.Thread()
			assert.Equal(h, cancel.OK, h.request(s))
			assert.Equal(h, 1, calls)
		}))
		assert.Equal(h, requester, thread)
		h.request(s)
		assert.Equal(h, 1, calls)
		assert.Equal(h, cancel.Already, h.drop(r))
	}},
	{"callbacks run newest first, without those that were deregistered", func(h *harness) {
		const n = 100
		s := h.source()
		var order, want []int
		all := make([]*cancel.RegistrationMemory, n)
		for i := range n {
			all[i] = h.add(s, func() { order = append(order, i) })
		}
		for i := n - 1; i >= 0; i-- {
			if i == 0 || i == n-1 || i%3 == 1 { // the ends, and some between
				assert.Equal(h, cancel.OK, h.drop(all[i]))
			} else {
				want = append(want, i)
			}
		}
		h.request(s)
		assert.Equal(h, want, order)
	}},
	{"a registration after the request runs at once, on the registering thread", func(h *harness) {
		s := h.source()
		h.request(s)
		r := h.registration()
		var thread, registrant uint64
		h.await("the registrant", h.thread(func() {
			registrant = cancel.Thread()
			assert.Equal(h, cancel.Already, h.register(s, r, func() { thread = cancel.Thread() }))
		}))
		assert.Equal(h, registrant, thread)
		assert.Equal(h, cancel.Already, h.drop(r))
	}},
	{"deregister tells whether the callback was called", func(h *harness) {
		s := h.source()
		var calls int
		r := h.registration()
		assert.Equal(h, cancel.OK, h.deregister(r), "idle from the start")
		for range 3 { // the same memory again and again
			assert.Equal(h, cancel.OK, h.register(s, r, func() { calls++ }))
			assert.Equal(h, cancel.OK, h.deregister(r))
		}
		assert.Equal(h, cancel.OK, h.deregister(r), "idle again")
		other := h.add(s, func() { calls++ })
		h.request(s)
		assert.Equal(h, 1, calls, "a deregistered callback never runs")
		assert.Equal(h, cancel.Already, h.deregister(other))
		assert.Equal(h, cancel.OK, h.deregister(other))
		assert.Equal(h, cancel.Already, h.register(s, other, func() { calls++ }), "used again, too late")
		assert.Equal(h, cancel.Already, h.deregister(other))
		assert.Equal(h, 2, calls)
	}},
	{"bad arguments give their code and change nothing", func(h *harness) {
		s, r := h.source(), h.registration()
		f := h.Registrar.Function()
		assert.Equal(h, cancel.Invalid, h.Requester.Request(nil))
		assert.Equal(h, cancel.Invalid, h.Registrar.Register(s, nil, f, 0))
		assert.Equal(h, cancel.Invalid, h.Registrar.Register(s, r, 0, 0))
		assert.Equal(h, cancel.Invalid, h.Registrar.Register(nil, r, 0, 0))
		assert.Equal(h, cancel.Invalid, h.Registrar.Deregister(nil))
		assert.Equal(h, cancel.OK, h.Registrar.Register(nil, r, f, 0), "a null token is never requested")
		assert.Equal(h, cancel.OK, h.deregister(r))

		var calls int
		assert.Equal(h, cancel.OK, h.register(s, r, func() { calls++ }))
		assert.Equal(h, cancel.Busy, h.Registrar.Register(s, r, f, 0))
		assert.Equal(h, cancel.Busy, h.Requester.Register(h.source(), r, f, 0), "nor with another source or end")
		h.request(s)
		assert.Equal(h, 1, calls)
		assert.Equal(h, cancel.Busy, h.Registrar.Register(s, r, f, 0), "until it is deregistered")
		assert.Equal(h, cancel.Already, h.deregister(r))
	}},
	{"both ends may use one source by turns", func(h *harness) {
		s := h.source()
		var order []int
		a, b, c := h.registration(), h.registration(), h.registration()
		require.Equal(h, cancel.OK, h.registerBy(h.Registrar, s, a, func() { order = append(order, 1) }))
		require.Equal(h, cancel.OK, h.registerBy(h.Requester, s, b, func() { order = append(order, 2) }))
		require.Equal(h, cancel.OK, h.registerBy(h.Registrar, s, c, func() { order = append(order, 3) }))
		assert.Equal(h, cancel.OK, h.Requester.Deregister(c), "deregistered by the other end")
		h.request(s)
		assert.Equal(h, []int{2, 1}, order)
		assert.Equal(h, cancel.Already, h.Registrar.Deregister(b))
		assert.Equal(h, cancel.Already, h.Requester.Deregister(a))
	}},
}
