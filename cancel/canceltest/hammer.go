package canceltest

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"weft/cancel"
)

// seed is printed, and taken from WEFT_SEED to play a failure again.
func seed(h *harness) uint64 {
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("WEFT_SEED"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(h, err)
	}
	h.Logf("WEFT_SEED=%d", n)
	return n
}

// States of a registration in the hammer, as its owner and its callback see them.
const (
	hammerRegistered = iota
	hammerInside
	hammerEnded
	hammerGone // deregister has returned
)

// struck is a registration in the hammer.
type struck struct {
	memory *cancel.RegistrationMemory
	state  atomic.Int32
	self   bool // its callback frees it, and nobody else
}

func (h *harness) strike(s *cancel.SourceMemory, self bool) (r *struck, late bool) {
	r = &struck{memory: h.registration(), self: self}
	result := h.register(s, r.memory, func() {
		if !r.state.CompareAndSwap(hammerRegistered, hammerInside) {
			h.Errorf("callback began in state %d", r.state.Load())
		}
		if r.self {
			h.drop(r.memory)
		}
		if !r.state.CompareAndSwap(hammerInside, hammerEnded) {
			h.Errorf("callback ended in state %d", r.state.Load())
		}
	})
	return r, result == cancel.Already
}

// spare deregisters and frees a struck registration, and tells whether its callback had been called.
func (h *harness) spare(r *struck) bool {
	called := h.drop(r.memory) == cancel.Already
	want := int32(hammerRegistered)
	if called {
		want = hammerEnded
	}
	if state := r.state.Swap(hammerGone); state != want {
		h.Errorf("deregister told called=%t, but the callback got to state %d", called, state)
	}
	return called
}

// hammer lets three threads register and deregister, some at a time each, while a fourth requests. Each callback runs at most once, never
// during or after the end of its deregistration on another thread, and exactly once if nobody deregistered it first.
func hammer(h *harness) {
	const rounds, threads, window, after = 100, 3, 6, 20
	random := rand.New(rand.NewPCG(seed(h), 1))
	var calls, late, spared atomic.Int64
	for range rounds {
		s := h.source()
		var done [threads + 1]<-chan struct{}
		var selves [threads][]*struck
		for i := range threads {
			own := rand.New(rand.NewPCG(random.Uint64(), 2))
			done[i] = h.thread(func() {
				var live []*struck
				drop := func(k int) {
					if h.spare(live[k]) {
						calls.Add(1)
					} else {
						spared.Add(1)
					}
					live[k] = live[len(live)-1]
					live = live[:len(live)-1]
				}
				for left := after; left > 0; {
					if h.Registrar.Requested(s) {
						left--
					}
					if len(live) == window || len(live) > 0 && own.IntN(2) == 0 {
						drop(own.IntN(len(live)))
						continue
					}
					r, atOnce := h.strike(s, own.IntN(8) == 0 && len(selves[i]) < 50)
					if atOnce {
						late.Add(1)
					}
					if r.self {
						selves[i] = append(selves[i], r)
					} else {
						live = append(live, r)
					}
				}
				for len(live) > 0 {
					drop(0)
				}
			})
		}
		delay := time.Duration(random.IntN(200)) * time.Microsecond
		done[threads] = h.thread(func() {
			time.Sleep(delay)
			assert.Equal(h, cancel.OK, h.request(s))
		})
		for _, c := range done {
			h.await("the hammer's threads", c)
		}
		for _, r := range slices.Concat(selves[:]...) {
			calls.Add(1)
			if state := r.state.Load(); state != hammerEnded {
				h.Errorf("a callback that nobody deregistered got to state %d", state)
			}
		}
		h.destroySource(s)
	}
	h.Logf("%d called, %d of them at once, %d deregistered first", calls.Load(), late.Load(), spared.Load())
	assert.NotZero(h, calls.Load()-late.Load())
	assert.NotZero(h, late.Load())
	assert.NotZero(h, spared.Load())
}

// hammerLifetime frees a registration and its source as soon as deregister allows it, although the thread that ran the callback has
// not come back from request or register. Rule 3 of cancel.h.
func hammerLifetime(h *harness) {
	const rounds = 500
	random := rand.New(rand.NewPCG(seed(h), 3))
	for i := range rounds {
		s, r := h.source(), h.registration()
		entered := make(chan struct{})
		pause := random.IntN(200)
		callback := func() {
			close(entered)
			for range pause {
				h.Registrar.Requested(s)
			}
		}
		var runner <-chan struct{}
		if i%2 == 0 {
			h.register(s, r, callback)
			runner = h.thread(func() { h.request(s) })
		} else {
			h.request(s)
			runner = h.thread(func() { h.register(s, r, callback) })
		}
		h.await("the callback", entered)
		assert.Equal(h, cancel.Already, h.drop(r))
		h.destroySource(s)
		h.await("its runner", runner)
	}
}
