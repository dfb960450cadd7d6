package canceltest

import (
	"github.com/stretchr/testify/assert"

	"weft/cancel"
)

// inside: what a callback may do with the source and the registrations, its own and others, on one thread.
var inside = []scenario{
	{"a callback may deregister and free its own registration", func(h *harness) {
		s := h.source()
		var order []int
		var r *cancel.RegistrationMemory
		last := h.add(s, func() { order = append(order, 3) })
		r = h.add(s, func() {
			order = append(order, 2)
			assert.Equal(h, cancel.Already, h.drop(r), "being called by this very thread")
		})
		first := h.add(s, func() { order = append(order, 1) })
		h.request(s)
		assert.Equal(h, []int{1, 2, 3}, order)
		assert.Equal(h, cancel.Already, h.drop(first))
		assert.Equal(h, cancel.Already, h.drop(last))
	}},
	{"also when it is called at once by register", func(h *harness) {
		s := h.source()
		h.request(s)
		r := h.registration()
		assert.Equal(h, cancel.Already, h.register(s, r, func() { assert.Equal(h, cancel.Already, h.drop(r)) }))
	}},
	{"also through the other end", func(h *harness) {
		s := h.source()
		for _, end := range []End{h.Requester, h.Registrar} {
			r := h.registration()
			assert.Equal(h, cancel.OK, h.register(s, r, func() {
				assert.Equal(h, cancel.Already, end.Deregister(r), "the same thread, at whichever end")
				h.destroy(r)
			}))
		}
		h.request(s)
		assert.Empty(h, h.callbacks, "both have run")
	}},
	{"a callback may free others: those that have run, and those that now never will", func(h *harness) {
		s := h.source()
		var order []int
		var all [5]*cancel.RegistrationMemory
		for i := range all {
			all[i] = h.add(s, func() {
				order = append(order, i)
				if i == 3 {
					assert.Equal(h, cancel.Already, h.drop(all[4]), "has run")
					assert.Equal(h, cancel.OK, h.drop(all[2]), "was to be the next")
					assert.Equal(h, cancel.OK, h.drop(all[0]), "was to be the last")
				}
			})
		}
		h.request(s)
		assert.Equal(h, []int{4, 3, 1}, order)
		assert.Equal(h, cancel.Already, h.drop(all[3]))
		assert.Equal(h, cancel.Already, h.drop(all[1]))
	}},
	{"a callback may free everything, its own registration first", func(h *harness) {
		s := h.source()
		var all [4]*cancel.RegistrationMemory
		var calls int
		for i := range all {
			all[i] = h.add(s, func() {
				calls++
				for j := len(all) - 1; j >= 0; j-- {
					h.drop(all[j])
				}
			})
		}
		assert.Equal(h, cancel.OK, h.request(s))
		assert.Equal(h, 1, calls)
		h.destroySource(s)
	}},
	{"a callback may register new ones, which run at once", func(h *harness) {
		s := h.source()
		var order []int
		h.add(s, func() { order = append(order, 4) })
		h.add(s, func() {
			order = append(order, 1)
			late := h.registration()
			assert.Equal(h, cancel.Already, h.register(s, late, func() { order = append(order, 2) }))
			assert.Equal(h, cancel.Already, h.drop(late))
			order = append(order, 3)
		})
		h.request(s)
		assert.Equal(h, []int{1, 2, 3, 4}, order)
	}},
	{"a callback may free its own registration and use the memory for a new one", func(h *harness) {
		s, other := h.source(), h.source()
		var order []string
		var r *cancel.RegistrationMemory
		r = h.add(s, func() {
			h.drop(r)
			again := h.registration()
			assert.Same(h, r, again)
			assert.Equal(h, cancel.Already, h.register(s, again, func() { order = append(order, "at once") }))
			h.drop(again)
			again = h.registration()
			assert.Same(h, r, again)
			assert.Equal(h, cancel.OK, h.register(other, again, func() { order = append(order, "other source") }))
		})
		h.request(s)
		assert.Equal(h, []string{"at once"}, order)
		h.request(other)
		assert.Equal(h, []string{"at once", "other source"}, order)
		assert.Equal(h, cancel.Already, h.drop(r))
	}},
	{"a nested callback may free the registration of the one around it", func(h *harness) {
		s := h.source()
		var outer *cancel.RegistrationMemory
		var ran bool
		outer = h.add(s, func() {
			inner := h.registration()
			h.register(s, inner, func() {
				assert.Equal(h, cancel.Already, h.drop(outer), "runs on this very thread")
				ran = true
			})
			h.drop(inner)
		})
		h.request(s)
		assert.True(h, ran)
	}},
	{"a callback may request again, and request another source", func(h *harness) {
		s, other := h.source(), h.source()
		var order []int
		h.add(other, func() {
			order = append(order, 2)
			assert.Equal(h, cancel.Already, h.request(s), "being requested")
		})
		h.add(s, func() { order = append(order, 4) })
		h.add(s, func() {
			order = append(order, 1)
			assert.Equal(h, cancel.Already, h.request(s))
			assert.Equal(h, cancel.OK, h.request(other))
			order = append(order, 3)
		})
		assert.Equal(h, cancel.OK, h.request(s))
		assert.Equal(h, []int{1, 2, 3, 4}, order)
	}},
}
