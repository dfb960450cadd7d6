package iocp

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"

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

func TestRuntimeServes(t *testing.T) {
	servetest.Run(t, system, 8, 20, func(t *testing.T) (int32, io.ReadWriter) { return pair(t) })
}

func TestMilliseconds(t *testing.T) {
	for timeout, ms := range map[int64]uint32{
		1: 1, 999_999: 1, 1_000_000: 1, 1_000_001: 2, 1<<63 - 1: windows.INFINITE - 1,
	} {
		require.Equal(t, ms, milliseconds(timeout), "%d ns", timeout)
	}
}

// The packets of files are for C.
func TestFlights(t *testing.T) {
	f := newFixture(t)
	places := unsafe.Slice(memory[windows.Overlapped](t, 2), 2)
	op := memory[core.Op](t, 1)
	var arrived []uintptr
	f.poller.Flights(func(overlapped uintptr) uintptr {
		arrived = append(arrived, overlapped)
		if len(arrived) == 1 {
			return 0 // the submitter goes on with it
		}
		return uintptr(unsafe.Pointer(op))
	})
	for i := range places {
		require.NoError(t, windows.PostQueuedCompletionStatus(f.poller.port, 0, FlightKey, &places[i]))
	}
	for events := 0; events < 2; {
		n := f.poller.Poll(int64(time.Minute), f.add)
		require.Positive(t, n)
		events += n
	}
	require.Equal(t, []uintptr{uintptr(unsafe.Pointer(&places[0])), uintptr(unsafe.Pointer(&places[1]))}, arrived)
	require.Equal(t, []*core.Op{op}, f.queue)
}

// fixture is a table on a poller.
type fixture struct {
	*testing.T
	*core.DescriptorTable
	poller *Poller
	lane   *core.IOLane
	queue  []*core.Op
	pieces []func() // what frees the memory of ops
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, poller: New()}
	shared := memory[core.RuntimeMemory](t, 1)
	shared.ID.Store(1)
	shared.State.Store(core.StateRunning)
	shared.Pending.Store(1)
	f.DescriptorTable = core.NewDescriptorTable(shared, f.poller, purelane.Memory{})
	f.lane = core.NewIOLane(f.DescriptorTable, Sockets{}, 1)
	require.NoError(t, f.poller.Attach(f.DescriptorTable, shared))
	require.Positive(t, shared.Port)
	require.Positive(t, shared.Event)
	t.Cleanup(func() {
		// What is closed may be under way still, and the system writes to its memory until it has ended.
		for deadline := time.Now().Add(20 * time.Second); shared.Descriptors.Load() != 0; f.work() {
			require.True(t, time.Now().Before(deadline), "an op never ended")
			f.poller.Poll(int64(20*time.Millisecond), f.add)
		}
		f.poller.Close()
		for _, free := range f.pieces {
			free()
		}
	})
	return f
}

// memory gives out pieces that are not Go's, for the length of a test.
func memory[T any](t *testing.T, n int) *T {
	var zero T
	piece := purelane.Memory{}.Alloc(unsafe.Sizeof(zero) * uintptr(n))
	t.Cleanup(func() { purelane.Memory{}.Free(piece) })
	return (*T)(piece)
}

func (f *fixture) add(op *core.Op) { f.queue = append(f.queue, op) }

// adopt opens a descriptor that is closed when the test ends.
func (f *fixture) adopt(system int32) (handle uint64) {
	handle, err := f.Open(system, Sockets{}.Kind(system))
	require.NoError(f, err)
	f.Cleanup(func() { _ = f.Close(handle, f.add) })
	return handle
}

// hints are those of a descriptor.
func (f *fixture) hints(handle uint64) uint32 {
	system, err := f.System(handle)
	require.NoError(f, err)
	return modeOf(windows.Handle(system))
}

// op is an I/O op with its memory.
type op struct {
	*core.IO
	f      *fixture
	memory []byte
}

func (f *fixture) op(n int) *op {
	o := &op{IO: piece[core.IO](f, 1), f: f, memory: unsafe.Slice(piece[byte](f, n), n)}
	o.Op.Run = 1
	return o
}

// piece is memory that is freed once all ops have ended.
func piece[T any](f *fixture, n int) *T {
	var zero T
	memory := purelane.Memory{}.Alloc(unsafe.Sizeof(zero) * uintptr(n))
	f.pieces = append(f.pieces, func() { purelane.Memory{}.Free(memory) })
	return (*T)(memory)
}

func (o *op) start(handle uint64, kind uint16) (done bool) {
	o.f.Helper()
	done, err := o.f.lane.Start(o.IO, handle, core.Request{Kind: kind, Data: core.AddressOf(&o.memory[0]), Length: uint64(len(o.memory))}, o.f.add)
	require.NoError(o.f, err)
	return done
}

