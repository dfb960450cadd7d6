// Package servetest lets a whole runtime without C serve sockets over a poller: core, the lane in Go, and the poller of the system. Every poller
// runs it, as it runs package pollertest.
package servetest

import (
	"io"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/pollertest"
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
	lane *core.IOLane
}

const (
	runRetry = iota + 1
	runEcho
)

func newProgram(t *testing.T, s pollertest.System, workers int) *program {
	p := &program{t: t}
	memory := purelane.Memory{}
	piece := memory.Alloc(unsafe.Sizeof(core.RuntimeMemory{}))
	poller := s.Poller()
	lane := purelane.New(memory, poller, p.call)
	threads := new(purelane.Threads)
	r, err := core.New(core.Config{
		Shared: (*core.RuntimeMemory)(piece), ID: 1<<8 | 1, Workers: workers, CPUs: workers, Lane: lane, Memory: memory,
		Poller: poller, Start: threads.Start, Call: p.call,
	})
	require.NoError(t, err)
	p.Runtime = r
	p.lane = core.NewIOLane(r.Descriptors(), s.Sockets, runRetry)
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
		waited := p.lane.Retry(op, p.queue)
		if waited == nil {
			return
		}
		op = &waited.Op
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
		done, err := p.lane.Start(&e.IO, e.handle, request, p.queue)
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

// serve starts an echo on a socket.
func (p *program) serve(s pollertest.System, socket int32) (e *echo) {
	memory := purelane.Memory{}.Alloc(unsafe.Sizeof(echo{}))
	p.t.Cleanup(func() { purelane.Memory{}.Free(memory) })
	e = (*echo)(memory)
	e.Op.Run = runEcho
	handle, err := p.Descriptors().Open(socket, s.Sockets.Kind(socket))
	require.NoError(p.t, err)
	e.handle = handle
	require.NoError(p.t, p.Schedule(&e.Op))
	return e
}

// Run lets a runtime without C (core, the lane in Go, the poller) answer messages on so many connections at once. pair makes one: ours for the
// runtime, and the other end.
func Run(t *testing.T, s pollertest.System, connections, messages int, pair func(t *testing.T) (ours int32, peer io.ReadWriter)) {
	for _, workers := range []int{1, 2} {
		p := newProgram(t, s, workers)
		time.Sleep(5 * time.Millisecond) // its keeper sleeps, and there is nothing to poll
		echoes := make([]*echo, connections)
		peers := make([]io.ReadWriter, connections)
		for i := range connections {
			ours, peer := pair(t)
			echoes[i], peers[i] = p.serve(s, ours), peer
		}
		for message := range messages {
			for _, peer := range peers {
				_, err := peer.Write([]byte{byte(message), 1, 2, 3})
				require.NoError(t, err)
			}
			for _, peer := range peers {
				var answer [4]byte
				_, err := io.ReadFull(peer, answer[:])
				require.NoError(t, err)
				require.Equal(t, [4]byte{byte(message), 1, 2, 3}, answer)
			}
		}
		shared := p.Shared()
		require.EqualValues(t, connections, shared.Descriptors.Load())
		// The last answer is read before the next receive is started: until all have been.
		for shared.IOStarted.Load() != uint64(connections*(2*messages+1)) {
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
