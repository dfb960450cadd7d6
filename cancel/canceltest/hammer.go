package canceltest

import (
	"math/rand/v2"
	"os"
	"runtime"
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

// rounds calls two functions at the same moment, on two threads, n times; next prepares a round and judges the one before.
func (h *harness) rounds(n int, next func(round int), first, second func()) {
	var begun, ended atomic.Int64
	until := func(word *atomic.Int64, value int64) {
		for spins := 0; word.Load() < value; spins++ {
			if spins > 100 {
				runtime.Gosched()
			}
		}
	}
	var done [2]<-chan struct{}
	for i, f := range []func(){first, second} {
		done[i] = h.thread(func() {
			for round := range n {
				until(&begun, int64(round+1))
				f()
				ended.Add(1)
			}
		})
	}
	for round := range n {
		next(round)
		begun.Add(1)
		until(&ended, int64(2*(round+1)))
	}
	next(n)
	h.await("the last round", done[0])
	h.await("the last round", done[1])
}

// spin takes about 5 ns times n; none for n < 0.
func spin(n int) {
	var word atomic.Int64
	for range max(n, 0) {
		word.Add(1)
	}
}

// hammerMeeting lets one registration and one request meet, again and again: the callback is called exactly once.
func hammerMeeting(h *harness) {
	const n = 3000
	random := rand.New(rand.NewPCG(seed(h), 5))
	var s *cancel.SourceMemory
	var r *cancel.RegistrationMemory
	var wait, lead, result, late int
	var calls atomic.Int64
	h.rounds(n, func(round int) {
		if round > 0 {
			if calls.Load() != 1 {
				h.Fatalf("round %d: register told %d, and the callback was called %d times", round, result, calls.Load())
			}
			late += result
			lead += 2*result - 1 // the closer they are, the better
			assert.Equal(h, cancel.Already, h.drop(r))
			h.destroySource(s)
		}
		calls.Store(0)
		s, r, wait = h.source(), h.registration(), lead+random.IntN(7)-3
	}, func() {
		spin(wait)
		h.request(s)
	}, func() {
		spin(-wait)
		result = h.register(s, r, func() { calls.Add(1) })
	})
	h.Logf("%d of %d came too late", late, n)
}

// hammerLifetime frees a registration and its source as soon as deregister allows it, although the thread that ran the callback has
// not come back from request, or from register, in every other round. Rule 3 of cancel.h.
func hammerLifetime(h *harness) {
	const n = 3000
	random := rand.New(rand.NewPCG(seed(h), 3))
	var s *cancel.SourceMemory
	var r *cancel.RegistrationMemory
	var late bool
	var wait, inside int
	var entered atomic.Bool
	callback := func() {
		entered.Store(true)
		spin(inside)
	}
	h.rounds(n, func(round int) {
		entered.Store(false)
		s, r, wait, inside = h.source(), h.registration(), random.IntN(20), random.IntN(50)
		if late = round%2 != 0; late {
			h.request(s)
		} else {
			h.register(s, r, callback)
		}
	}, func() {
		if late {
			h.register(s, r, callback)
		} else {
			h.request(s)
		}
	}, func() {
		for spins := 0; !entered.Load(); spins++ {
			if spins > 100 {
				runtime.Gosched()
			}
		}
		spin(wait)
		result := h.deregister(r)
		h.destroySource(s)
		h.destroy(r)
		assert.Equal(h, cancel.Already, result)
	})
}