// waits starts an op that must not be done at once.
func (o *op) waits(handle uint64, kind uint16) {
	o.f.Helper()
	require.False(o.f, o.start(handle, kind), "done at once: status %d, the system's %d, %d bytes", o.Status, o.OSError, o.Count)
}

// work runs what is queued, and tells whether this op is complete.
func (o *op) work() bool {
	o.f.work()
	return o.State.Load() == core.IOCompleted
}

func (f *fixture) work() {
	for len(f.queue) != 0 {
		next := f.queue[0]
		f.queue = f.queue[1:]
		f.lane.Retry(next, f.add)
	}
}

func (o *op) ends(status core.Error, text string) {
	o.f.Helper()
	for deadline := time.Now().Add(20 * time.Second); !o.work(); {
		require.True(o.f, time.Now().Before(deadline), "it never ended")
		o.f.poller.Poll(int64(20*time.Millisecond), o.f.add)
	}
	require.EqualValues(o.f, status, o.Status, "the system's: %d", o.OSError)
	require.Equal(o.f, text, string(o.memory[:o.Count]))
}

// pair makes a connection; the far end is the test's.
func pair(t *testing.T) (ours int32, peer net.Conn) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	ours, err = Sockets{}.Open(core.IPv4)
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, windows.Connect(windows.Handle(ours), &windows.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	peer, err = listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { peer.Close() })
	return ours, peer
}

func writeAll(t *testing.T, peer net.Conn, message []byte) {
	_, err := peer.Write(message)
	require.NoError(t, err)
}

func readAll(t *testing.T, peer net.Conn, length int) []byte {
	message := make([]byte, length)
	_, err := io.ReadFull(peer, message)
	require.NoError(t, err)
	return message
}

func TestBatches(t *testing.T) {
	f := newFixture(t)
	const many = batch + batch/2
	for range many {
		f.poller.Wake()
	}
	entries := new([batch]entry)
	for _, n := range []int{batch, many - batch} {
		got, err := getQueuedCompletionStatusEx(f.poller.port, entries[:], 0, false)
		require.NoError(t, err)
		require.Equal(t, n, got)
		require.Equal(t, WakeKey, entries[n-1].key)
	}
	_, err := getQueuedCompletionStatusEx(f.poller.port, entries[:], 0, false)
	require.Equal(t, windows.Errno(windows.WAIT_TIMEOUT), err)
}

// Timeouts by a clock that is finer than what they are made of.
func TestPollIsNotEarly(t *testing.T) {
	f := newFixture(t)
	for _, timeout := range []time.Duration{1, 50 * time.Microsecond, time.Millisecond, 1100 * time.Microsecond, 17 * time.Millisecond} {
		shortest := time.Duration(1<<63 - 1)
		for range 20 {
			start := now()
			require.Zero(t, f.poller.Poll(int64(timeout), f.add))
			took := time.Duration(now() - start)
			require.GreaterOrEqual(t, took, timeout)
			shortest = min(shortest, took)
		}
		if timeout <= time.Millisecond {
			require.Less(t, shortest, 15*time.Millisecond, "a tick of the system")
		}
	}
}

// The timer is one thread's; another that polls does without.
func TestPollWithoutTheTimer(t *testing.T) {
	f := newFixture(t)
	f.poller.timed.Lock()
	start := now()
	require.Zero(t, f.poller.Poll(int64(3*time.Millisecond), f.add))
	require.GreaterOrEqual(t, now()-start, int64(3*time.Millisecond))
	f.poller.timed.Unlock()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				start := now()
				f.poller.Poll(int64(2*time.Millisecond), nil)
				if now()-start < int64(2*time.Millisecond) {
					t.Error("early")
				}
			}
		})
	}
	all.Wait()
}

func TestRegistration(t *testing.T) {
	f := newFixture(t)
	// Files that were opened for calls that block, or that have positions.
	path := filepath.Join(os.TempDir(), "weft_iocp")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer os.Remove(path)
	defer file.Close()
	_, err = f.Open(int32(file.Fd()), core.HintFile)
	require.Equal(t, core.ENotSup, err)
	name, err := windows.UTF16PtrFromString(path)
	require.NoError(t, err)
	overlapped, err := windows.CreateFile(name, windows.GENERIC_READ, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_OVERLAPPED, 0)
	require.NoError(t, err)
	defer windows.CloseHandle(overlapped)
	_, err = f.Open(int32(overlapped), core.HintFile)
	require.Equal(t, core.ENotSup, err)
	var read, write windows.Handle
	require.NoError(t, windows.CreatePipe(&read, &write, nil, 0))
	defer windows.CloseHandle(write)
	defer windows.CloseHandle(read)
	_, err = f.Open(int32(read), core.HintFile)
	require.Equal(t, core.ENotSup, err)

	// Another runtime's.
	ours, _ := pair(t)
	handle := f.adopt(ours)
	other := newFixture(t)
	_, err = other.Open(ours, 0)
	require.Equal(t, core.EExist, err)
	require.Equal(t, core.HintSkips, f.hints(handle), "the system's own TCP")
	v6, err := Sockets{}.Open(core.IPv6)
	require.NoError(t, err)
	require.Equal(t, core.HintSkips|core.HintIPv6, f.hints(f.adopt(v6)))
}

