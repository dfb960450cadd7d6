package epoll

import (
	"math"

	"golang.org/x/sys/unix"

	"weft/core"
)

// Sockets is core.Sockets on Linux. capi/io_linux.c is its twin.
type Sockets struct{}

// Open implements core.Sockets.
func (Sockets) Open(family uint16) (int32, error) {
	domain := unix.AF_INET
	if family == core.IPv6 {
		domain = unix.AF_INET6
	} else if family != core.IPv4 {
		return -1, core.EInval
	}
	system, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, ErrorOf(err)
	}
	_ = unix.SetsockoptInt(system, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return int32(system), nil
}

// Listen implements core.Sockets. An IPv6 socket takes IPv6 alone.
func (s Sockets) Listen(endpoint core.Endpoint, backlog int) (int32, error) {
	system, err := s.Open(endpoint.Family)
	if err != nil {
		return -1, err
	}
	if backlog == 0 {
		backlog = math.MaxInt32 // the system cuts it to its largest
	}
	err = unix.SetsockoptInt(int(system), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil && endpoint.Family == core.IPv6 {
		err = unix.SetsockoptInt(int(system), unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = unix.Bind(int(system), addressOf(endpoint))
	}
	if err == nil {
		err = unix.Listen(int(system), backlog)
	}
	if err != nil {
		s.Close(system)
		return -1, ErrorOf(err)
	}
	return system, nil
}

// Datagrams implements core.Sockets. An IPv6 socket takes IPv6 alone.
func (s Sockets) Datagrams(endpoint core.Endpoint) (int32, error) {
	domain := unix.AF_INET
	if endpoint.Family == core.IPv6 {
		domain = unix.AF_INET6
	}
	system, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, ErrorOf(err)
	}
	if endpoint.Family == core.IPv6 {
		err = unix.SetsockoptInt(system, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = unix.Bind(system, addressOf(endpoint))
	}
	if err != nil {
		s.Close(int32(system))
		return -1, ErrorOf(err)
	}
	return int32(system), nil
}

// Local implements core.Sockets.
func (Sockets) Local(system int32) (core.Endpoint, error) {
	address, err := unix.Getsockname(int(system))
	if err != nil {
		return core.Endpoint{}, ErrorOf(err)
	}
	return endpointOf(address)
}

func endpointOf(address unix.Sockaddr) (core.Endpoint, error) {
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		e := core.Endpoint{Family: core.IPv4, Port: uint16(a.Port)}
		copy(e.Address[:], a.Addr[:])
		return e, nil
	case *unix.SockaddrInet6:
		return core.Endpoint{Family: core.IPv6, Port: uint16(a.Port), Scope: a.ZoneId, Address: a.Addr}, nil
	}
	return core.Endpoint{}, core.ENotSup
}

// Shutdown implements core.Sockets.
func (Sockets) Shutdown(system int32, directions int) error {
	how := unix.SHUT_RDWR
	switch directions {
	case 1 << core.Receive:
		how = unix.SHUT_RD
	case 1 << core.Send:
		how = unix.SHUT_WR
	}
	if err := unix.Shutdown(int(system), how); err != nil {
		return ErrorOf(err)
	}
	return nil
}

// Close implements core.Sockets.
func (Sockets) Close(system int32) { _ = unix.Close(int(system)) }

// Kind implements core.Sockets.
func (Sockets) Kind(system int32) uint32 {
	protocol, err := unix.GetsockoptInt(int(system), unix.SOL_SOCKET, unix.SO_PROTOCOL)
	switch {
	case err == unix.ENOTSOCK:
		return core.HintFile
	case err == nil && protocol == unix.IPPROTO_TCP:
		return core.HintStream
	}
	return 0
}

// Try implements core.Sockets.
func (Sockets) Try(system int32, hints uint32, io *core.IO) core.Attempt {
	for {
		attempt, err := try(int(system), hints&core.HintFile != 0, io)
		switch err {
		case nil:
			return attempt
		case unix.EINTR:
		case unix.EAGAIN:
			return core.Attempt{Wait: true}
		default:
			return core.Attempt{Err: ErrorOf(err), OSError: int32(err.(unix.Errno))}
		}
	}
}

// Collect implements core.Sockets: there are no transfers.
func (Sockets) Collect(int32, uint32, *core.IO) core.Attempt { return core.Attempt{Wait: true} }

func try(system int, file bool, io *core.IO) (core.Attempt, error) {
	switch io.Kind {
	case core.KindReceive, core.KindReceiveBuffers:
		pieces, asked := rest(io)
		moved, err := receive(system, file, pieces)
		return moves(moved, asked, err)
	case core.KindSend, core.KindSendBuffers:
		pieces, asked := rest(io)
		moved, err := send(system, file, pieces)
		return moves(moved, asked, err)
	case core.KindReceiveFrom:
		return receiveFrom(system, io)
	case core.KindSendTo:
		return sendTo(system, io)
	case core.KindAccept:
		return accept(system)
	}
	return connect(system, io)
}

// transferMax is how many bytes one call moves; the system cuts at about twice this, which would look like a short receive.
const transferMax = 1 << 30

func rest(io *core.IO) (pieces [][]byte, asked int) {
	pieces = io.Rest(nil)
	for i := range pieces {
		pieces[i] = pieces[i][:min(len(pieces[i]), transferMax-asked)]
		asked += len(pieces[i])
	}
	return pieces, asked
}

func moves(moved, asked int, err error) (core.Attempt, error) {
	if err != nil {
		return core.Attempt{}, err
	}
	return core.Attempt{Moved: uint64(moved), Short: moved < asked}, nil
}

func receive(system int, file bool, pieces [][]byte) (int, error) {
	if file {
		return unix.Readv(system, pieces)
	}
	n, _, _, _, err := unix.RecvmsgBuffers(system, pieces, nil, unix.MSG_DONTWAIT)
	return n, err
}

func send(system int, file bool, pieces [][]byte) (int, error) {
	if file {
		return unix.Writev(system, pieces) // Go ignores SIGPIPE of everything but standard output and error
	}
	return unix.SendmsgBuffers(system, pieces, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// room is where a datagram is. An empty one has a buffer, too: qemu does nothing for a call that has none.
func room(io *core.IO) [][]byte {
	if pieces := io.Rest(nil); len(pieces) != 0 {
		return pieces
	}
	return [][]byte{{}}
}

func receiveFrom(system int, io *core.IO) (core.Attempt, error) {
	n, _, flags, from, err := unix.RecvmsgBuffers(system, room(io), nil, unix.MSG_DONTWAIT)
	if err != nil {
		return core.Attempt{}, err
	}
	if flags&unix.MSG_TRUNC != 0 {
		io.Datagram().Truncated = 1
	}
	if peer, err := endpointOf(from); err == nil {
		io.Datagram().Peer = peer
	}
	return core.Attempt{Moved: uint64(n)}, nil
}

func sendTo(system int, io *core.IO) (core.Attempt, error) {
	n, err := unix.SendmsgBuffers(system, room(io), nil, addressOf(io.Datagram().Peer), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if err != nil {
		return core.Attempt{}, err
	}
	return core.Attempt{Moved: uint64(n)}, nil
}

// accept takes the next connection that has not failed already: accept(2), "Error handling".
func accept(system int) (core.Attempt, error) {
	for {
		accepted, _, err := unix.Accept4(system, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			_ = unix.SetsockoptInt(accepted, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
			return core.Attempt{Accepted: int32(accepted)}, nil
		case unix.ECONNABORTED, unix.EPROTO, unix.ENOPROTOOPT, unix.ENETDOWN, unix.ENETUNREACH, unix.EHOSTDOWN, unix.EHOSTUNREACH,
			unix.ENONET:
			continue
		}
		return core.Attempt{}, err
	}
}

// connect, and connect again to learn what has become of it; capi/io_linux.c says why.
func connect(system int, io *core.IO) (core.Attempt, error) {
	again := io.Flags&core.IOUnderWay != 0
	err := unix.Connect(system, addressOf(io.Peer()))
	switch {
	case err == nil || again && err == unix.EISCONN:
		return core.Attempt{}, nil
	case err == unix.EINPROGRESS || err == unix.EINTR || again && err == unix.EALREADY:
		return core.Attempt{Wait: true}, nil
	}
	return core.Attempt{}, err
}

func addressOf(e core.Endpoint) unix.Sockaddr {
	if e.Family == core.IPv4 {
		return &unix.SockaddrInet4{Port: int(e.Port), Addr: [4]byte(e.Address[:4])}
	}
	return &unix.SockaddrInet6{Port: int(e.Port), ZoneId: e.Scope, Addr: e.Address}
}
