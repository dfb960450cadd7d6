package pollertest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// Waiting, waking, timeouts.
var waitTests = []test{
	{"does not wait with timeout 0", func(w *world) {
		for range 100 {
			require.Zero(w, w.poller.Poll(0, w.ready))
		}
	}},
	{"waits as long as it was told", func(w *world) {
		for _, timeout := range []time.Duration{time.Nanosecond, 300 * time.Microsecond, 1500 * time.Microsecond, 20 * time.Millisecond} {
			// A signal may end any of them early, but most must last: a timeout that is rounded down would not.
			waits := make([]time.Duration, 9)
			for i := range waits {
				waits[i] = w.waits(timeout)
			}
			slices.Sort(waits)
			require.GreaterOrEqual(w, waits[len(waits)/2], timeout-slack(timeout))
		}
	}},
	{"a wake before the wait ends it", func(w *world) {
		w.poller.Wake()
		w.endsSoon(-1)
	}},
	{"a wake ends the wait", func(w *world) {
		for range 20 {
			woken := make(chan struct{})
			time.AfterFunc(2*time.Millisecond, func() {
				w.poller.Wake()
				close(woken)
			})
			w.endsSoon(-1)
			<-woken
		}
	}},
	{"a wake is used up", func(w *world) {
		for range 3 {
			w.poller.Wake()
		}
		const timeout = 20 * time.Millisecond
		var longest time.Duration
		for range 5 { // each wake may end one wait
			longest = max(longest, w.waits(timeout))
		}
		require.GreaterOrEqual(w, longest, timeout-slack(timeout))
	}},
	{"wakes without number", func(w *world) {
		for range 1000 {
			w.poller.Wake()
		}
		for range 1000 {
			w.poller.Poll(0, w.ready)
		}
		w.poller.Wake()
		w.endsSoon(-1)
	}},
	{"a wake is no event", func(w *world) {
		w.poller.Wake()
		require.Zero(w, w.poller.Poll(int64(20*time.Millisecond), w.ready))
		require.Empty(w, w.queue)
	}},
	{"a wake and events come together", func(w *world) {
		client, server := w.pair(core.IPv4)
		o := w.receive(server.handle, 4, 0)
		w.send(client.handle, "data")
		w.poller.Wake()
		o.ends(0, "data")
	}},
}

// waits polls while there is no event, and returns how long that took.
func (w *world) waits(timeout time.Duration) time.Duration {
	start := time.Now()
	require.Zero(w, w.poller.Poll(int64(timeout), w.ready))
	return time.Since(start)
}

// slack is how much too early a wait of this length may end: twice what [core.Poller] says of Linux, whose clocks are not read at one moment.
func slack(timeout time.Duration) time.Duration {
	return 2 * max(50*time.Microsecond, timeout/1000)
}

// endsSoon polls, and fails if that does not end by itself.
func (w *world) endsSoon(timeout int64) {
	timer := time.AfterFunc(patience, func() { panic("a poll was not woken") })
	defer timer.Stop()
	w.poller.Poll(timeout, w.ready)
}
