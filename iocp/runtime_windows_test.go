package iocp

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"weft/core"
	"weft/core/purelane"
)

// echo is an op that answers messages, one after the other.
type echo struct {
	core.IO
	handle   uint64
	receives uint64
	status   atomic.Int32 // how it ended
	ended    atomic.Bool
	memory   [64]byte
}

// program is a runtime without C: core, the pure-Go lane, this poller. What ops run is told by small numbers.
type program struct {
	t *testing.T
	*core.Runtime
	io *core.IOLane
}

const (
	runRetry = iota + 1
	runEcho
)

func newProgram(t *testing.T, workers int) *program {
	p := &program{t: t}
	memory := purelane.Memory{}
	piece := memory.Alloc(unsafe.Sizeof(core.RuntimeMemory{}))
	poller := New()
	lane := purelane.New(memory, poller, p.call)
	threads := new(purelane.Threads)
	r, err := core.New(core.Config{
		Shared: (*core.RuntimeMemory)(piece), ID: 1<<8 | 1, Workers: workers, CPUs: workers, Lane: lane, Memory: memory,
		Poller: poller, Start: threads.Start, Call: p.call,
	})
	require.NoError(t, err)
	p.Runtime = r
	p.io = core.NewIOLane(r.Descriptors(), Sockets{}, runRetry)
	t.Cleanup(func() {
		r.Stop()
		r.Wait()
		threads.Join()
		r.Destroy()
		memory.Free(piece)
	})
	return p
}

// queue is where ops go that can go on.
func (p *program) queue(op *core.Op) {
	if p.Inject(op, op, true) != nil {
		p.call(op.Run, uintptr(core.AddressOf(op)))
	}
}

func (p *program) call(run, argument uintptr) {
	op := *(**core.Op)(unsafe.Pointer(&argument))
	if run == runRetry {
		io := p.io.Retry(op, p.queue)
		if io == nil {
			return
		}
		op = &io.Op
	}
	p.step((*echo)(unsafe.Pointer(op)))
}

// step goes on from a result, until the op waits or has ended.
func (p *program) step(e *echo) {
	for {
		request := core.Request{Kind: core.KindReceive, Data: core.AddressOf(&e.memory[0]), Length: uint64(len(e.memory))}
		if e.receives == 1 {
			if e.Status != 0 || e.Count == 0 {
				e.status.Store(e.Status)
				e.ended.Store(true)
				return
			}
			request = core.Request{Kind: core.KindSend, Flags: core.IOAll, Data: request.Data, Length: e.Count}
		}
		e.receives = 1 - e.receives
		done, err := p.io.Start(&e.IO, e.handle, request, p.queue)
		if err != nil {
			e.status.Store(int32(err.(core.Error)))
			e.ended.Store(true)
			return
		}
		if !done {
			return
		}
	}
}

// serve starts an echo on one end of a pair; the other is the test's.
func (p *program) serve() (e *echo, peer net.Conn) {
	ours, peer := pair(p.t)
	memory := purelane.Memory{}.Alloc(unsafe.Sizeof(echo{}))
	p.t.Cleanup(func() { purelane.Memory{}.Free(memory) })
	e = (*echo)(memory)
	e.Op.Run = runEcho
	handle, err := p.Descriptors().Open(ours, Sockets{}.Kind(ours))
	require.NoError(p.t, err)
	e.handle = handle
	require.NoError(p.t, p.Schedule(&e.Op))
	return e, peer
}

func TestRuntimeServes(t *testing.T) {
	for _, workers := range []int{1, 2} {
		p := newProgram(t, workers)
		time.Sleep(5 * time.Millisecond) // its keeper sleeps, and there is nothing to poll
		const connections, messages = 8, 20
		var echoes [connections]*echo
		var peers [connections]net.Conn
		for i := range connections {
			echoes[i], peers[i] = p.serve()
		}
		for message := range messages {
			for _, peer := range peers {
				writeAll(t, peer, []byte{byte(message), 1, 2, 3})
			}
			for _, peer := range peers {
				require.Equal(t, []byte{byte(message), 1, 2, 3}, readAll(t, peer, 4))
			}
		}
		shared := p.Shared()
		require.EqualValues(t, connections, shared.Descriptors.Load())
		// The last answer is read before the next receive is started: until all have been.
		for shared.IOStarted.Load() != connections*(2*messages+1) {
			time.Sleep(100 * time.Microsecond)
		}
		for _, e := range echoes[1:] { // one is left open for the end of the runtime
			require.NoError(t, p.Descriptors().Close(e.handle, p.queue))
			ends(t, e, core.EClosed)
		}
		p.Stop()
		p.Wait()
		ends(t, echoes[0], core.ECanceled)
	}
}

func ends(t *testing.T, e *echo, status core.Error) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !e.ended.Load(); time.Sleep(100 * time.Microsecond) {
		require.True(t, time.Now().Before(deadline), "it never ended")
	}
	require.EqualValues(t, status, e.status.Load())
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
