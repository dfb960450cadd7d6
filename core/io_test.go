package core_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
	f := &ioFixture{tableFixture: newTable(t), sockets: &fakeSockets{}}
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
	f.handle, _, _ = f.Open(11, 0)
	f.d = f.Record(f.handle)
	f.sockets.answers = []core.Attempt{{Moved: 3, Short: true}, {Moved: 2, Short: true}}
	io := f.io()
	require.True(t, f.start(io, receive(10, 0)))
	require.True(t, f.start(io, receive(10, 0)), "a short datagram says nothing about the next")
}

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
	require.Equal(t, []uint16{0, core.IOConnecting, core.IOConnecting}, flags)
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

// A system that reports completion has the transfer under way: cancel and close ask it to give up, and the op ends when it says so.
func TestCompletionPoller(t *testing.T) {
	f := newIO(t)
	f.poller.completions = true
	io := f.io()
	require.False(t, f.start(io, receive(10, 0)))
	require.True(t, f.lane.Cancel(io, f.queue))
	require.Empty(t, f.work(), "the system still writes into its memory")
	f.sockets.answers = []core.Attempt{{Moved: 10}}
	f.Finished(io, f.queue)
	f.ends(io, 0, 10)

	f.sockets.during = func(io *core.IO) {
		f.sockets.during = nil
		f.Finished(io, f.queue) // before the op is armed
	}
	f.sockets.answers = []core.Attempt{waits, {Moved: 5}}
	require.True(t, f.start(io, receive(10, 0)))
	f.ended(io, 0, 5)

	require.False(t, f.start(io, receive(10, 0)))
	require.Empty(t, f.close(f.handle))
	require.Empty(t, f.work())
	f.Finished(io, f.queue)
	f.ends(io, core.EClosed, 0)
}

// Starts, events, cancels and closes from many threads: every op that was started completes once, and every record comes back.
func TestIOHammer(t *testing.T) {
	const starters, rounds = 4, 10000
	f := &ioFixture{tableFixture: newTable(t)}
	f.poller.quiet = true
	seed := rand.Uint64()
	t.Log("seed", seed)
	sockets := randomSockets{}
	f.lane = core.NewIOLane(f.DescriptorTable, &sockets, retryRun)
	var handles [3]atomic.Uint64
	for i := range handles {
		handles[i].Store(f.open(int32(10 + i)))
	}
	ops := make(chan *core.Op, 1<<16) // the injection stack
	queue := func(op *core.Op) { ops <- op }
	var runs [starters]atomic.Int64
	ios := sharedSlice[core.IO](t, starters)
	for i := range ios {
		ios[i].Op.Run, ios[i].Op.Context = 1, uintptr(i)
	}
	var working, others sync.WaitGroup
	for range 2 {
		working.Go(func() {
			for op := range ops {
				if op.Run == retryRun {
					io := f.lane.Retry(op, queue)
					if io == nil {
						continue
					}
					op = &io.Op
				}
				runs[op.Context].Add(1)
			}
		})
	}
	var over atomic.Bool
	disturb := func(n uint64, f func(r *rand.Rand)) {
		others.Go(func() {
			r := rand.New(rand.NewPCG(seed, n))
			for !over.Load() {
				f(r)
				runtime.Gosched() // others are to have a turn in between, not after 10 ms
			}
		})
	}
	disturb(1, func(r *rand.Rand) {
		handle := handles[r.IntN(len(handles))].Load()
		f.Ready(handle>>32<<32|(handle&0xffffff-1), 1+r.IntN(3), r.IntN(50) == 0, queue)
	})
	disturb(2, func(r *rand.Rand) { f.lane.Cancel(&ios[r.IntN(starters)], queue) })
	disturb(3, func(r *rand.Rand) {
		i := r.IntN(len(handles))
		if handle := handles[i].Load(); f.Close(handle, queue) == nil {
			opened, _, err := f.Open(int32(10+i), uint32(r.IntN(2))*core.HintStream)
			if err != nil {
				t.Error(err)
			}
			handles[i].Store(opened)
		}
	})
	var starting sync.WaitGroup
	for i := range starters {
		starting.Go(func() {
			r := rand.New(rand.NewPCG(seed, 10+uint64(i)))
			io := &ios[i]
			for pending := int64(0); pending < rounds; {
				handle := handles[r.IntN(len(handles))].Load()
				request := receive(10, uint16(r.IntN(2)))
				request.Kind += uint16(r.IntN(2))
				done, err := f.lane.Start(io, handle, request, queue)
				if err != nil || done {
					continue
				}
				pending++
				for deadline := time.Now().Add(20 * time.Second); runs[i].Load() < pending; runtime.Gosched() {
					if time.Now().After(deadline) {
						t.Errorf("an op that was started never completed: state %d", io.State.Load())
						return
					}
				}
				if status := core.Error(io.Status); runs[i].Load() != pending || status != 0 && status != core.ECanceled && status != core.EClosed {
					t.Errorf("op ran %d times of %d, status %d", runs[i].Load(), pending, status)
					return
				}
			}
		})
	}
	starting.Wait()
	over.Store(true)
	others.Wait()
	close(ops)
	working.Wait()
	for i := range handles {
		f.close(handles[i].Load())
	}
	seen := map[uint64]bool{}
	for range handles {
		handle := f.open(20)
		require.LessOrEqual(t, handle&0xffffff, uint64(8), fmt.Sprintf("records were lost: %x", handle))
		require.False(t, seen[handle&0xffffff])
		seen[handle&0xffffff] = true
	}
}

// randomSockets answer at random.
type randomSockets struct{ core.Sockets }

func (*randomSockets) Try(int32, uint32, *core.IO) core.Attempt {
	switch rand.IntN(4) {
	case 0:
		return core.Attempt{Moved: 3, Short: true}
	case 1:
		return core.Attempt{Moved: 10}
	}
	return waits
}
