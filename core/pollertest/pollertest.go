// Package pollertest checks a poller against the contract of core.Poller. Every system's poller runs the same suite, from a
// test of its own:
//
//	func TestConformance(t *testing.T) { pollertest.Run(t, pollertest.System{Poller: ..., Sockets: ...}) }
package pollertest

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// System is what is to be checked.
type System struct {
	Poller  func() core.Poller
	Sockets core.Sockets
	Memory  core.Memory
	// Runtime gives the runtime's shared memory, zeroed; nil: from Memory.
	Runtime func() *core.RuntimeMemory
	// Lane makes what starts ops and tries them again; nil: core.IOLane.
	Lane func(table *core.DescriptorTable) Lane
	// RegularFile is what Register says to a regular file; 0 if it can be waited for.
	RegularFile core.Error
}

// Lane is core.IOLane, or its twin in C.
type Lane interface {
	Start(io *core.IO, handle uint64, request core.Request, queue func(op *core.Op)) (done bool, err error)
	Retry(op *core.Op, queue func(op *core.Op)) *core.IO
	Cancel(io *core.IO, queue func(op *core.Op)) (noted bool)
}

// Run runs the suite.
func Run(t *testing.T, s System) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"wait", waitTests}, {"register", registerTests}, {"ready", readyTests}, {"datagram", datagramTests}, {"end", endTests}, {"threads", threadTests},
	} {
		for _, test := range group.tests {
			t.Run(group.name+"/"+test.name, func(t *testing.T) { test.run(newWorld(t, s)) })
		}
	}
}

type test struct {
	name string
	run  func(w *world)
}

// world is one poller with a table, and a loop in place of workers.
type world struct {
	*testing.T
	System
	poller core.Poller
	table  *core.DescriptorTable
	lane   Lane

	mu     sync.Mutex
	pieces []unsafe.Pointer // guarded by mu: shared memory, until the test ends
	queue  []*core.Op       // guarded by mu: ops that can go on
	runs   map[*core.Op]int // guarded by mu: how often run was called, of every op there is
	open   map[uint64]bool  // guarded by mu: handles
}

func newWorld(t *testing.T, s System) *world {
	w := &world{T: t, System: s, poller: s.Poller(), runs: map[*core.Op]int{}, open: map[uint64]bool{}}
	var shared *core.RuntimeMemory
	if s.Runtime != nil {
		shared = s.Runtime()
	} else {
		shared = alloc[core.RuntimeMemory](w, 1)
	}
	shared.ID.Store(1)
	shared.State.Store(core.StateRunning)
	shared.Pending.Store(1)
	w.table = core.NewDescriptorTable(shared, w.poller, (*arena)(w))
	require.NoError(t, w.poller.Attach(w.table, shared))
	if s.Lane != nil {
		w.lane = s.Lane(w.table)
	} else {
		w.lane = core.NewIOLane(w.table, s.Sockets, 1)
	}
	t.Cleanup(func() {
		for handle := range w.open {
			w.close(handle)
		}
		// Ops end behind the close where the system reports completion, and it writes to their memory until then.
		w.until(func() bool { return shared.Descriptors.Load() == 0 })
		w.poller.Close()
		for _, piece := range w.pieces {
			s.Memory.Free(piece)
		}
	})
	return w
}

// arena is core.Memory that lives as long as the test.
type arena world

func (a *arena) Alloc(bytes uintptr) unsafe.Pointer {
	a.mu.Lock()
	defer a.mu.Unlock()
	piece := a.Memory.Alloc(bytes)
	a.pieces = append(a.pieces, piece)
	return piece
}

func (a *arena) Free(unsafe.Pointer) {}

// alloc gives out n pieces of shared memory.
func alloc[T any](w *world, n int) *T {
	var zero T
	piece := (*arena)(w).Alloc(unsafe.Sizeof(zero) * uintptr(n))
	require.NotNil(w, piece)
	return (*T)(piece)
}

// op is an I/O op with its memory.
type op struct {
	*core.IO
	w      *world
	memory []byte
}

// op makes an idle op with room for n bytes.
func (w *world) op(n int) *op {
	o := &op{IO: &alloc[core.Datagram](w, 1).IO, w: w}
	o.Op.Run = 1
	o.memory = unsafe.Slice(alloc[byte](w, max(n, 1)), n)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[&o.Op] = 0
	return o
}

// start starts an op and tells whether it completed at once.
func (o *op) start(handle uint64, kind, flags uint16, peer *core.Endpoint) bool {
	request := core.Request{Kind: kind, Flags: flags, Peer: peer}
	if len(o.memory) != 0 {
		request.Data, request.Length = core.AddressOf(&o.memory[0]), uint64(len(o.memory))
	}
	done, err := o.w.lane.Start(o.IO, handle, request, o.w.ready)
	require.NoError(o.w, err)
	return done
}

