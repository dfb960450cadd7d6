package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
)

func TestCancel(t *testing.T) {
	request := receive(10, core.IOAll)
	cancels := func(f *ioFixture, io *core.IO, noted bool) {
		require.Equal(t, noted, f.lane.Cancel(io, f.queue))
	}
	t.Run("before", func(t *testing.T) {
		f := newIO(t)
		io := f.io()
		cancels(f, io, true)
		cancels(f, io, false)
		_, err := f.lane.Start(io, f.handle+1, request, f.queue)
		require.Equal(t, core.EBadHandle, err)
		require.True(t, f.start(io, request), "the request outlives a start that is refused")
		f.ended(io, core.ECanceled, 0)
		require.Zero(t, f.sockets.calls)
		require.False(t, f.start(io, request), "it ended one start")
	})
	t.Run("in the call, which is refused", func(t *testing.T) {
		f := newIO(t)
		io := f.io()
		f.sockets.during = func(io *core.IO) {
			cancels(f, io, f.sockets.calls == 1)
			_, err := f.lane.Start(io, f.handle, request, f.queue)
			require.Equal(t, core.EBusy, err, "a second start does not take it for a request from before")
		}
		require.True(t, f.start(io, request))
		f.ended(io, core.ECanceled, 0)
		require.Equal(t, core.SlotReady, f.d.Slot[core.Receive].Load())
	})
	t.Run("in the call, which succeeds", func(t *testing.T) {
		f := newIO(t)
		io := f.io()
		f.sockets.during = func(io *core.IO) { cancels(f, io, true) }
		f.sockets.answers = []core.Attempt{{Moved: 10}}
		require.True(t, f.start(io, request))
		f.ended(io, 0, 10)
	})
	t.Run("armed", func(t *testing.T) {
		f := newIO(t)
		io := f.io()
		f.sockets.answers = []core.Attempt{{Moved: 4}}
		require.False(t, f.start(io, request))
		cancels(f, io, true)
		f.ends(io, core.ECanceled, 4)
		cancels(f, io, false)
		require.Zero(t, f.d.Slot[core.Receive].Load())
		require.False(t, f.start(io, request), "a late request is none for the next start")
	})
	t.Run("queued", func(t *testing.T) {
		for _, answer := range []core.Attempt{waits, {Moved: 10}} {
			f := newIO(t)
			io := f.io()
			require.False(t, f.start(io, request))
			f.event(in, false)
			cancels(f, io, true)
			cancels(f, io, false)
			f.sockets.answers = []core.Attempt{answer}
			if answer.Wait {
				f.ends(io, core.ECanceled, 0)
			} else {
				f.ends(io, 0, 10)
			}
		}
	})
	t.Run("while another op waits", func(t *testing.T) {
		f := newIO(t)
		first, second := f.io(), f.io()
		require.False(t, f.start(first, request))
		cancels(f, second, true)
		require.True(t, f.start(second, request))
		require.Equal(t, core.AddressOf(first), f.d.Slot[core.Receive].Load())
	})
}

func TestCloseWithWaiters(t *testing.T) {
	f := newIO(t)
	receives, sends := f.io(), f.io()
	f.sockets.answers = []core.Attempt{{Moved: 4}, waits}
	require.False(t, f.start(receives, receive(10, core.IOAll)))
	require.False(t, f.start(sends, core.Request{Kind: core.KindSend, Data: 1, Length: 10}))
	f.queued = f.close(f.handle)
	require.ElementsMatch(t, []*core.IO{receives, sends}, f.work())
	f.ended(receives, core.EClosed, 4)
	f.ended(sends, core.EClosed, 0)
	_, err := f.lane.Start(receives, f.handle, receive(1, 0), f.queue)
	require.Equal(t, core.EBadHandle, err)
	require.Equal(t, core.IOCompleted, receives.State.Load())
	require.EqualValues(t, 1, f.open(11)&0xffffff, "the record was given back")
}

// An op that is queued when its descriptor is closed makes no call, and holds the record until it has run.
func TestCloseWithQueued(t *testing.T) {
	f := newIO(t)
	receives, sends := f.io(), f.io()
	require.False(t, f.start(receives, receive(10, 0)))
	require.False(t, f.start(sends, core.Request{Kind: core.KindSend, Data: 1, Length: 10}))
	f.event(in|out, true)
	calls := f.sockets.calls
	require.Empty(t, f.close(f.handle))
	require.EqualValues(t, 2, f.open(11)&0xffffff, "the record is still held")
	require.ElementsMatch(t, []*core.IO{receives, sends}, f.work())
	f.ended(receives, core.EClosed, 0)
	f.ended(sends, core.EClosed, 0)
	require.Equal(t, calls, f.sockets.calls)
	require.EqualValues(t, 1, f.open(12)&0xffffff)
}

func TestStopCancels(t *testing.T) {
	f := newIO(t)
	waiting, trying := f.io(), f.io()
	require.False(t, f.start(waiting, receive(10, 0)))
	f.sockets.during = func(*core.IO) {
		f.sockets.during = nil
		f.shared.State.Store(core.StateStopping)
		f.queued = f.CancelAll()
	}
	require.True(t, f.start(trying, core.Request{Kind: core.KindSend, Data: 1, Length: 10}), "it is seen before it waits")
	require.EqualValues(t, core.ECanceled, trying.Status)
	f.ends(waiting, core.ECanceled, 0)
	_, err := f.lane.Start(waiting, f.handle, receive(10, 0), f.queue)
	require.Equal(t, core.EStopped, err)
}
