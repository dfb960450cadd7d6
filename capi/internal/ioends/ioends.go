// Package ioends gives the C side of I/O to Go's tests, which cannot use cgo themselves: the ops of capi/io.c as a lane of
// the conformance suite, and the wait of capi/poll_*.c as a poller. It compiles them alone, without the rest of the
// library; ioends.c stands in for the lane.
//
// The files of capi stand here as symbolic links, because the go command looks for changes in a package's own directory
// only.
package ioends

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I${SRCDIR}/../../../include
// #include "ioends.h"
// #include "lane_internal.h"
// #include "slot.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"weft/core"
)

// current is the table of the test that runs, and where C's queues go. Tests run one after the other.
var current struct {
	table atomic.Pointer[core.DescriptorTable]
	queue atomic.Pointer[func(op *core.Op)]
}

// Runtime is a runtime's memory where C looks for it: in its table, by the slot that the handle names. Zeroed.
func Runtime() *core.RuntimeMemory {
	shared := (*core.RuntimeMemory)(unsafe.Pointer(&C.lane_table[0]))
	*shared = core.RuntimeMemory{}
	return shared
}

// Lane is pollertest.Lane in C.
type Lane struct{}

// NewLane makes the lane of a table.
func NewLane(table *core.DescriptorTable) Lane {
	current.table.Store(table)
	table.RetryWith(uintptr(unsafe.Pointer(C.io_retry)))
	return Lane{}
}

// Start starts an op by the public function for its kind.
func (Lane) Start(io *core.IO, handle uint64, r core.Request, queue func(op *core.Op)) (done bool, err error) {
	current.queue.Store(&queue)
	io.Op.Run = uintptr(C.ends_run())
	var endpoint C.uintptr_t
	if r.Peer != nil {
		// C reads it before the call returns.
		endpoint = C.uintptr_t(uintptr(unsafe.Pointer(r.Peer)))
	}
	rc := C.ends_start(C.uintptr_t(core.AddressOf(io)), C.uint64_t(handle), C.uint16_t(r.Kind), C.uint16_t(r.Flags),
		C.uintptr_t(r.Data), C.uint64_t(r.Length), endpoint)
	if rc < 0 {
		return false, core.Error(rc)
	}
	return rc == 1, nil
}

// Retry runs an op that an event has queued.
func (Lane) Retry(op *core.Op, queue func(op *core.Op)) *core.IO {
	return pointer[core.IO](C.ends_retry(C.uintptr_t(core.AddressOf(op))))
}

// Cancel is weft_io_cancel.
func (Lane) Cancel(io *core.IO, queue func(op *core.Op)) bool {
	current.queue.Store(&queue)
	return C.ends_cancel(C.uintptr_t(core.AddressOf(io))) == 0
}

// Poller is the poller of this system with the wait and the wake of C.
type Poller struct {
	*system
	shared *core.RuntimeMemory
}

// NewPoller makes one.
func NewPoller() *Poller { return &Poller{system: newSystem()} }

// Attach implements core.Poller.
func (p *Poller) Attach(table *core.DescriptorTable, shared *core.RuntimeMemory) error {
	p.shared = shared
	return p.system.Attach(table, shared)
}

// Poll implements core.Poller by lane_poll.
func (p *Poller) Poll(timeout int64, ready func(op *core.Op)) int {
	var ops [C.ENDS_READY]C.uintptr_t
	var events C.uint32_t
	n := C.ends_poll(C.uintptr_t(core.AddressOf(p.shared)), C.int64_t(timeout), &ops[0], &events)
	for _, op := range ops[:n] {
		ready(pointer[core.Op](op))
	}
	return int(events)
}

// Wake implements core.Poller by lane_poll_wake.
func (p *Poller) Wake() {
	C.lane_poll_wake((*C.lane_runtime)(unsafe.Pointer(p.shared)))
}

// ErrorFromOS is weft_error_from_os.
func ErrorFromOS(number int) core.Error { return core.Error(C.weft_error_from_os(C.int(number))) }

