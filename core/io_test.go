package core_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// fakeSockets answer system calls from a script; without one an op has to wait.
type fakeSockets struct {
	core.Sockets
	answers []core.Attempt
	calls   int
	during  func(io *core.IO) // what happens while an op is in its call
	closed  []int32
}

var waits = core.Attempt{Wait: true}

func (s *fakeSockets) Try(_ int32, _ uint32, io *core.IO) core.Attempt {
	s.calls++
	if s.during != nil {
		s.during(io)
	}
	if len(s.answers) == 0 {
		return waits
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer
}

func (s *fakeSockets) Close(system int32) { s.closed = append(s.closed, system) }

// ioFixture is one open descriptor and what it takes to run ops on it.
type ioFixture struct {
	*tableFixture
	sockets *fakeSockets
	lane    *core.IOLane
	handle  uint64
	d       *core.DescriptorMemory
	queued  []*core.Op
}

// retryRun stands for the function of the ops that try again.
const retryRun = 4711

func newIO(t testing.TB) *ioFixture {
	return newIOOn(newTable(t))
}

func newIOOn(table *tableFixture) *ioFixture {
	f := &ioFixture{tableFixture: table, sockets: &fakeSockets{}}
	f.lane = core.NewIOLane(f.DescriptorTable, f.sockets, retryRun)
	f.handle = f.open(10)
	f.d = f.Record(f.handle)
	return f
}

func (f *ioFixture) queue(op *core.Op) { f.queued = append(f.queued, op) }

func (f *ioFixture) io() *core.IO {
	io := shared[core.IO](f.t)
	io.Op.Run = 1
	return io
}

func receive(length uint64, flags uint16) core.Request {
	return core.Request{Kind: core.KindReceive, Flags: flags, Data: 1 << 20, Length: length} // nobody looks at the memory
}

func (f *ioFixture) start(io *core.IO, request core.Request) bool {
	done, err := f.lane.Start(io, f.handle, request, f.queue)
	require.NoError(f.t, err)
	return done
}

// event makes the descriptor ready.
func (f *ioFixture) event(directions int, hangup bool) {
	f.Ready(f.handle>>32<<32, directions, hangup, f.queue)
}

const (
	in  = 1 << core.Receive
	out = 1 << core.Send
)

// work runs what is queued, until nothing is, and returns the ops that are complete.
func (f *ioFixture) work() (complete []*core.IO) {
	for len(f.queued) != 0 {
		op := f.queued[0]
		f.queued = f.queued[1:]
		if op.Run != retryRun {
			complete = append(complete, (*core.IO)(unsafe.Pointer(op)))
		} else if io := f.lane.Retry(op, f.queue); io != nil {
			complete = append(complete, io)
		}
	}
	return complete
}

func (f *ioFixture) ends(io *core.IO, status core.Error, count uint64) {
	f.t.Helper()
	require.Equal(f.t, []*core.IO{io}, f.work())
	f.ended(io, status, count)
}

func (f *ioFixture) ended(io *core.IO, status core.Error, count uint64) {
	f.t.Helper()
	require.EqualValues(f.t, status, io.Status)
	require.Equal(f.t, count, io.Count)
	require.Equal(f.t, core.IOCompleted, io.State.Load())
	require.Empty(f.t, f.queued)
}

func TestStartCompletesAtOnce(t *testing.T) {
	f := newIO(t)
	io := f.io()
	f.sockets.answers = []core.Attempt{{Moved: 7}}
	require.True(t, f.start(io, receive(10, 0)))
	f.ended(io, 0, 7)
	require.EqualValues(t, 1, f.shared.IOStarted.Load())
	require.EqualValues(t, 1, f.shared.IOImmediate.Load())
	f.sockets.answers = []core.Attempt{{}}
	require.True(t, f.start(io, receive(10, 0)), "a completed op may be started again")
	f.ended(io, 0, 0)
	f.sockets.answers = []core.Attempt{{Err: core.EConnReset, OSError: 104}}
	require.True(t, f.start(io, receive(10, 0)))
	f.ended(io, core.EConnReset, 0)
	require.EqualValues(t, 104, io.OSError)
}

func TestReadinessAfterArming(t *testing.T) {
	f := newIO(t)
	io := f.io()
	require.False(t, f.start(io, receive(10, 0)))
	require.Equal(t, core.AddressOf(io), f.d.Slot[core.Receive].Load())
	f.event(out, false)
	require.Empty(t, f.work(), "the other direction is no news")
	f.event(in, false)
	require.Len(t, f.queued, 1)
	f.event(in, false) // once more while it is queued
	require.Len(t, f.queued, 1)
	f.sockets.answers = []core.Attempt{waits, {Moved: 3}}
	require.Empty(t, f.work(), "spurious: it waits on")
	f.event(in, false)
	f.ends(io, 0, 3)
	require.EqualValues(t, 0, f.shared.IOImmediate.Load())
}

func TestReadinessDuringTheCall(t *testing.T) {
	f := newIO(t)
	io := f.io()
	f.sockets.during = func(*core.IO) {
		if f.sockets.calls == 1 {
			f.event(in, false)
		}
	}
	f.sockets.answers = []core.Attempt{waits, {Moved: 3}}
	require.True(t, f.start(io, receive(10, 0)), "the news make it try again")
	f.ended(io, 0, 3)
}

func TestReadinessBeforeTheStart(t *testing.T) {
	f := newIO(t)
	io := f.io()
	f.event(in|out, false)
	require.False(t, f.start(io, receive(10, 0)), "old news: the call came after it, and was refused")
	require.Equal(t, 1, f.sockets.calls)
}

func TestBusy(t *testing.T) {
	f := newIO(t)
	first, second, third := f.io(), f.io(), f.io()
	require.False(t, f.start(first, receive(10, 0)))
	_, err := f.lane.Start(second, f.handle, receive(10, 0), f.queue)
	require.Equal(t, core.EBusy, err)
	require.Equal(t, core.IOIdle, second.State.Load())
	_, err = f.lane.Start(second, f.handle, core.Request{Kind: core.KindAccept}, f.queue)
	require.Equal(t, core.EBusy, err)
	_, err = f.lane.Start(first, f.handle, core.Request{Kind: core.KindSend}, f.queue)
	require.Equal(t, core.EBusy, err, "the op is under way")
	require.False(t, f.start(third, core.Request{Kind: core.KindSend, Data: 1, Length: 1}), "the other direction")
	f.event(in|out, false)
	f.sockets.answers = []core.Attempt{{Moved: 1}, {Moved: 1}}
	require.ElementsMatch(t, []*core.IO{first, third}, f.work())
}

func TestReceiveAll(t *testing.T) {
	f := newIO(t)
	io := f.io()
	f.sockets.answers = []core.Attempt{{Moved: 3}, waits, {Moved: 4}, {Moved: 3}}
	require.False(t, f.start(io, receive(10, core.IOAll)))
	f.event(in, false)
	f.ends(io, 0, 10)

	f.sockets.answers = []core.Attempt{{Moved: 3}, {}}
	require.True(t, f.start(io, receive(10, core.IOAll)))
	f.ended(io, core.EEOF, 3)

	f.sockets.answers = []core.Attempt{{Moved: 3}, {Err: core.EConnReset}}
	require.True(t, f.start(io, receive(10, core.IOAll)))
	f.ended(io, core.EConnReset, 3)
}

func TestNothingToMove(t *testing.T) {
	f := newIO(t)
	for _, flags := range []uint16{0, core.IOAll} {
		io := f.io()
		require.True(t, f.start(io, receive(0, flags)))
		f.ended(io, 0, 0)
	}
	require.Zero(t, f.sockets.calls)
}

// An op of many calls gives others a turn in between.
func TestManyCalls(t *testing.T) {
	f := newIO(t)
	io := f.io()
	for range 40 {
		f.sockets.answers = append(f.sockets.answers, core.Attempt{Moved: 1})
	}
	require.False(t, f.start(io, receive(40, core.IOAll)))
	require.Equal(t, 16, f.sockets.calls)
	require.Len(t, f.queued, 1)
	f.event(in, false)
	require.Len(t, f.queued, 1, "it is queued already")
	f.ends(io, 0, 40)
}

// After a short receive on a stream the next one waits without a call.
func TestVainCalls(t *testing.T) {
	short := core.Attempt{Moved: 3, Short: true}
	for name, c := range map[string]struct {
		first  core.Attempt
		before func(f *ioFixture) // between the receives
		calls  int                // of the second
	}{
		"short":               {short, func(*ioFixture) {}, 0},
		"full":                {core.Attempt{Moved: 10}, func(*ioFixture) {}, 1},
		"news":                {short, func(f *ioFixture) { f.event(in, false) }, 1},
		"news of the other":   {short, func(f *ioFixture) { f.event(out, false) }, 0},
		"hangup":              {short, func(f *ioFixture) { f.event(0, true) }, 1},
		"no stream":           {short, func(f *ioFixture) { f.d.Hints.And(^core.HintReceiveDrained) }, 1},
		"a full one in front": {short, func(f *ioFixture) { f.receives(core.Attempt{Moved: 10}) }, 1},
		"a failure in front":  {short, func(f *ioFixture) { f.receives(core.Attempt{Err: core.ENoMem}) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newIO(t)
			f.receives(c.first)
			c.before(f)
			calls := f.sockets.calls
			io := f.io()
			require.False(t, f.start(io, receive(10, 0)))
			require.Equal(t, c.calls, f.sockets.calls-calls)
			f.event(in, false)
			f.sockets.answers = []core.Attempt{{Moved: 1}}
			f.ends(io, 0, 1)
		})
	}
}

// receives makes a receive that completes at once or by an event.
func (f *ioFixture) receives(answer core.Attempt) {
	io := f.io()
	f.sockets.answers = []core.Attempt{answer}
	if !f.start(io, receive(10, 0)) {
		f.event(in, false)
		require.Equal(f.t, []*core.IO{io}, f.work())
	}
}

func TestShortReceiveOfAll(t *testing.T) {
	f := newIO(t)
	io := f.io()
	f.sockets.answers = []core.Attempt{{Moved: 3, Short: true}, {Moved: 7}}
	require.False(t, f.start(io, receive(10, core.IOAll)))
	require.Equal(t, 1, f.sockets.calls)
	f.event(in, false)
	f.ends(io, 0, 10)
}

func TestBoundariesAreKept(t *testing.T) {
	f := newIO(t)
	f.handle, _ = f.Open(11, 0)
	f.d = f.Record(f.handle)
	f.sockets.answers = []core.Attempt{{Moved: 3, Short: true}, {Moved: 2, Short: true}}
	io := f.io()
	require.True(t, f.start(io, receive(10, 0)))
	require.True(t, f.start(io, receive(10, 0)), "a short datagram says nothing about the next")
}

func TestAccept(t *testing.T) {
	f := newIO(t)
	io := f.io()
	f.sockets.answers = []core.Attempt{{Accepted: 20}}
	require.True(t, f.start(io, core.Request{Kind: core.KindAccept}))
	f.ended(io, 0, 0)
	accepted := f.Record(io.Accepted)
	require.EqualValues(t, 20, accepted.System.Load())
	require.Equal(t, core.HintStream, accepted.Hints.Load(), "of the listener's kind")

	f.poller.refuses = core.ENoMem
	f.sockets.answers = []core.Attempt{{Accepted: 21}}
	require.True(t, f.start(io, core.Request{Kind: core.KindAccept}))
	f.ended(io, core.ENoMem, 0)
	require.Zero(t, io.Accepted)
	require.Equal(t, []int32{21}, f.sockets.closed)
}

func TestConnectKeepsItsPeer(t *testing.T) {
	f := newIO(t)
	io := f.io()
	peer := core.Endpoint{Family: core.IPv6, Port: 443, Scope: 7, Address: [16]byte{1, 2, 3, 14: 15, 15: 16}}
	var seen []core.Endpoint
	var flags []uint16
	f.sockets.during = func(io *core.IO) { seen, flags = append(seen, io.Peer()), append(flags, io.Flags) }
	gone := peer
	f.sockets.answers = []core.Attempt{waits, waits, {}}
	require.False(t, f.start(io, core.Request{Kind: core.KindConnect, Peer: &gone}))
	gone = core.Endpoint{}
	f.event(out, false)
	require.Empty(t, f.work())
	f.event(out, false)
	f.ends(io, 0, 0)
	require.Equal(t, []core.Endpoint{peer, peer, peer}, seen)
	require.Equal(t, []uint16{0, core.IOUnderWay, core.IOUnderWay}, flags)
}

func TestRestOfBuffers(t *testing.T) {
	bytes := sharedSlice[byte](t, 10)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	buffers := sharedSlice[core.Buffer](t, 4)
	for i, cut := range [][2]int{{0, 3}, {3, 3}, {3, 7}, {7, 10}} {
		buffers[i] = core.Buffer{Data: core.AddressOf(&bytes[0]) + uint64(cut[0]), Length: uint64(cut[1] - cut[0])}
	}
	for count := range 11 {
		for _, io := range []*core.IO{
			{Kind: core.KindSendBuffers, Data: core.AddressOf(&buffers[0]), Length: 4, Count: uint64(count)},
			{Kind: core.KindSend, Data: core.AddressOf(&bytes[0]), Length: 10, Count: uint64(count)},
		} {
			rest := []byte{}
			for _, piece := range io.Rest(nil) {
				require.NotEmpty(t, piece)
				rest = append(rest, piece...)
			}
			require.Equal(t, bytes[count:], rest)
		}
	}
}
