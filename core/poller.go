package core

// Poller is an operating system's way to wait for many descriptors at once: package epoll on Linux. One Poller serves one
// runtime. This comment is the contract; package pollertest checks a poller against it.
//
// # What an op waits for
//
// Every op makes its system call first, and waits only if the system says so. On a system that reports readiness (epoll) the
// op is then armed in its slot, an event takes it out, and the call is made again. On a system that reports completion
// (IOCP) the call itself has begun the transfer: the op is armed until the packet comes, and "again" means to collect the
// result (transfer.go). Slots, generations, cancel and close are the same for both (slot.go), so a poller has to know only this:
//
//   - A readiness poller calls [DescriptorTable.Ready] with the data of the registration, whenever a direction may have
//     become ready since the last call was refused. Edges are enough: the slot remembers one that nobody waits for.
//   - A completion poller calls [DescriptorTable.Finished] once for each transfer that was pending. Until then the IO is
//     not given back to its owner, whatever happens to op and descriptor. It may do so while the starter has not yet armed
//     the op.
//
// # What may be spurious
//
// An event that has no cause, comes twice, or comes for a registration that has ended: the op that it wakes is refused again
// and waits on, and data that names an older generation of a record is ignored. Poll may return early, with 0. What must not
// happen is an event that is missing: not at the first registration of a descriptor that is ready already, and not for a
// change between a refusal and the next Poll.
//
// # Threads
//
// Register, Deregister, Discard, Interrupt and Wake may be called by any thread at any time between Attach and Close. Any
// number of threads may be in Poll; each event goes to one of them. None of these calls an op, and only Poll blocks. Attach
// comes first and once; Close comes last, when no other call is under way.
type Poller interface {
	// Attach ties the poller to the table that it reports to, and leaves in the shared memory what the C lane needs to wait
	// by itself. On an error the poller holds nothing.
	Attach(table *DescriptorTable, shared *RuntimeMemory) error
	// Completes tells whether the system reports completion: whether an op that waits has a transfer under way. It never changes.
	Completes() bool
	// Register watches both directions of a descriptor of the system from now until Deregister, and puts it in non-blocking
	// mode. Events carry data. hints are what Sockets.Try wants to know of it beside its kind. Errors: EInval (not open),
	// ENotSup (a kind that cannot be waited for), EExist (registered already), ELimit, ENoMem; the descriptor is then as it was.
	Register(system int32, data uint64) (hints uint32, err error)
	// Deregister ends the watch, also when duplicates of the descriptor keep the thing behind it open. An event that another
	// thread has already taken from the system may still be reported.
	Deregister(system int32)
	// Discard closes a descriptor. It is not registered any more, and no call on it is under way.
	Discard(system int32)
	// Interrupt asks the system to give up the transfer of an op, and tells true: its end will be reported. A readiness poller has nothing under way and says false: the caller takes the op out of its slot. The op may have
	// ended meanwhile: the poller must not look into it, and system may be -1.
	Interrupt(system int32, io *IO) bool
	// Poll waits at most timeout nanoseconds (negative: for ever; 0: not at all) for an event or a wake, and reports what
	// there is: each op that can go on is handed to ready, on this thread, the one that is to run first first. It returns
	// how many events the system had, wakes not counted. A timeout is never cut short by the resolution of the system's clock,
	// but may be by the slack with which the system ends sleeps (Linux: 50 us, or a thousandth of the time if that is more).
	Poll(timeout int64, ready func(op *Op)) int
	// Wake makes one Poll return early: one that waits, or else the next. Wakes that have not yet been noticed may count as one.
	Wake()
	// Close gives back what the poller holds. Descriptors stay as they are.
	Close()
}

// Sockets are the system calls of the ops, and what a program in Go needs to have sockets at all: the pure-Go lane and the
// conformance suite are written against it. In the library, C makes these calls (capi/io_linux.c).
type Sockets interface {
	// Open makes a TCP socket that is not connected, family IPv4 or IPv6. Close it, or give it to a table.
	Open(family uint16) (system int32, err error)
	// Listen makes a TCP socket that listens; backlog 0 is the system's largest.
	Listen(endpoint Endpoint, backlog int) (system int32, err error)
	// Datagrams makes a UDP socket that is bound.
	Datagrams(endpoint Endpoint) (system int32, err error)
	// Local tells the address of this end.
	Local(system int32) (Endpoint, error)
	// Shutdown ends directions: 1 << Receive, 1 << Send, or both.
	Shutdown(system int32, directions int) error
	// Close closes a descriptor that no table has.
	Close(system int32)
	// Kind is what DescriptorTable.Open wants to know: HintStream, HintFile or 0.
	Kind(system int32) uint32
	// Try makes the system call of an op once, with what is left of its buffers after io.Count bytes; hints are the
	// descriptor's. A connect that waits is tried again with IOUnderWay. Where the system reports readiness it changes nothing in
	// the op; where it reports completion, an op that has to wait has lent System to the system.
	Try(system int32, hints uint32, io *IO) Attempt
	// Collect tells, where the system reports completion, what has become of a transfer that has ended, and waits if it has begun another.
	// system is -1 when the descriptor is closed; an accepted one may be of no use then, but for Close.
	Collect(system int32, hints uint32, io *IO) Attempt
}

// Attempt is what a system call of an op came to. The zero value is success that moved nothing: the end of the stream to a
// receive.
type Attempt struct {
	Wait     bool   // nothing happened: the op has to wait
	Short    bool   // fewer bytes than asked for
	Moved    uint64 // bytes
	Accepted int32  // the new descriptor, of an accept that succeeded
	Err      Error  // 0, or why it failed
	OSError  int32  // the system's own number for that
}

// The address families of an Endpoint.
const (
	IPv4 uint16 = 4
	IPv6 uint16 = 6
)

// Endpoint is weft_endpoint: an IP address and port.
type Endpoint struct {
	Family  uint16 // IPv4 or IPv6
	Port    uint16
	Scope   uint32   // IPv6 zone index, else 0
	Address [16]byte // network byte order; IPv4 uses the first 4 bytes
}
