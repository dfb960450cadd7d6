package canceltest

import (
	"math/rand/v2"
	"os"
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

// hammer lets three threads register and deregister while a fourth requests. Each callback runs at most once, never
// during or after the end of its deregistration on another thread, and exactly once if nobody deregistered it first.
func hammer(h *harness) {
	const rounds, threads, each = 60, 3, 40
	random := rand.New(rand.NewPCG(seed(h), 1))
	var calls, late, kept int
	for range rounds {
		s := h.source()
		delay := random.IntN(2000)
		var done [threads + 1]<-chan struct{}
		var counts [threads]struct{ calls, late, kept int }
		for i := range threads {
			own := rand.New(rand.NewPCG(random.Uint64(), 2))
			done[i] = h.thread(func() {
				for range each {
					r := h.registration()
					var state atomic.Int32
					self := own.IntN(8) == 0 // the callback frees its own registration
					var freed atomic.Bool
					result := h.register(s, r, func() {
						if !state.CompareAndSwap(hammerRegistered, hammerInside) {
							h.Errorf("callback began in state %d", state.Load())
						}
						if self {
							h.drop(r)
							freed.Store(true)
						}
						if !state.CompareAndSwap(hammerInside, hammerEnded) {
							h.Errorf("callback ended in state %d", state.Load())
						}
					})
					for range own.IntN(100) {
						state.Load()
					}
					if self { // only the callback may free it, or nobody else when there is no request to come
						for !freed.Load() && !h.Registrar.Requested(s) {
							time.Sleep(time.Microsecond)
						}
						for state.Load() != hammerEnded {
							time.Sleep(time.Microsecond)
						}
						counts[i].calls++
						continue
					}
					switch h.drop(r) {
					case cancel.OK:
						assert.Equal(h, cancel.OK, result)
						if old := state.Swap(hammerGone); old != hammerRegistered {
							h.Errorf("deregistered before its callback, which got to state %d", old)
						}
						counts[i].kept++
					case cancel.Already:
						if old := state.Swap(hammerGone); old != hammerEnded {
							h.Errorf("deregistered after its callback, which got to state %d", old)
						}
						counts[i].calls++
						counts[i].late += result
					}
				}
			})
		}
		done[threads] = h.thread(func() {
			for range delay {
				h.Requester.Requested(s)
			}
			h.request(s)
		})
		for _, c := range done {
			h.await("the hammer's threads", c)
		}
		for _, c := range counts {
			calls, late, kept = calls+c.calls, late+c.late, kept+c.kept
		}
		h.destroySource(s)
	}
	assert.Equal(h, rounds*threads*each, calls+kept, "every registration had one end")
	h.Logf("%d called, %d of them at once, %d deregistered first", calls, late, kept)
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
