package core_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/purelane"
)

// A system that reports completion, played by the test: it has the op's System from a call that waits until end is called.

const aborted = 0xc0000120 // what such a system says of a transfer that it gave up

// transfers are its calls.
type transfers struct {
	fakeSockets
	collected int
}

func (s *transfers) Try(system int32, hints uint32, io *core.IO) core.Attempt {
	io.Lend(0)
	return s.fakeSockets.Try(system, hints, io)
}

func (s *transfers) Collect(_ int32, _ uint32, io *core.IO) core.Attempt {
	status, bytes := io.Landed()
	s.collected++
	if status == aborted {
		return core.Attempt{Err: core.ECanceled, OSError: 995, Moved: bytes}
	}
	if io.Kind == core.KindAccept {
		return core.Attempt{Accepted: int32(bytes)}
	}
	return core.Attempt{Moved: bytes}
}

// completion is an ioFixture on it.
type completion struct {
	*ioFixture
	transfers   *transfers
	interrupted *interrupts
}

type interrupts struct {
	*fakePoller
	mu    sync.Mutex
	asked []*core.IO // guarded by mu
}

func (p *interrupts) Interrupt(_ int32, io *core.IO) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, io)
	return true
}

func newCompletion(t *testing.T) *completion {
	table := newTable(t)
	table.poller.completions = true
	poller := &interrupts{fakePoller: table.poller}
	table.DescriptorTable = core.NewDescriptorTable(table.shared, poller, purelane.Memory{})
	f := &completion{ioFixture: newIOOn(table), transfers: &transfers{}, interrupted: poller}
	f.sockets = &f.transfers.fakeSockets
	f.lane = core.NewIOLane(f.DescriptorTable, f.transfers, retryRun)
	return f
}

// end is the packet of a transfer.
func (f *completion) end(io *core.IO, status uint32, bytes uint64) {
	io.System[0], io.System[1] = uint64(status), bytes
	f.Finished(io, f.queue)
}

func TestTransfer(t *testing.T) {
	f := newCompletion(t)
	io := f.io()
	require.False(t, f.start(io, receive(10, 0)))
	require.Empty(t, f.work())
	f.end(io, 0, 7)
	f.ends(io, 0, 7)
	require.Equal(t, 1, f.transfers.calls, "what has come is collected, not asked for again")
	f.sockets.answers = []core.Attempt{{Moved: 5}} // at once
	require.True(t, f.start(io, receive(10, 0)))
	f.ended(io, 0, 5)
}

func TestTransferEndsBeforeItIsArmed(t *testing.T) {
	f := newCompletion(t)
	io := f.io()
	f.sockets.during = func(io *core.IO) { f.end(io, 0, 5) }
	require.True(t, f.start(io, receive(10, 0)))
	f.ended(io, 0, 5)
}

// Piece by piece: each transfer waits for its packet; those that move all at once give others a turn now and then.
func TestTransferOfAll(t *testing.T) {
	f := newCompletion(t)
	io := f.io()
	require.False(t, f.start(io, receive(10, core.IOAll)))
	f.end(io, 0, 4)
	require.Empty(t, f.work())
	f.end(io, 0, 6)
	f.ends(io, 0, 10)
	require.False(t, f.start(io, receive(10, core.IOAll)))
	f.end(io, 0, 4)
	require.Empty(t, f.work())
	f.end(io, 0, 0)
	f.ends(io, core.EEOF, 4)
	for range 40 {
		f.sockets.answers = append(f.sockets.answers, core.Attempt{Moved: 1})
	}
	require.False(t, f.start(io, receive(40, core.IOAll)))
	f.ends(io, 0, 40)
}