// Constants are those that both sides define, by their name in C: C's and Go's.
func Constants() map[string][2]uint64 {
	return map[string][2]uint64{
		"IO_IDLE":                   {C.IO_IDLE, uint64(core.IOIdle)},
		"IO_STARTED":                {C.IO_STARTED, uint64(core.IOStarted)},
		"IO_CANCELLING":             {C.IO_CANCELLING, uint64(core.IOCancelling)},
		"IO_COMPLETED":              {C.IO_COMPLETED, uint64(core.IOCompleted)},
		"IO_CANCELLED_EARLY":        {C.IO_CANCELLED_EARLY, uint64(core.IOCancelledEarly)},
		"IO_RECEIVE":                {C.IO_RECEIVE, uint64(core.KindReceive)},
		"IO_SEND":                   {C.IO_SEND, uint64(core.KindSend)},
		"IO_RECEIVE_BUFFERS":        {C.IO_RECEIVE_BUFFERS, uint64(core.KindReceiveBuffers)},
		"IO_SEND_BUFFERS":           {C.IO_SEND_BUFFERS, uint64(core.KindSendBuffers)},
		"IO_ACCEPT":                 {C.IO_ACCEPT, uint64(core.KindAccept)},
		"IO_CONNECT":                {C.IO_CONNECT, uint64(core.KindConnect)},
		"IO_RECEIVE_FROM":           {C.IO_RECEIVE_FROM, uint64(core.KindReceiveFrom)},
		"IO_SEND_TO":                {C.IO_SEND_TO, uint64(core.KindSendTo)},
		"IO_UNDER_WAY":              {C.IO_UNDER_WAY, uint64(core.IOUnderWay)},
		"IO_HINT_STREAM":            {C.IO_HINT_STREAM, uint64(core.HintStream)},
		"IO_HINT_FILE":              {C.IO_HINT_FILE, uint64(core.HintFile)},
		"IO_HINT_SKIPS":             {C.IO_HINT_SKIPS, uint64(core.HintSkips)},
		"IO_HINT_IPV6":              {C.IO_HINT_IPV6, uint64(core.HintIPv6)},
		"IO_PIN":                    {C.IO_PIN, uint64(core.HintPin)},
		"IO_WAKE_DATA":              {C.IO_WAKE_DATA, wakeData},
		"IO_FLIGHT_DATA":            {C.IO_FLIGHT_DATA, flightData},
		"WEFT_IO_ALL":               {C.WEFT_IO_ALL, uint64(core.IOAll)},
		"WEFT_IPV4":                 {C.WEFT_IPV4, uint64(core.IPv4)},
		"WEFT_IPV6":                 {C.WEFT_IPV6, uint64(core.IPv6)},
		"WEFT_SHUTDOWN_RECEIVE":     {C.WEFT_SHUTDOWN_RECEIVE, 1 << core.Receive},
		"WEFT_SHUTDOWN_SEND":        {C.WEFT_SHUTDOWN_SEND, 1 << core.Send},
		"LANE_SLOT_READY":           {C.LANE_SLOT_READY, core.SlotReady},
		"LANE_SLOT_CLOSED":          {C.LANE_SLOT_CLOSED, core.SlotClosed},
		"LANE_SLOT_HELD":            {C.LANE_SLOT_HELD, core.SlotHeld},
		"LANE_SLOT_OWNER":           {C.LANE_SLOT_OWNER, core.SlotOwner},
		"LANE_HINT_RECEIVE_DRAINED": {C.LANE_HINT_RECEIVE_DRAINED, uint64(core.HintReceiveDrained)},
		"LANE_HINT_HANGUP":          {C.LANE_HINT_HANGUP, uint64(core.HintHangup)},
		"SLOT_PARTIES":              {C.SLOT_PARTIES, core.Parties},
		"sizeof (weft_endpoint)":    {C.sizeof_weft_endpoint, uint64(unsafe.Sizeof(core.Endpoint{}))},
		"sizeof (weft_buffer)":      {C.sizeof_weft_buffer, uint64(unsafe.Sizeof(core.Buffer{}))},
	}
}

// pointer makes a pointer of an address in C's memory.
func pointer[T any](address C.uintptr_t) *T { return *(**T)(unsafe.Pointer(&address)) }

//export weftgo_ends_queue
func weftgo_ends_queue(op C.uintptr_t) { (*current.queue.Load())(pointer[core.Op](op)) }

//export weftgo_descriptor_open
func weftgo_descriptor_open(_ C.uint64_t, system C.int32_t, kind C.uint32_t, handle *C.uint64_t) C.int {
	opened, err := current.table.Load().Open(int32(system), uint32(kind))
	if err != nil {
		return C.int(err.(core.Error))
	}
	*handle = C.uint64_t(opened)
	return C.WEFT_OK
}
