package core_test

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"weft/core"
	"weft/core/purelane"
)

// fakePoller notes what a table does with it.
type fakePoller struct {
	nothingToPoll
	log         []string
	data        map[int32]uint64
	refuses     error
	completions bool // transfers are under way in the system
	quiet       bool // keeps no log
}

func (p *fakePoller) Completes() bool { return p.completions }

func (p *fakePoller) Register(system int32, data uint64) (uint32, error) {
	if p.refuses != nil {
		return 0, p.refuses
	}
	p.note("register", system)
	p.data[system] = data
	return 0, nil
}

func (p *fakePoller) note(what string, system int32) {
	if !p.quiet {
		p.log = append(p.log, fmt.Sprint(what, " ", system))
	}
}

func (p *fakePoller) Deregister(system int32) {
	p.log = append(p.log, fmt.Sprint("deregister ", system))
}
func (p *fakePoller) Discard(system int32)                 { p.log = append(p.log, fmt.Sprint("discard ", system)) }
func (p *fakePoller) Interrupt(int32, *core.IO) bool       { return p.completions }
func (p *fakePoller) event(system int32, data uint64) bool { return p.data[system] == data }

// tableFixture is a table on a fake poller, in runtime slot 3.
type tableFixture struct {
	*core.DescriptorTable
	t      testing.TB
	shared *core.RuntimeMemory
	poller *fakePoller
}

func newTable(t testing.TB) *tableFixture {
	return newTableIn(t, shared[core.RuntimeMemory](t))
}

func newTableIn(t testing.TB, memory *core.RuntimeMemory) *tableFixture {
	f := &tableFixture{t: t, shared: memory, poller: &fakePoller{data: map[int32]uint64{}}}
	f.shared.ID.Store(77<<8 | 3)
	f.shared.State.Store(core.StateRunning)
	f.shared.Pending.Store(1)
	f.DescriptorTable = core.NewDescriptorTable(f.shared, f.poller, purelane.Memory{})
	t.Cleanup(f.CloseAll)
	return f
}

func (f *tableFixture) open(system int32) (handle uint64) {
	handle, err := f.Open(system, core.HintStream)
	require.NoError(f.t, err)
	return handle
}

func (f *tableFixture) close(handle uint64) (ops []*core.Op) {
	require.NoError(f.t, f.Close(handle, func(op *core.Op) { ops = append(ops, op) }))
	return ops
}

func nobody(op *core.Op) { panic("an op that nobody started") }

func TestHandle(t *testing.T) {
	f := newTable(t)
	first, second := f.open(10), f.open(11)
	require.EqualValues(t, 1, first&0xffffff)
	require.EqualValues(t, 2, second&0xffffff)
	require.EqualValues(t, 3, first>>24&0xff)
	require.EqualValues(t, 1, first>>32&1, "the generation of an open descriptor is odd")
	d := f.Record(first)
	require.EqualValues(t, first>>32, d.Generation.Load())
	require.EqualValues(t, 10, d.System.Load())
	require.Equal(t, first, d.ID)
	require.Equal(t, core.AddressOf(f.shared), d.Runtime)
	require.True(t, f.poller.event(10, first>>32<<32), "the data of events is generation and index")
	require.EqualValues(t, 2, f.shared.Descriptors.Load())
}

func TestCloseOrder(t *testing.T) {
	f := newTable(t)
	handle := f.open(10)
	require.Empty(t, f.close(handle))
	require.Equal(t, []string{"register 10", "deregister 10", "discard 10"}, f.poller.log)
	require.Equal(t, core.EBadHandle, f.Close(handle, nobody))
	require.EqualValues(t, 0, f.shared.Descriptors.Load())
	require.EqualValues(t, -1, f.Record(handle).System.Load())
}

func TestForeignHandles(t *testing.T) {
	f := newTable(t)
	handle := f.open(10)
	for _, foreign := range []uint64{
		0, 1, ^uint64(0), handle + 1, handle &^ 0xffffff, handle | 0xffffff, handle ^ 1<<24, handle + 1<<32, handle + 2<<32,
		handle - 1<<32,
	} {
		require.Equal(t, core.EBadHandle, f.Close(foreign, nobody), "%x", foreign)
	}
	f.close(handle)
}

func TestRefusedRegistration(t *testing.T) {
	f := newTable(t)
	f.poller.refuses = core.EExist
	for range 3 {
		_, err := f.Open(10, 0)
		require.Equal(t, core.EExist, err)
	}
	require.Empty(t, f.poller.log, "the descriptor stays the caller's")
	require.EqualValues(t, 0, f.shared.Descriptors.Load())
	f.poller.refuses = nil
	handle := f.open(10)
	require.EqualValues(t, 1, handle&0xffffff, "the record was given back")
}

// failingMemory has a last piece to give.
type failingMemory struct{ purelane.Memory }

func (failingMemory) Alloc(uintptr) unsafe.Pointer { return nil }

func TestNoMemory(t *testing.T) {
	f := newTable(t)
	table := core.NewDescriptorTable(f.shared, f.poller, failingMemory{})
	_, err := table.Open(10, 0)
	require.Equal(t, core.ENoMem, err)
}

func TestFullTable(t *testing.T) {
	f := newTable(t)
	handle := f.open(10)
	f.SetUsed(core.ChunksMax * core.ChunkDescriptors)
	_, err := f.Open(11, 0)
	require.Equal(t, core.ELimit, err)
	f.close(handle)
	f.open(11)
	f.SetUsed(1)
}

