package epoll

import (
	"io"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"weft/core"
	"weft/core/pollertest"
	"weft/core/purelane"
	"weft/core/servetest"
)

var system = pollertest.System{
	Poller:      func() core.Poller { return New() },
	Sockets:     Sockets{},
	Memory:      purelane.Memory{},
	RegularFile: core.ENotSup,
}

func TestConformance(t *testing.T) { pollertest.Run(t, system) }

// Linux before 5.11 has no epoll_pwait2.
func TestConformanceInMilliseconds(t *testing.T) {
	noPwait2.Store(1)
	defer noPwait2.Store(0)
	pollertest.Run(t, system)
}

// end is a socket that the test reads and writes itself.
type end int

func (e end) Read(b []byte) (int, error)  { return unix.Read(int(e), b) }
func (e end) Write(b []byte) (int, error) { return unix.Write(int(e), b) }

func TestRuntimeServes(t *testing.T) {
	servetest.Run(t, system, 16, 100, func(t *testing.T) (int32, io.ReadWriter) {
		ours, peer := pair(t)
		return int32(ours), end(peer)
	})
}

func TestMilliseconds(t *testing.T) {
	for timeout, ms := range map[int64]int{
		-1: -1, -1 << 63: -1, 0: 0, 1: 1, 999_999: 1, 1_000_000: 1, 1_000_001: 2, 1<<63 - 1: 1<<31 - 1,
	} {
		require.Equal(t, ms, milliseconds(timeout), "%d ns", timeout)
	}
}

// fixture is a table on a poller.
type fixture struct {
	*core.DescriptorTable
	poller *Poller
	ready  []*core.Op
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{poller: New()}
	piece := purelane.Memory{}.Alloc(unsafe.Sizeof(core.RuntimeMemory{}))
	shared := (*core.RuntimeMemory)(piece)
	shared.ID.Store(1)
	shared.State.Store(core.StateRunning)
	shared.Pending.Store(1)
	f.DescriptorTable = core.NewDescriptorTable(shared, f.poller, purelane.Memory{})
	require.NoError(t, f.poller.Attach(f.DescriptorTable, shared))
	require.Positive(t, shared.Port)
	require.Positive(t, shared.Event)
	t.Cleanup(func() {
		f.poller.Close()
		purelane.Memory{}.Free(piece)
	})
	return f
}

func (f *fixture) poll() int {
	return f.poller.Poll(0, func(op *core.Op) { f.ready = append(f.ready, op) })
}

func pair(t *testing.T) (ours, peer int) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(ends[1]) })
	return ends[0], ends[1]
}

func TestRegistrationSetsNonBlockingMode(t *testing.T) {
	f := newFixture(t)
	ours, _ := pair(t)
	handle, err := f.Open(int32(ours), 0)
	require.NoError(t, err)
	flags, err := unix.FcntlInt(uintptr(ours), unix.F_GETFL, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.O_NONBLOCK)
	require.NoError(t, f.Close(handle, nil))
	_, err = unix.FcntlInt(uintptr(ours), unix.F_GETFL, 0)
	require.Equal(t, unix.EBADF, err, "close closes")
}

func TestRefusalChangesNothing(t *testing.T) {
	f := newFixture(t)
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	duplicate, err := unix.Dup(int(file.Fd()))
	require.NoError(t, err)
	defer unix.Close(duplicate)
	_, err = f.Open(int32(duplicate), 0)
	require.Equal(t, core.ENotSup, err)
	flags, err := unix.FcntlInt(uintptr(duplicate), unix.F_GETFL, 0)
	require.NoError(t, err)
	require.Zero(t, flags&unix.O_NONBLOCK)
	_, err = f.Open(int32(f.poller.epoll), 0)
	require.Equal(t, core.EInval, err, "the poller itself")
}

// epoll watches what is behind a descriptor for as long as a duplicate of it is open.
func TestCloseWithADuplicate(t *testing.T) {
	f := newFixture(t)
	ours, peer := pair(t)
	duplicate, err := unix.Dup(ours)
	require.NoError(t, err)
	defer unix.Close(duplicate)
	handle, err := f.Open(int32(ours), 0)
	require.NoError(t, err)
	f.poll()
	require.NoError(t, f.Close(handle, nil))
	_, err = unix.Write(peer, []byte("x"))
	require.NoError(t, err)
	require.Zero(t, f.poll())
	handle, err = f.Open(int32(duplicate), 0)
	require.NoError(t, err, "what is behind it can be registered again")
	require.Equal(t, 1, f.poll())
	require.NoError(t, f.Close(handle, nil))
}

// Edges: what was told is not told again, however often one asks.
func TestEdges(t *testing.T) {
	f := newFixture(t)
	ours, peer := pair(t)
	handle, err := f.Open(int32(ours), 0)
	require.NoError(t, err)
	require.Equal(t, 1, f.poll(), "it is writable")
	for range 3 {
		require.Zero(t, f.poll())
		_, err = unix.Write(peer, []byte("x"))
		require.NoError(t, err)
		require.Equal(t, 1, f.poll())
	}
	require.NoError(t, f.Close(handle, nil))
}

func TestAttachWithoutDescriptors(t *testing.T) {
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	next, err := unix.Dup(0)
	require.NoError(t, err)
	unix.Close(next)
	for free := range 2 { // none for epoll, and none for the eventfd
		low := before
		low.Cur = uint64(next + free)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
		err = New().Attach(nil, nil)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
		require.Equal(t, core.ELimit, err)
	}
	again, err := unix.Dup(0)
	require.NoError(t, err)
	unix.Close(again)
	require.Equal(t, next, again, "nothing was left open")
}

func BenchmarkPoll(b *testing.B) {
	p := New()
	piece := purelane.Memory{}.Alloc(unsafe.Sizeof(core.RuntimeMemory{}))
	defer purelane.Memory{}.Free(piece)
	shared := (*core.RuntimeMemory)(piece)
	table := core.NewDescriptorTable(shared, p, purelane.Memory{})
	require.NoError(b, p.Attach(table, shared))
	defer p.Close()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(b, err)
	handle, err := table.Open(int32(ends[0]), 0)
	require.NoError(b, err)
	ready := func(*core.Op) {}
	var one, sink [1]byte
	b.ReportAllocs()
	for b.Loop() {
		_, _ = unix.Write(ends[1], one[:])
		p.Poll(-1, ready)
		_, _ = unix.Read(ends[0], sink[:])
	}
	require.NoError(b, table.Close(handle, nil))
	unix.Close(ends[1])
}
