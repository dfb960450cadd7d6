package pollertest

import (
	"github.com/stretchr/testify/require"

	"weft/core"
)

// Datagrams, with whom they are from and for.
var datagramTests = []test{
	{"there and back", func(w *world) {
		for _, family := range []uint16{core.IPv4, core.IPv6} {
			a, b := w.place(family), w.place(family)
			for range 50 {
				o := w.op(16)
				require.False(w, o.start(b.handle, core.KindReceiveFrom, 0, nil))
				a.sends("there", b.endpoint)
				o.ends(0, "there")
				require.Equal(w, a.endpoint, o.Datagram().Peer)
				b.sends("and back", o.Datagram().Peer)
				a.receives("and back", b.endpoint, 16, false)
			}
		}
	}},
	{"empty, and cut off", func(w *world) {
		a, b := w.place(core.IPv4), w.place(core.IPv4)
		for range 5 {
			a.sends("", b.endpoint)
			b.receives("", a.endpoint, 4, false)
			a.sends("too long", b.endpoint)
			b.receives("too ", a.endpoint, 4, true)
			o := w.op(4)
			require.False(w, o.start(b.handle, core.KindReceiveFrom, 0, nil))
			a.sends("longer", b.endpoint)
			o.ends(0, "long")
			require.EqualValues(w, 1, o.Datagram().Truncated)
			a.sends("whole", b.endpoint)
			b.receives("whole", a.endpoint, 5, false)
		}
	}},
	{"nobody there", func(w *world) {
		a, gone := w.place(core.IPv4), w.place(core.IPv4)
		w.close(gone.handle)
		for range 5 {
			o := w.op(8)
			require.False(w, o.start(a.handle, core.KindReceiveFrom, 0, nil))
			a.sends("lost", gone.endpoint)
			a.sends("found", a.endpoint)
			o.ends(0, "found")
		}
	}},
	{"too long to be sent", func(w *world) {
		a := w.place(core.IPv4)
		o := w.op(70000)
		if !o.start(a.handle, core.KindSendTo, 0, &a.endpoint) {
			w.until(o.ran)
		}
		require.EqualValues(w, core.EInval, o.Status)
		require.Zero(w, o.Count)
	}},
	{"cancel, and close", func(w *world) {
		a := w.place(core.IPv4)
		o := w.op(8)
		require.False(w, o.start(a.handle, core.KindReceiveFrom, 0, nil))
		require.True(w, w.lane.Cancel(o.IO, w.ready))
		o.ends(core.ECanceled, "")
		o = w.op(8)
		require.False(w, o.start(a.handle, core.KindReceiveFrom, 0, nil))
		w.close(a.handle)
		o.ends(core.EClosed, "")
	}},
}

// place is a socket for datagrams, and where it is.
type place struct {
	end
	w        *world
	endpoint core.Endpoint
}

func (w *world) place(family uint16) place {
	system, err := w.Sockets.Datagrams(loopback(family))
	require.NoError(w, err)
	endpoint, err := w.Sockets.Local(system)
	require.NoError(w, err)
	return place{end{w.adopt(system), system}, w, endpoint}
}

func (p place) sends(text string, to core.Endpoint) {
	o := p.w.op(len(text))
	copy(o.memory, text)
	if !o.start(p.handle, core.KindSendTo, 0, &to) {
		p.w.until(o.ran)
	}
	require.Zero(p.w, o.Status)
	require.EqualValues(p.w, len(text), o.Count)
}

// receives takes a datagram that is on its way.
func (p place) receives(text string, from core.Endpoint, room int, truncated bool) {
	o := p.w.op(room)
	if !o.start(p.handle, core.KindReceiveFrom, 0, nil) {
		p.w.until(o.ran)
	}
	require.Zero(p.w, o.Status)
	require.Equal(p.w, text, string(o.memory[:o.Count]))
	require.Equal(p.w, from, o.Datagram().Peer)
	require.Equal(p.w, truncated, o.Datagram().Truncated == 1)
}