func TestTransferIsCancelled(t *testing.T) {
	f := newCompletion(t)
	io := f.io()
	for _, c := range []struct {
		status uint32
		bytes  uint64
		result core.Error
	}{{aborted, 0, core.ECanceled}, {0, 10, 0}, {aborted, 3, core.ECanceled}} {
		require.False(t, f.start(io, receive(10, 0)))
		require.True(t, f.lane.Cancel(io, f.queue))
		require.Len(t, f.interrupted.asked, 1)
		f.interrupted.asked = nil
		require.Empty(t, f.work(), "the system still writes into its memory")
		f.end(io, c.status, c.bytes)
		f.ends(io, c.result, c.bytes)
	}
	// While it is in its call: it asks for the end itself, and waits for it.
	var cancels sync.WaitGroup
	f.sockets.during = func(io *core.IO) {
		cancels.Go(func() { f.lane.Cancel(io, func(*core.Op) { panic("it is the system's") }) })
		eventually(t, func() bool { return io.State.Load() == core.IOCancelling }, "requested")
	}
	require.False(t, f.start(io, receive(10, 0)))
	cancels.Wait()
	require.Zero(t, f.d.Slot[core.Receive].Load()&core.SlotReady, "only a packet makes it ready")
	require.NotEmpty(t, f.interrupted.asked)
	require.Empty(t, f.work())
	f.end(io, aborted, 0)
	f.ends(io, core.ECanceled, 0)
}

// A cancel that is late hits the transfer of the op's next life, or a thread's end does. Nobody has asked: a receive goes on.
func TestTransferIsGivenUpWithoutCause(t *testing.T) {
	f := newCompletion(t)
	io := f.io()
	require.False(t, f.start(io, receive(10, 0)))
	f.end(io, aborted, 0)
	require.Empty(t, f.work())
	require.Equal(t, 2, f.transfers.calls)
	f.end(io, 0, 10)
	f.ends(io, 0, 10)
	require.False(t, f.start(io, core.Request{Kind: core.KindSend, Data: 1 << 20, Length: 10}))
	f.end(io, aborted, 0)
	f.ends(io, core.ECanceled, 0)
}

func TestTransferAndClose(t *testing.T) {
	f := newCompletion(t)
	io := f.io()
	require.False(t, f.start(io, receive(10, 0)))
	require.Empty(t, f.close(f.handle))
	require.Len(t, f.interrupted.asked, 1)
	require.Empty(t, f.work())
	require.EqualValues(t, 1, f.shared.Descriptors.Load(), "somebody polls for the packet")
	f.end(io, 0, 4) // it came in spite of that
	f.ends(io, core.EClosed, 4)
	require.Zero(t, f.shared.Descriptors.Load())

	f.handle = f.open(11)
	require.False(t, f.start(io, core.Request{Kind: core.KindAccept}))
	require.Empty(t, f.close(f.handle))
	f.end(io, 0, 33)
	f.ends(io, core.EClosed, 0)
	require.Equal(t, []int32{33}, f.transfers.closed)

	f.handle = f.open(12)
	require.False(t, f.start(io, receive(10, 0)))
	require.Empty(t, f.close(f.handle))
	f.end(io, aborted, 0)
	f.ends(io, core.EClosed, 0)
}

// The closer waits for the call, not for the transfer: the op is armed in a slot that is closed.
func TestTransferBeginsInAClose(t *testing.T) {
	f := newCompletion(t)
	io := f.io()
	var closing sync.WaitGroup
	var gone atomic.Bool
	f.sockets.during = func(*core.IO) {
		closing.Go(func() {
			require.NoError(t, f.Close(f.handle, func(*core.Op) { panic("it is the system's") }))
			gone.Store(true)
		})
		eventually(t, func() bool { return f.d.Slot[core.Receive].Load()&core.SlotClosed != 0 }, "closed")
		require.False(t, gone.Load())
	}
	require.False(t, f.start(io, receive(10, 0)))
	closing.Wait()
	require.Len(t, f.interrupted.asked, 1)
	f.end(io, aborted, 0)
	f.ends(io, core.EClosed, 0)
}

func TestTransferAndStop(t *testing.T) {
	f := newCompletion(t)
	waiting, sends := f.io(), f.io()
	require.False(t, f.Busy())
	require.False(t, f.start(waiting, receive(10, 0)))
	f.shared.State.Store(core.StateStopping)
	require.Empty(t, f.CancelAll())
	require.Equal(t, []*core.IO{waiting}, f.interrupted.asked)
	require.True(t, f.Busy())
	_, err := f.lane.Start(sends, f.handle, core.Request{Kind: core.KindSend}, f.queue)
	require.Equal(t, core.EStopped, err)
	f.end(waiting, aborted, 0)
	require.True(t, f.Busy())
	f.ends(waiting, core.ECanceled, 0)
	require.False(t, f.Busy())
}