func TestRecordsAreUsedAgain(t *testing.T) {
	f := newTable(t)
	var handles []uint64
	for i := range int32(3) {
		handles = append(handles, f.open(10+i))
	}
	for _, i := range []int{1, 0, 2} {
		f.close(handles[i])
	}
	// In the order in which they became free, and with a generation that nobody has a handle of.
	for _, i := range []int{1, 0, 2, 3} {
		handle := f.open(20)
		require.EqualValues(t, i+1, handle&0xffffff)
		if i < 3 {
			require.Equal(t, handles[i]>>32+2, handle>>32)
			require.Equal(t, core.EBadHandle, f.Close(handles[i], nobody))
		}
	}
}

func TestRecordsBeginAfresh(t *testing.T) {
	f := newTable(t)
	handle := f.open(10)
	d := f.Record(handle)
	f.Ready(handle>>32<<32, 1<<core.Receive|1<<core.Send, true, nobody)
	d.Hints.Or(core.HintReceiveDrained)
	require.Equal(t, core.SlotReady, d.Slot[core.Receive].Load())
	require.Equal(t, core.SlotReady, d.Slot[core.Send].Load())
	f.close(handle)
	again := f.open(10)
	require.Same(t, d, f.Record(again))
	require.Zero(t, d.Slot[core.Receive].Load())
	require.Zero(t, d.Slot[core.Send].Load())
	require.Equal(t, core.HintStream, d.Hints.Load())
}

func TestStaleEvents(t *testing.T) {
	f := newTable(t)
	handle := f.open(10)
	d := f.Record(handle)
	f.close(handle)
	f.Ready(handle>>32<<32, 1<<core.Receive, true, nobody)
	f.open(10)
	f.Ready(handle>>32<<32, 1<<core.Receive, true, nobody)
	require.Zero(t, d.Slot[core.Receive].Load())
	require.Zero(t, d.Hints.Load()&core.HintHangup)
	f.Ready(1<<32|5000, 1<<core.Receive, true, nobody) // a record that there never was
	f.Ready(^uint64(0), 1<<core.Receive, true, nobody)
}

// A handle stays stale when its runtime has ended, and slot and index are used again.
func TestGenerationsOutliveTables(t *testing.T) {
	f := newTable(t)
	for range 5 {
		f.close(f.open(10))
	}
	last := f.open(10)
	f.CloseAll()
	require.Contains(t, f.poller.log, "discard 10", "what is open goes with the table")
	record := f.Record(last)
	next := newTableIn(t, f.shared)
	handle := next.open(10)
	require.Equal(t, last&0xffffffff, handle&0xffffffff)
	require.Same(t, record, next.Record(handle), "who comes late still finds a record")
	require.Greater(t, handle>>32, last>>32)
}

// A closer waits for whoever is in a system call, of either kind, and not longer.
func TestCloseWaitsForCalls(t *testing.T) {
	for name, hold := range map[string]func(f *tableFixture, d *core.DescriptorMemory) (release func()){
		"receive": func(f *tableFixture, d *core.DescriptorMemory) func() {
			_, err := d.Claim(core.Receive)
			require.Zero(t, err)
			return func() { f.ReleaseSlot(d, core.Receive) }
		},
		"send": func(f *tableFixture, d *core.DescriptorMemory) func() {
			_, err := d.Claim(core.Send)
			require.Zero(t, err)
			return func() { f.ReleaseSlot(d, core.Send) }
		},
		"pin": func(f *tableFixture, d *core.DescriptorMemory) func() {
			d.Hints.Add(core.HintPin)
			return func() { d.Hints.Add(^(core.HintPin - 1)) }
		},
		"stale claim": func(f *tableFixture, d *core.DescriptorMemory) func() {
			_, err := d.Claim(core.Receive)
			require.Zero(t, err)
			return func() { f.Unclaim(d, core.Receive) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTable(t)
			handle := f.open(10)
			d := f.Record(handle)
			release := hold(f, d)
			closed := make(chan error)
			go func() { closed <- f.Close(handle, nobody) }()
			select {
			case <-closed:
				require.Fail(t, "the descriptor was closed under a system call")
			case <-time.After(20 * time.Millisecond):
			}
			require.EqualValues(t, 10, d.System.Load())
			release()
			require.NoError(t, <-closed)
			require.EqualValues(t, 1, f.open(11)&0xffffff, "the record was given back, once")
			require.EqualValues(t, 2, f.open(12)&0xffffff)
		})
	}
}

// A claim through a stale handle takes the readiness of the record's new descriptor, and gives it back.
func TestUnclaimGivesReadinessBack(t *testing.T) {
	f := newTable(t)
	d := f.Record(f.open(10))
	for _, before := range []uint64{0, core.SlotReady} {
		d.Slot[core.Receive].Store(before)
		news, err := d.Claim(core.Receive)
		require.Zero(t, err)
		require.Equal(t, before != 0, news)
		_, err = d.Claim(core.Receive)
		require.Equal(t, core.EBusy, err)
		f.Unclaim(d, core.Receive)
		require.Equal(t, core.SlotReady, d.Slot[core.Receive].Load())
	}
}

func TestDescriptorLayout(t *testing.T) {
	require.EqualValues(t, 128, unsafe.Sizeof(core.DescriptorMemory{}), "records share no cache line pair")
}
