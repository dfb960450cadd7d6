package canceltest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"

	"weft/cancel"
)

// glimpse is long enough for a thread that wrongly does not wait to get past. If it were too short a defect could slip
// through, but nothing fails without one.
const glimpse = 20 * time.Millisecond

// concurrent: two threads and more. What races is repeated in hammer.go; here the order is forced.
var concurrent = []scenario{
	{"deregister waits for a callback that runs on another thread", func(h *harness) {
		s := h.source()
		entered, leave := make(chan struct{}), make(chan struct{})
		var ended, returned atomic.Bool
		r := h.add(s, func() {
			close(entered)
			h.await("leave", leave)
			ended.Store(true)
		})
		requester := h.thread(func() { h.request(s) })
		h.await("the callback", entered)
		deregisterer := h.thread(func() {
			assert.Equal(h, cancel.Already, h.deregister(r))
			assert.True(h, ended.Load(), "deregister returned while the callback ran")
			returned.Store(true)
			h.destroy(r)
		})
		time.Sleep(glimpse)
		assert.False(h, returned.Load())
		close(leave)
		h.await("deregister", deregisterer)
		h.await("request", requester)
	}},
	{"also for one that register called at once", func(h *harness) {
		s := h.source()
		h.request(s)
		entered, leave := make(chan struct{}), make(chan struct{})
		var ended, returned atomic.Bool
		r := h.registration()
		registrant := h.thread(func() {
			h.register(s, r, func() {
				close(entered)
				h.await("leave", leave)
				ended.Store(true)
			})
		})
		h.await("the callback", entered)
		deregisterer := h.thread(func() {
			assert.Equal(h, cancel.Already, h.deregister(r))
			assert.True(h, ended.Load(), "deregister returned while the callback ran")
			returned.Store(true)
			h.destroy(r)
			h.destroySource(s) // rule 3 of cancel.h, though register may not have returned
		})
		time.Sleep(glimpse)
		assert.False(h, returned.Load())
		close(leave)
		h.await("deregister", deregisterer)
		h.await("register", registrant)
	}},
	{"while one callback runs, another thread may take others away", func(h *harness) {
		s := h.source()
		entered, leave := make(chan struct{}), make(chan struct{})
		var ran atomic.Bool
		oldest := h.add(s, func() { ran.Store(true) })
		next := h.add(s, func() { ran.Store(true) })
		r := h.add(s, func() { close(entered); h.await("leave", leave) })
		requester := h.thread(func() { h.request(s) })
		h.await("the callback", entered)
		assert.Equal(h, cancel.OK, h.drop(next), "does not wait for a callback that is not its own")
		assert.Equal(h, cancel.OK, h.drop(oldest))
		close(leave)
		h.await("request", requester)
		assert.False(h, ran.Load())
		h.drop(r)
	}},
	{"a second request returns at once, while the first still runs callbacks", func(h *harness) {
		s := h.source()
		entered, leave := make(chan struct{}), make(chan struct{})
		h.add(s, func() { close(entered); h.await("leave", leave) })
		requester := h.thread(func() { assert.Equal(h, cancel.OK, h.request(s)) })
		h.await("the callback", entered)
		h.await("the second request", h.thread(func() {
			assert.Equal(h, cancel.Already, h.Requester.Request(s))
			assert.Equal(h, cancel.Already, h.Registrar.Request(s))
		}))
		close(leave)
		h.await("request", requester)
	}},
	{"a late registration runs on its own thread, beside the requester's callbacks", func(h *harness) {
		s := h.source()
		entered, leave := make(chan struct{}), make(chan struct{})
		r := h.add(s, func() { close(entered); h.await("leave", leave) })
		requester := h.thread(func() { h.request(s) })
		h.await("the callback", entered)
		h.await("the late registration", h.thread(func() {
			late, ran := h.registration(), false
			assert.Equal(h, cancel.Already, h.register(s, late, func() { ran = true }))
			assert.True(h, ran)
			assert.Equal(h, cancel.Already, h.drop(late))
		}))
		close(leave)
		h.await("request", requester)
		h.drop(r)
	}},
	{"freed memory may already run as another thread's registration when its first callback ends", func(h *harness) {
		s := h.source()
		freed, reused, ended, leave := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		var r *cancel.RegistrationMemory
		r = h.add(s, func() {
			h.drop(r)
			close(freed)
			h.await("the reuse", reused)
		})
		var secondEnded atomic.Bool
		requester := h.thread(func() { h.request(s) })
		h.await("the callback", freed)
		again := h.registration()
		assert.Same(h, r, again)
		registrant := h.thread(func() {
			h.register(s, again, func() {
				close(reused)
				h.await("leave", leave)
				secondEnded.Store(true)
			})
			close(ended)
		})
		h.await("request", requester) // it must not have taken the second registration for its own
		deregisterer := h.thread(func() {
			assert.Equal(h, cancel.Already, h.drop(again))
			assert.True(h, secondEnded.Load(), "deregister did not wait for the second callback")
		})
		time.Sleep(glimpse)
		close(leave)
		h.await("deregister", deregisterer)
		h.await("register", ended)
		h.await("the registrant", registrant)
	}},
	{"what came before a request is visible after it, and what a callback did after deregister", func(h *harness) {
		for range 200 {
			s := h.source()
			before, inside := new(number), new(number)
			if !watched(h.Requester) || !watched(h.Registrar) {
				before, inside = newAtomic(), newAtomic()
			}
			r := h.add(s, func() { inside.set(before.get() + 1) })
			requester := h.thread(func() { before.set(41); h.request(s) })
			for !h.Registrar.Requested(s) {
				time.Sleep(time.Microsecond)
			}
			assert.Equal(h, 41, before.get())
			if h.deregister(r) == cancel.Already {
				assert.Equal(h, 42, inside.get())
			}
			h.destroy(r)
			h.await("request", requester)
		}
	}},
	{"hammer: register, deregister and request race", hammer},
	{"hammer: one registration and one request meet", hammerMeeting},
	{"hammer: the source goes as soon as its last registration has", hammerLifetime},
}

// number is a plain variable on purpose: the race detector finds out if its accesses are not ordered. It cannot know what a
// C end orders, and there the number is atomic.
type number struct {
	plain  int
	atomic *atomic.Int64
}

func newAtomic() *number { return &number{atomic: new(atomic.Int64)} }

func watched(end End) bool {
	_, yes := end.(interface{ ofGo() })
	return yes
}

func (n *number) set(value int) {
	if n.atomic != nil {
		n.atomic.Store(int64(value))
		return
	}
	n.plain = value
}

func (n *number) get() int {
	if n.atomic != nil {
		return int(n.atomic.Load())
	}
	return n.plain
}
