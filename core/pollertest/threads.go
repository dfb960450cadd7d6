package pollertest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// Many threads at once.
var threadTests = []test{
	{"registered while others wait", func(w *world) {
		stop := w.pollers(2)
		defer stop()
		for range 20 {
			client, server := w.pair(core.IPv4)
			o := w.receive(server.handle, 4, 0)
			w.send(client.handle, "data")
			w.eventually(o.ran)
			require.Equal(w, "data", string(o.memory[:o.Count]))
		}
	}},
	{"each event goes to one", func(w *world) {
		const connections, messages = 8, 200
		stop := w.pollers(3)
		defer stop()
		var clients, servers [connections]end
		for i := range connections {
			clients[i], servers[i] = w.pair(core.IPv4)
		}
		for range messages {
			var ops [connections]*op
			for i := range ops {
				ops[i] = w.op(4)
				ops[i].start(servers[i].handle, core.KindReceive, core.IOAll, nil)
			}
			for i := range ops {
				w.send(clients[i].handle, "data")
			}
			for _, o := range ops {
				w.eventually(o.ran)
				require.Equal(w, "data", string(o.memory))
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, times := range w.runs {
			require.LessOrEqual(w, times, 1)
		}
	}},
	{"cancel and data at once", func(w *world) {
		stop := w.pollers(1)
		defer stop()
		client, server := w.pair(core.IPv4)
		for range 500 {
			o := w.op(1)
			o.start(server.handle, core.KindReceive, 0, nil)
			var both sync.WaitGroup
			both.Go(func() { w.lane.Cancel(o.IO, w.ready) })
			w.send(client.handle, "x")
			both.Wait()
			w.eventually(o.ran)
			if core.Error(o.Status) == core.ECanceled {
				o = w.op(1) // then the byte is still there
				if !o.start(server.handle, core.KindReceive, 0, nil) {
					w.eventually(o.ran)
				}
			}
			require.Zero(w, o.Status)
			require.EqualValues(w, 1, o.Count)
		}
	}},
	{"close and data at once", func(w *world) {
		stop := w.pollers(2)
		defer stop()
		for range 100 {
			client, server := w.pair(core.IPv4)
			o := w.op(1)
			pending := !o.start(server.handle, core.KindReceive, 0, nil)
			var both sync.WaitGroup
			both.Go(func() { _ = w.table.Close(server.handle, w.ready) })
			w.send(client.handle, "x")
			both.Wait()
			require.Equal(w, core.EBadHandle, w.table.Close(server.handle, w.ready))
			w.forget(server.handle)
			if pending {
				w.eventually(o.ran)
			}
			require.Contains(w, []core.Error{0, core.EClosed}, core.Error(o.Status))
			w.close(client.handle)
		}
	}},
	{"wakes from everywhere", func(w *world) {
		stop := w.pollers(2)
		var wakers sync.WaitGroup
		for range 4 {
			wakers.Go(func() {
				for range 2000 {
					w.poller.Wake()
				}
			})
		}
		wakers.Wait()
		stop()
	}},
}

// pollers starts goroutines that poll without a limit and run what comes, until stop is called.
func (w *world) pollers(n int) (stop func()) {
	var over atomic.Bool
	var running atomic.Int32
	var all sync.WaitGroup
	running.Store(int32(n))
	for range n {
		all.Go(func() {
			defer running.Add(-1)
			for !over.Load() {
				w.poller.Poll(-1, w.ready)
				w.work()
			}
		})
	}
	return func() {
		over.Store(true)
		// A wake ends one wait, and several may count as one: until all have noticed.
		for deadline := time.Now().Add(patience); running.Load() != 0; time.Sleep(time.Millisecond) {
			w.poller.Wake()
			require.True(w, time.Now().Before(deadline), "a poll was not woken")
		}
		all.Wait()
	}
}

// eventually waits for what the pollers bring about.
func (w *world) eventually(condition func() bool) {
	w.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Microsecond) {
		w.work() // ops that a close or a cancel has queued
		require.True(w, time.Now().Before(deadline), "it never came true")
	}
}
