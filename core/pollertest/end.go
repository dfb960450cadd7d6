package pollertest

import (
	"github.com/stretchr/testify/require"

	"weft/core"
)

// Ends: of streams, of ops, of descriptors.
var endTests = []test{
	{"half-close", func(w *world) {
		client, server := w.pair(core.IPv4)
		o := w.receive(server.handle, 4, 0)
		require.NoError(w, w.Sockets.Shutdown(client.system, 1<<core.Send))
		o.ends(0, "")
		w.send(server.handle, "still") // the other way is open
		o = w.op(8)
		if !o.start(client.handle, core.KindReceive, 0, nil) {
			w.until(o.ran)
		}
		require.Equal(w, "still", string(o.memory[:o.Count]))
	}},
	{"the end right behind the last bytes", func(w *world) {
		for range 50 {
			client, server := w.pair(core.IPv4)
			o := w.receive(server.handle, 16, 0)
			w.send(client.handle, "last")
			require.NoError(w, w.Sockets.Shutdown(client.system, 1<<core.Send))
			o.ends(0, "last")
			for range 2 { // it stays
				o = w.op(16)
				if !o.start(server.handle, core.KindReceive, 0, nil) {
					w.until(o.ran)
				}
				require.Zero(w, o.Status)
				require.Zero(w, o.Count)
			}
			w.close(client.handle)
			w.close(server.handle)
		}
	}},
	{"the end in the middle", func(w *world) {
		client, server := w.pair(core.IPv4)
		o := w.receive(server.handle, 16, core.IOAll)
		w.send(client.handle, long[:10])
		require.NoError(w, w.Sockets.Shutdown(client.system, 1<<core.Send))
		o.ends(core.EEOF, long[:10])
	}},
	{"hangup", func(w *world) {
		client, server := w.pair(core.IPv4)
		o := w.receive(server.handle, 4, 0)
		w.close(client.handle)
		o.ends(0, "")
	}},
	{"refused", func(w *world) {
		// Not at 127.0.0.1: the port could be another process's next, or that of the very socket that connects.
		apart := loopback(core.IPv4)
		apart.Address[3] = 2
		listener, endpoint := w.listenAt(apart)
		w.close(listener)
		handle, _ := w.socket(core.IPv4)
		o := w.op(0)
		if !o.start(handle, core.KindConnect, 0, &endpoint) {
			w.until(o.ran)
		}
		require.EqualValues(w, core.EConnRefused, o.Status)
		require.NotZero(w, o.OSError)
	}},
	{"cancel", func(w *world) {
		client, server := w.pair(core.IPv4)
		for range 3 {
			o := w.receive(server.handle, 4, 0)
			require.True(w, w.lane.Cancel(o.IO, w.ready))
			require.False(w, w.lane.Cancel(o.IO, w.ready))
			o.ends(core.ECanceled, "")
		}
		// The direction is free, and nothing was lost.
		o := w.receive(server.handle, 4, 0)
		w.send(client.handle, "data")
		o.ends(0, "data")
	}},
	{"cancel of a connect or an accept", func(w *world) {
		listener, _ := w.listen(core.IPv4)
		o := w.op(0)
		require.False(w, o.start(listener, core.KindAccept, 0, nil))
		require.True(w, w.lane.Cancel(o.IO, w.ready))
		o.ends(core.ECanceled, "")
		require.Zero(w, o.Accepted)
	}},
	{"cancel before the start", func(w *world) {
		_, server := w.pair(core.IPv4)
		o := w.op(4)
		require.True(w, w.lane.Cancel(o.IO, w.ready))
		require.True(w, o.start(server.handle, core.KindReceive, 0, nil))
		require.EqualValues(w, core.ECanceled, o.Status)
	}},
	{"close with waiters", func(w *world) {
		client, server := w.pair(core.IPv4)
		receives := w.receive(server.handle, 16, core.IOAll)
		sends := w.flood(server.handle)
		w.send(client.handle, "ab")
		w.settle()
		w.close(server.handle)
		receives.ends(core.EClosed, "ab")
		w.until(sends.ran)
		require.EqualValues(w, core.EClosed, sends.Status)
		_, err := w.lane.Start(w.op(1).IO, server.handle, core.Request{Kind: core.KindReceive}, w.ready)
		require.Equal(w, core.EBadHandle, err)
		listener, _ := w.listen(core.IPv4)
		accepts := w.op(0)
		require.False(w, accepts.start(listener, core.KindAccept, 0, nil))
		w.close(listener)
		accepts.ends(core.EClosed, "")
	}},
	{"close while an event is on its way", func(w *world) {
		for range 50 {
			client, server := w.pair(core.IPv4)
			o := w.receive(server.handle, 4, 0)
			var next, other end
			if w.poller.Completes() {
				// An end is found by the op's address, so the number does not matter; and Wine, which makes a receive by number at the moment at which data
				// come, loses it if the number is another socket's by then.
				next, other = w.pair(core.IPv4)
			}
			w.send(client.handle, "data") // nobody has polled since
			w.close(server.handle)
			if !w.poller.Completes() {
				// The number, and likely the record, begin a new life before the old event could be seen.
				next, other = w.pair(core.IPv4)
			}
			waits := w.receive(other.handle, 4, 0)
			w.settle()
			require.False(w, waits.ran())
			w.send(next.handle, "mine")
			waits.ends(0, "mine")
			w.until(o.ran)
			require.EqualValues(w, core.EClosed, o.Status)
			w.close(client.handle)
			w.close(next.handle)
			w.close(other.handle)
		}
	}},
}