// receive starts a receive of n bytes that has to wait.
func (w *world) receive(handle uint64, n int, flags uint16) *op {
	o := w.op(n)
	require.False(w, o.start(handle, core.KindReceive, flags, nil), "there is nothing to receive")
	return o
}

// send sends all of text.
func (w *world) send(handle uint64, text string) {
	o := w.op(len(text))
	copy(o.memory, text)
	if !o.start(handle, core.KindSend, core.IOAll, nil) {
		w.until(o.ran)
	}
	require.Zero(w, o.Status)
	require.EqualValues(w, len(text), o.Count)
}

// ran tells whether the op's run was called.
func (o *op) ran() bool {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	return o.w.runs[&o.Op] != 0
}

// ends waits for the op's result.
func (o *op) ends(status core.Error, text string) {
	o.w.Helper()
	o.w.until(o.ran)
	require.Equal(o.w, 1, o.w.runs[&o.Op], "an op completes once")
	require.EqualValues(o.w, status, o.Status)
	require.Equal(o.w, text, string(o.memory[:o.Count]))
}

// ready is what Poll hands ops to. Any thread.
func (w *world) ready(op *core.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, op)
}

// work runs everything that is queued. Any thread.
func (w *world) work() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.mu.Unlock()
			return
		}
		next := w.queue[0]
		w.queue = w.queue[1:]
		_, complete := w.runs[next]
		w.mu.Unlock()
		if !complete { // the op that tries again, inside of an IO
			io := w.lane.Retry(next, w.ready)
			if io == nil {
				continue
			}
			next = &io.Op
		}
		w.mu.Lock()
		w.runs[next]++
		w.mu.Unlock()
	}
}

const patience = 20 * time.Second // until a test that has failed gives up

// until polls and works until a condition is true.
func (w *world) until(condition func() bool) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; {
		w.work()
		if condition() {
			return
		}
		require.True(w, time.Now().Before(deadline), "it never came true")
		w.poller.Poll(int64(20*time.Millisecond), w.ready)
	}
}

// settle polls and works until nothing has come for a while: for tests of what must not happen.
func (w *world) settle() {
	for quiet := 0; quiet < 3; quiet++ {
		if w.poller.Poll(int64(5*time.Millisecond), w.ready) != 0 {
			quiet = 0
		}
		w.work()
	}
}

// adopt gives a descriptor to the table.
func (w *world) adopt(system int32) (handle uint64) {
	handle, err := w.table.Open(system, w.Sockets.Kind(system))
	require.NoError(w, err)
	w.keep(handle)
	return handle
}

func (w *world) keep(handle uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[handle] = true
}

func (w *world) forget(handle uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, handle)
}

func (w *world) close(handle uint64) {
	w.forget(handle)
	require.NoError(w, w.table.Close(handle, w.ready))
}

func loopback(family uint16) (endpoint core.Endpoint) {
	endpoint.Family = family
	if family == core.IPv4 {
		copy(endpoint.Address[:], []byte{127, 0, 0, 1})
	} else {
		endpoint.Address[15] = 1
	}
	return endpoint
}

// listen makes a listener on the loopback address.
func (w *world) listen(family uint16) (handle uint64, endpoint core.Endpoint) {
	return w.listenAt(loopback(family))
}

func (w *world) listenAt(at core.Endpoint) (handle uint64, endpoint core.Endpoint) {
	system, err := w.Sockets.Listen(at, 0)
	require.NoError(w, err)
	endpoint, err = w.Sockets.Local(system)
	require.NoError(w, err)
	return w.adopt(system), endpoint
}

// socket makes a socket that is not connected.
func (w *world) socket(family uint16) (handle uint64, system int32) {
	system, err := w.Sockets.Open(family)
	require.NoError(w, err)
	return w.adopt(system), system
}

// end is one end of a connection.
type end struct {
	handle uint64
	system int32
}

// pair makes a connection.
func (w *world) pair(family uint16) (client, server end) {
	listener, endpoint := w.listen(family)
	client.handle, client.system = w.socket(family)
	connects, accepts := w.op(0), w.op(0)
	accepted := accepts.start(listener, core.KindAccept, 0, nil)
	connected := connects.start(client.handle, core.KindConnect, 0, &endpoint)
	w.until(func() bool { return (accepted || accepts.ran()) && (connected || connects.ran()) })
	require.Zero(w, connects.Status)
	require.Zero(w, accepts.Status)
	w.keep(accepts.Accepted)
	w.close(listener)
	server.handle = accepts.Accepted
	server.system = w.systemOf(server.handle)
	return client, server
}

// systemOf is the system's descriptor behind a handle.
func (w *world) systemOf(handle uint64) int32 {
	system, err := w.table.System(handle)
	require.NoError(w, err)
	return system
}
