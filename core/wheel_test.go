package core_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/purelane"
)

const tick = int64(1) << core.WheelTickShift

func newWheel(t testing.TB) (*core.Wheel, core.Lane) {
	w := shared[core.Wheel](t)
	w.Init()
	return w, purelane.New(purelane.Memory{}, nil, nil)
}

func TestTimerIsNeverEarlyAndAtMostATickLate(t *testing.T) {
	for _, deadline := range []int64{1, tick - 1, tick, tick + 1, 64 * tick, 64*tick + 1, 4095*tick + 77, 1e9, 3600e9, 1 << 61} {
		w, l := newWheel(t)
		timer := shared[core.Timer](t)
		require.False(t, w.LinkAt(l, timer, deadline))
		require.GreaterOrEqual(t, w.Earliest.Load(), deadline)
		require.Less(t, w.Earliest.Load(), deadline+tick)
		require.Empty(t, w.Advance(l, deadline-1))
		require.Equal(t, []*core.Timer{timer}, w.Advance(l, w.Earliest.Load()))
		require.Equal(t, never, w.Earliest.Load())
	}
}

func TestDeadlinesThatArePastOrBeyondTime(t *testing.T) {
	w, l := newWheel(t)
	timer := shared[core.Timer](t)
	require.Empty(t, w.Advance(l, 1000*tick))
	for _, past := range []int64{math.MinInt64, -1, 0, 1, 999 * tick} {
		require.True(t, w.LinkAt(l, timer, past), "%d is due at once", past)
	}
	for _, beyond := range []int64{never, never - 1, never - tick + 1} {
		require.False(t, w.LinkAt(l, timer, beyond))
		require.Equal(t, never, w.Earliest.Load(), "%d never comes", beyond)
		require.Empty(t, w.Advance(l, never))
		w.Unlink(l, timer)
		w, l = newWheel(t)
	}
}

func TestLoneFarTimerCostsOneWake(t *testing.T) {
	w, l := newWheel(t)
	timer := shared[core.Timer](t)
	deadline := int64(3 * 3600e9)
	w.LinkAt(l, timer, deadline)
	require.InDelta(t, deadline, w.Earliest.Load(), float64(tick), "and not the beginning of its slot")
}

func TestCloseCancelsEverything(t *testing.T) {
	w, l := newWheel(t)
	timers := sharedSlice[core.Timer](t, 100)
	for i := range timers {
		deadline := int64(1) << (i % 62)
		if i%10 == 0 {
			deadline = never
		}
		w.LinkAt(l, &timers[i], deadline)
	}
	pending := w.Pending
	require.Equal(t, pending, w.Close(l))
	require.Zero(t, w.Pending)
	require.Equal(t, never, w.Earliest.Load())
	for i := range timers {
		if timers[i].Status != 0 {
			require.EqualValues(t, core.ECanceled, timers[i].Status)
			pending--
		}
	}
	require.Zero(t, pending)
}

// TestWheelAgainstList compares the wheel with a plain list under random starts, cancels and jumps of the clock.
func TestWheelAgainstList(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	w, l := newWheel(t)
	timers := sharedSlice[core.Timer](t, 3000)
	pending := map[*core.Timer]int64{}
	now := int64(0)
	for range 200_000 {
		timer := &timers[random.IntN(len(timers))]
		_, isPending := pending[timer]
		switch {
		case random.IntN(50) == 0:
			now += random.Int64N(int64(1) << random.IntN(45))
			lastTick := int64(0)
			for _, fired := range w.Advance(l, now) {
				deadline, ok := pending[fired]
				require.True(t, ok, "fired once, and only while pending")
				require.LessOrEqual(t, deadline, now, "never early")
				at := (deadline + tick - 1) / tick
				require.GreaterOrEqual(t, at, lastTick, "earlier ticks first")
				lastTick = at
				delete(pending, fired)
			}
			for _, deadline := range pending {
				if deadline+tick <= now { // a call of require for each would take most of the test's time
					require.Fail(t, "something that is due by a tick is left")
				}
			}
		case isPending && random.IntN(2) == 0:
			w.Unlink(l, timer)
			delete(pending, timer)
		case !isPending:
			deadline := now + random.Int64N(int64(1)<<random.IntN(50))
			if !w.LinkAt(l, timer, deadline) {
				pending[timer] = deadline
			}
		}
		require.EqualValues(t, len(pending), w.Pending)
		if random.IntN(100) == 0 && len(pending) > 0 {
			deadlines := make([]int64, 0, len(pending))
			for _, deadline := range pending {
				deadlines = append(deadlines, deadline)
			}
			require.Less(t, w.Earliest.Load(), slices.Min(deadlines)+tick, "the sleepers come back in time")
		}
	}
}

// Slots that are too large for one holding of the lock are moved down in parts, and none of the parts may be forgotten.
func TestManyTimersOfOneSlotFireInTime(t *testing.T) {
	const count = 5000
	w, l := newWheel(t)
	deadlines := make([]int64, count)
	for i := range deadlines {
		deadlines[i] = int64(20e9) + int64(i)*3*tick
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(count, func(i, j int) { deadlines[i], deadlines[j] = deadlines[j], deadlines[i] })
	for _, deadline := range deadlines {
		w.LinkAt(l, shared[core.Timer](t), deadline)
	}
	fired := 0
	for now := w.Earliest.Load(); now != never; now = w.Earliest.Load() {
		for _, timer := range w.Advance(l, now) {
			require.Less(t, now-timer.Deadline, 2*tick)
			fired++
		}
	}
	require.Equal(t, count, fired)
}