// A receive whose bytes are there takes them, and no packet comes.
func TestSuccessAtOnceSkipsThePort(t *testing.T) {
	f := newFixture(t)
	ours, peer := pair(t)
	handle := f.adopt(ours)
	for range 100 {
		writeAll(t, peer, []byte("there"))
		require.Eventually(t, func() bool { return readable(ours) }, 20*time.Second, 100*time.Microsecond)
		o := f.op(5)
		require.True(t, o.start(handle, core.KindReceive))
		o.ends(0, "there")
		o = f.op(1)
		require.True(t, o.start(handle, core.KindSend), "there is room")
		readAll(t, peer, 1)
	}
	require.Zero(t, f.poller.Poll(int64(20*time.Millisecond), f.add))
}

// readable tells whether a socket has bytes.
func readable(socket int32) bool {
	var bytes, returned uint32
	const fionread = 0x4004667f
	err := windows.WSAIoctl(windows.Handle(socket), fionread, nil, 0, (*byte)(unsafe.Pointer(&bytes)), 4, &returned, nil, 0)
	return err == nil && bytes != 0
}

// The system may give up the transfers of a thread that ends. The op goes on.
func TestThreadThatBeganATransferEnds(t *testing.T) {
	f := newFixture(t)
	ours, peer := pair(t)
	handle := f.adopt(ours)
	o := f.op(4)
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		done <- o.start(handle, core.KindReceive)
	}()
	require.False(t, <-done)
	time.Sleep(50 * time.Millisecond)
	require.False(t, o.work())
	writeAll(t, peer, []byte("late"))
	o.ends(0, "late")
}

// Neither cancel nor close gives the op back before its packet.
func TestOverlappedIsTheSystemsUntilThePacket(t *testing.T) {
	f := newFixture(t)
	for _, end := range []core.Error{core.ECanceled, core.EClosed} {
		for range 50 {
			ours, _ := pair(t)
			handle := f.adopt(ours)
			o := f.op(4)
			o.waits(handle, core.KindReceive)
			if end == core.ECanceled {
				require.True(t, f.lane.Cancel(o.IO, f.add))
			} else {
				require.NoError(t, f.Close(handle, f.add))
			}
			require.Empty(t, f.queue)
			require.NotEqual(t, core.IOCompleted, o.State.Load())
			o.ends(end, "")
		}
	}
}

// A transfer that ends while it is cancelled: either its bytes are there, or they still come.
func TestCancelLosesNothing(t *testing.T) {
	f := newFixture(t)
	ours, peer := pair(t)
	handle := f.adopt(ours)
	for range 200 {
		o := f.op(1)
		o.waits(handle, core.KindReceive)
		var both sync.WaitGroup
		both.Go(func() { writeAll(t, peer, []byte("x")) })
		f.lane.Cancel(o.IO, f.add)
		both.Wait()
		for !o.work() {
			f.poller.Poll(-1, f.add)
		}
		if core.Error(o.Status) == core.ECanceled {
			o = f.op(1)
			o.start(handle, core.KindReceive)
		}
		o.ends(0, "x")
	}
}

func TestSystemsNumbers(t *testing.T) {
	for status, errno := range map[windows.NTStatus]windows.Errno{
		windows.STATUS_CANCELLED:          windows.ERROR_OPERATION_ABORTED,
		windows.STATUS_CONNECTION_REFUSED: windows.WSAECONNREFUSED,
		windows.STATUS_CONNECTION_RESET:   windows.WSAECONNRESET,
		windows.STATUS_PIPE_BROKEN:        windows.ERROR_BROKEN_PIPE,
		windows.STATUS_END_OF_FILE:        windows.ERROR_HANDLE_EOF,
		windows.STATUS_DISK_FULL:          windows.ERROR_DISK_FULL,
	} {
		require.Equal(t, errno, errnoOf(uint32(status)))
	}
	for errno, code := range map[windows.Errno]core.Error{
		0: 0, windows.ERROR_OPERATION_ABORTED: core.ECanceled, windows.WSAECONNREFUSED: core.EConnRefused,
		windows.WSAEMFILE: core.ELimit, windows.ERROR_ACCESS_DENIED: core.EAcces, 12345: core.ESystem,
	} {
		require.Equal(t, code, ErrorOf(errno))
	}
}
