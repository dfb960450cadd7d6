package iocp

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/windows"

	"weft/core"
)

// Sockets is core.Sockets on Windows. capi/io_windows.c is its twin.
type Sockets struct{}

// Open implements core.Sockets.
func (Sockets) Open(family uint16) (int32, error) {
	domain := int32(windows.AF_INET)
	if family == core.IPv6 {
		domain = windows.AF_INET6
	} else if family != core.IPv4 {
		return -1, core.EInval
	}
	if err := startWinsock(); err != nil {
		return -1, ErrorOf(err)
	}
	socket, err := newSocket(domain)
	if err != nil {
		return -1, ErrorOf(err)
	}
	return int32(socket), nil
}

func newSocket(domain int32) (windows.Handle, error) {
	socket, err := windows.WSASocket(domain, windows.SOCK_STREAM, windows.IPPROTO_TCP, nil, 0, wsaFlagOverlapped|wsaFlagNoHandleInherit)
	if err == nil {
		_ = windows.SetsockoptInt(socket, windows.IPPROTO_TCP, windows.TCP_NODELAY, 1)
	}
	return socket, err
}

// Listen implements core.Sockets. An IPv6 socket takes IPv6 alone. SO_REUSEADDR would let others take the address away here, and an
// address is free again at once without it.
func (s Sockets) Listen(endpoint core.Endpoint, backlog int) (int32, error) {
	system, err := s.Open(endpoint.Family)
	if err != nil {
		return -1, err
	}
	socket := windows.Handle(system)
	if backlog == 0 {
		backlog = somaxconn
	}
	if endpoint.Family == core.IPv6 {
		err = windows.SetsockoptInt(socket, windows.IPPROTO_IPV6, windows.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = windows.Bind(socket, addressOf(endpoint))
	}
	if err == nil {
		err = windows.Listen(socket, backlog)
	}
	if err != nil {
		s.Close(system)
		return -1, ErrorOf(err)
	}
	return system, nil
}

// Datagrams implements core.Sockets. An IPv6 socket takes IPv6 alone.
func (s Sockets) Datagrams(endpoint core.Endpoint) (int32, error) {
	if err := startWinsock(); err != nil {
		return -1, ErrorOf(err)
	}
	domain := int32(windows.AF_INET)
	if endpoint.Family == core.IPv6 {
		domain = windows.AF_INET6
	}
	socket, err := windows.WSASocket(domain, windows.SOCK_DGRAM, windows.IPPROTO_UDP, nil, 0, wsaFlagOverlapped|wsaFlagNoHandleInherit)
	if err != nil {
		return -1, ErrorOf(err)
	}
	// Else a receive fails when a datagram that was sent from here has come to nobody.
	for _, code := range []uint32{windows.SIO_UDP_CONNRESET, windows.SIO_UDP_NETRESET} {
		var told, bytes uint32
		_ = windows.WSAIoctl(socket, code, (*byte)(unsafe.Pointer(&told)), uint32(unsafe.Sizeof(told)), nil, 0, &bytes, nil, 0)
	}
	if endpoint.Family == core.IPv6 {
		err = windows.SetsockoptInt(socket, windows.IPPROTO_IPV6, windows.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = windows.Bind(socket, addressOf(endpoint))
	}
	if err != nil {
		s.Close(int32(socket))
		return -1, ErrorOf(err)
	}
	return int32(socket), nil
}

// Local implements core.Sockets.
func (Sockets) Local(system int32) (core.Endpoint, error) {
	address, err := windows.Getsockname(windows.Handle(system))
	if err != nil {
		return core.Endpoint{}, ErrorOf(err)
	}
	return endpointOf(address)
}

func endpointOf(address windows.Sockaddr) (core.Endpoint, error) {
	switch a := address.(type) {
	case *windows.SockaddrInet4:
		e := core.Endpoint{Family: core.IPv4, Port: uint16(a.Port)}
		copy(e.Address[:], a.Addr[:])
		return e, nil
	case *windows.SockaddrInet6:
		return core.Endpoint{Family: core.IPv6, Port: uint16(a.Port), Scope: a.ZoneId, Address: a.Addr}, nil
	}
	return core.Endpoint{}, core.ENotSup
}

// Shutdown implements core.Sockets.
func (Sockets) Shutdown(system int32, directions int) error {
	how := windows.SHUT_RDWR
	switch directions {
	case 1 << core.Receive:
		how = windows.SHUT_RD
	case 1 << core.Send:
		how = windows.SHUT_WR
	}
	if err := windows.Shutdown(windows.Handle(system), how); err != nil {
		return ErrorOf(err)
	}
	return nil
}

// Close implements core.Sockets.
func (Sockets) Close(system int32) { closeHandle(windows.Handle(system)) }

// Kind implements core.Sockets.
func (Sockets) Kind(system int32) uint32 {
	info, err := protocolOf(windows.Handle(system))
	switch {
	case err != nil: // whatever it says: of a number that was once a socket's, Wine does not say that it is none
		return core.HintFile
	case isTCP(info):
		return core.HintStream
	}
	return 0
}

// protocolOf tells what a socket is.
func protocolOf(socket windows.Handle) (info windows.WSAProtocolInfo, err error) {
	size := int32(unsafe.Sizeof(info))
	err = windows.Getsockopt(socket, windows.SOL_SOCKET, soProtocolInfo, (*byte)(unsafe.Pointer(&info)), &size)
	return info, err
}

func isTCP(info windows.WSAProtocolInfo) bool {
	return info.SocketType == windows.SOCK_STREAM && info.Protocol == windows.IPPROTO_TCP
}

// Try implements core.Sockets.
func (Sockets) Try(system int32, hints uint32, io *core.IO) core.Attempt {
	for {
		io.Lend(statusPending)
		err := begin(windows.Handle(system), hints, io)
		switch {
		case err == nil && hints&core.HintSkips != 0:
			if attempt, again := outcome(system, io, uint32(io.System[0]), io.System[1]); !again {
				return attempt
			}
		case err == nil, err == windows.ERROR_IO_PENDING, isReported(err, io):
			return core.Attempt{Wait: true}
		default:
			if attempt, again := failure(io, err.(windows.Errno)); !again {
				return attempt
			}
		}
	}
}

// isReported tells whether a packet comes for a call that has failed: it does when the status is no error but a warning, that there was
// more than the buffer could take. The packet may be taken already, so of the status it counts only that there was one. Wine says the same to a
// datagram that is too long to be sent.
func isReported(err error, io *core.IO) bool {
	return (err == windows.WSAEMSGSIZE || err == windows.ERROR_MORE_DATA) && atomic.LoadUint64(&io.System[0]) != statusPending
}

// Collect implements core.Sockets.
func (s Sockets) Collect(system int32, hints uint32, io *core.IO) core.Attempt {
	status, bytes := io.Landed()
	if status == statusPending {
		// Wine 8 posts the packet of a transfer whose thread has ended, and does not write how that went.
		status, bytes = uint32(windows.STATUS_CANCELLED), 0
	}
	attempt, again := outcome(system, io, status, bytes)
	if again && system >= 0 {
		return s.Try(system, hints, io)
	}
	return attempt
}

// outcome is what a transfer came to that has ended; again, if it is to be begun once more.
func outcome(system int32, io *core.IO, status uint32, bytes uint64) (attempt core.Attempt, again bool) {
	// Of datagrams and messages that were received and cut off the rest is lost, as elsewhere.
	cut := status == uint32(windows.STATUS_BUFFER_OVERFLOW) && io.Kind&1 != 0
	if int32(status) < 0 && !cut {
		attempt, again = failure(io, errnoOf(status))
		attempt.Moved = bytes
		return attempt, again
	}
	socket := windows.Handle(system)
	switch io.Kind {
	case core.KindAccept:
		accepted := windows.Handle(io.Data)
		// Without these a socket has no names, and cannot be shut down.
		_ = windows.Setsockopt(accepted, windows.SOL_SOCKET, windows.SO_UPDATE_ACCEPT_CONTEXT,
			(*byte)(unsafe.Pointer(&socket)), int32(unsafe.Sizeof(socket)))
		return core.Attempt{Accepted: int32(accepted)}, false
	case core.KindConnect:
		_ = windows.Setsockopt(socket, windows.SOL_SOCKET, windows.SO_UPDATE_CONNECT_CONTEXT, nil, 0)
		return core.Attempt{}, false
	case core.KindReceiveFrom:
		d := io.Datagram()
		if status == uint32(windows.STATUS_BUFFER_OVERFLOW) {
			d.Truncated = 1
		}
		if address, err := addressIn(io).raw.Sockaddr(); err == nil {
			d.Peer, _ = endpointOf(address)
		}
	}
	return core.Attempt{Moved: bytes}, false
}

// failure is what an op came to whose call or transfer has failed.
func failure(io *core.IO, errno windows.Errno) (attempt core.Attempt, again bool) {
	attempt = core.Attempt{Err: ErrorOf(errno), OSError: int32(errno)}
	switch io.Kind {
	case core.KindAccept:
		if io.Data != 0 {
			_ = windows.Closesocket(windows.Handle(io.Data))
		}
		// The connection that was to be accepted has failed already: the next one.
		again = errno == windows.WSAECONNRESET || errno == windows.WSAECONNABORTED
	case core.KindReceiveFrom:
		// What became of one that was sent from here is no datagram: the next one.
		again = errno == windows.WSAECONNRESET || errno == windows.WSAENETRESET
	case core.KindReceive, core.KindReceiveBuffers:
		switch errno {
		case windows.WSAESHUTDOWN, windows.WSAEDISCON, windows.ERROR_BROKEN_PIPE, windows.ERROR_HANDLE_EOF:
			return core.Attempt{}, false // the end of the stream
		}
	}
	return attempt, again
}

// begin makes the call.
func begin(handle windows.Handle, hints uint32, io *core.IO) error {
	switch io.Kind {
	case core.KindAccept:
		return accept(handle, hints, io)
	case core.KindConnect:
		return connect(handle, io)
	case core.KindReceiveFrom:
		return receiveFrom(handle, io)
	case core.KindSendTo:
		return sendTo(handle, io)
	}
	pieces := rest(io)
	// Not read by us, but written by the system when the transfer ends, or so it may be.
	extra := (*uint32)(unsafe.Pointer(&io.Spare[0]))
	*extra = 0
	receives := io.Kind == core.KindReceive || io.Kind == core.KindReceiveBuffers
	switch {
	case hints&core.HintFile != 0 && receives:
		return windows.ReadFile(handle, pieces[0], extra, overlappedOf(io))
	case hints&core.HintFile != 0:
		return windows.WriteFile(handle, pieces[0], extra, overlappedOf(io))
	}
	buffers := make([]windows.WSABuf, len(pieces))
	for i, piece := range pieces {
		buffers[i] = windows.WSABuf{Len: uint32(len(piece)), Buf: unsafe.SliceData(piece)}
	}
	if receives {
		return windows.WSARecv(handle, &buffers[0], uint32(len(buffers)), nil, extra, overlappedOf(io), nil)
	}
	return windows.WSASend(handle, &buffers[0], uint32(len(buffers)), nil, 0, overlappedOf(io), nil)
}

// address is what Datagram.Address holds: an address, and how long it is, for as long as the system has the op. x/sys's RawSockaddrAny has more room
// behind, which is not looked at.
type address struct {
	raw    *windows.RawSockaddrAny
	length *int32
}

func addressIn(io *core.IO) address {
	words := &io.Datagram().Address
	return address{(*windows.RawSockaddrAny)(unsafe.Pointer(words)), (*int32)(unsafe.Add(unsafe.Pointer(words), addressBytes))}
}

const addressBytes = 28 // of the largest

func datagramOf(io *core.IO) windows.WSABuf {
	return windows.WSABuf{Len: uint32(min(io.Length, transferMax)), Buf: at[byte](uintptr(io.Data))}
}

func receiveFrom(socket windows.Handle, io *core.IO) error {
	io.Datagram().Address = [4]uint64{}
	from := addressIn(io)
	*from.length = addressBytes
	flags := (*uint32)(unsafe.Pointer(&io.Spare[0]))
	*flags = 0
	buffer := datagramOf(io)
	return windows.WSARecvFrom(socket, &buffer, 1, nil, flags, from.raw, from.length, overlappedOf(io), nil)
}

func sendTo(socket windows.Handle, io *core.IO) error {
	buffer := datagramOf(io)
	return windows.WSASendto(socket, &buffer, 1, nil, 0, addressOf(io.Datagram().Peer), overlappedOf(io), nil)
}

// transferMax is how many bytes one call moves: a length is 32 bits.
const transferMax = 1 << 30

func rest(io *core.IO) (pieces [][]byte) {
	pieces = io.Rest(nil)
	room := transferMax
	for i := range pieces {
		pieces[i] = pieces[i][:min(len(pieces[i]), room)]
		room -= len(pieces[i])
	}
	return pieces
}

// names is where AcceptEx leaves the addresses of both ends: all of them, since nobody reads it.
var names [2 * addressRoom]byte

// accept makes the socket that the connection is to get, and keeps it in the op.
func accept(listener windows.Handle, hints uint32, io *core.IO) error {
	domain := int32(windows.AF_INET)
	if hints&core.HintIPv6 != 0 {
		domain = windows.AF_INET6
	}
	io.Data = 0
	accepted, err := newSocket(domain)
	if err != nil {
		return err
	}
	io.Data = uint64(accepted)
	return windows.AcceptEx(listener, accepted, &names[0], 0, addressRoom, addressRoom, (*uint32)(unsafe.Pointer(&io.Spare[0])), overlappedOf(io))
}

// connect binds the socket first, which ConnectEx wants; one may be bound already.
func connect(socket windows.Handle, io *core.IO) error {
	peer := io.Peer()
	if err := windows.Bind(socket, addressOf(core.Endpoint{Family: peer.Family})); err != nil && err != windows.WSAEINVAL {
		return err
	}
	return windows.ConnectEx(socket, addressOf(peer), nil, 0, nil, overlappedOf(io))
}

func addressOf(e core.Endpoint) windows.Sockaddr {
	if e.Family == core.IPv4 {
		return &windows.SockaddrInet4{Port: int(e.Port), Addr: [4]byte(e.Address[:4])}
	}
	return &windows.SockaddrInet6{Port: int(e.Port), ZoneId: e.Scope, Addr: e.Address}
}
