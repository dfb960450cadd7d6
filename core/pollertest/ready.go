package pollertest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// How readiness gets to the ops that wait for it.
var readyTests = []test{
	{"connect, accept, receive, send", func(w *world) {
		for _, family := range []uint16{core.IPv4, core.IPv6} {
			client, server := w.pair(family)
			o := w.receive(server.handle, 16, 0)
			w.send(client.handle, "there")
			o.ends(0, "there")
			o = w.receive(client.handle, 16, 0)
			w.send(server.handle, "and back")
			o.ends(0, "and back")
		}
	}},
	{"readable before the start", func(w *world) {
		client, server := w.pair(core.IPv4)
		w.send(client.handle, "early")
		w.settle()
		o := w.op(16)
		if !o.start(server.handle, core.KindReceive, 0, nil) {
			w.until(o.ran)
		}
		require.Zero(w, o.Status)
		require.Equal(w, "early", string(o.memory[:o.Count]))
	}},
	{"readable before the registration", func(w *world) {
		listener, endpoint := w.listen(core.IPv4)
		system, err := w.Sockets.Open(core.IPv4)
		require.NoError(w, err)
		client := w.adopt(system)
		connects := w.op(0)
		connected := connects.start(client, core.KindConnect, 0, &endpoint)
		w.until(func() bool { return connected || connects.ran() })
		w.send(client, "first")
		// The accepted socket has the bytes before anybody watches it.
		accepts := w.op(0)
		accepted := accepts.start(listener, core.KindAccept, 0, nil)
		w.until(func() bool { return accepted || accepts.ran() })
		w.keep(accepts.Accepted)
		o := w.op(16)
		if !o.start(accepts.Accepted, core.KindReceive, 0, nil) {
			w.until(o.ran)
		}
		require.Equal(w, "first", string(o.memory[:o.Count]))
	}},
	{"every edge is told", func(w *world) {
		client, server := w.pair(core.IPv4)
		for range 500 {
			o := w.receive(server.handle, 8, 0)
			w.send(client.handle, "x")
			o.ends(0, "x")
		}
	}},
	{"piece by piece", func(w *world) {
		client, server := w.pair(core.IPv4)
		o := w.receive(server.handle, 9, core.IOAll)
		for _, piece := range []string{"ab", "cde", "fghi"} {
			require.False(w, o.ran())
			w.send(client.handle, piece)
			w.settle()
		}
		o.ends(0, "abcdefghi")
	}},
	{"both directions at once", func(w *world) {
		client, server := w.pair(core.IPv4)
		receives := w.receive(server.handle, 4, 0)
		sends := w.flood(server.handle)
		w.settle()
		require.False(w, sends.ran())
		w.send(client.handle, "ping")
		receives.ends(0, "ping")
		require.False(w, sends.ran(), "news of one direction are none of the other")
		w.drain(client.handle, sends)
		require.Zero(w, sends.Status)
	}},
	{"full, and drained", func(w *world) {
		client, server := w.pair(core.IPv4)
		for range 3 {
			sends := w.fill(client.handle)
			w.drain(server.handle, sends)
			require.Zero(w, sends.Status)
			require.NotZero(w, sends.Count)
		}
	}},
	{"a second op in a direction", func(w *world) {
		_, server := w.pair(core.IPv4)
		w.receive(server.handle, 4, 0)
		second := w.op(4)
		request := core.Request{Kind: core.KindReceive, Data: core.AddressOf(&second.memory[0]), Length: 4}
		_, err := w.lane.Start(second.IO, server.handle, request, w.ready)
		require.Equal(w, core.EBusy, err)
	}},
	{"many at once", func(w *world) {
		const many = 200 // more than one wait returns
		type connection struct {
			client end
			o      *op
		}
		var all []connection
		for range many {
			client, server := w.pair(core.IPv4)
			all = append(all, connection{client, w.receive(server.handle, 1, 0)})
		}
		w.settle()
		for _, c := range all {
			require.False(w, c.o.ran())
			w.send(c.client.handle, "x")
		}
		for _, c := range all {
			c.o.ends(0, "x")
		}
	}},
	{"nothing without a cause for long", func(w *world) {
		_, server := w.pair(core.IPv4)
		w.receive(server.handle, 4, 0)
		w.settle()
		events := 0
		for range 20 {
			events += w.poller.Poll(int64(1e6), w.ready)
			w.work()
		}
		require.Less(w, events, 20, "a poller that is spurious all the time burns its processor")
	}},
}

// flood starts a send of more than the system has room for, so that it waits until somebody receives. How much there is room for the system
// finds out bit by bit.
func (w *world) flood(handle uint64) *op {
	o := w.op(64 << 20)
	require.False(w, o.start(handle, core.KindSend, core.IOAll, nil))
	return o
}

// fill sends until a send has to wait, and returns that one.
func (w *world) fill(handle uint64) *op {
	for {
		o := w.op(1 << 16)
		if !o.start(handle, core.KindSend, 0, nil) {
			w.settle()
			if !o.ran() {
				return o
			}
		}
		require.Zero(w, o.Status)
	}
}

// drain receives until an op at the other end has ended.
func (w *world) drain(handle uint64, other *op) {
	for !other.ran() {
		o := w.op(1 << 20)
		if !o.start(handle, core.KindReceive, 0, nil) {
			w.until(func() bool { return o.ran() || other.ran() })
			if !o.ran() {
				require.True(w, w.lane.Cancel(o.IO, w.ready))
				w.until(o.ran)
			}
		}
		w.settle()
	}
}

var long = strings.Repeat("0123456789", 1000)
