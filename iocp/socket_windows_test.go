package iocp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"

	"weft/core"
)

// What is no TCP socket: each call posts a packet, whatever it says.

// datagrams makes a UDP socket that is connected to itself.
func datagrams(f *fixture) (handle uint64, socket windows.Handle) {
	require.NoError(f, startWinsock())
	socket, err := windows.WSASocket(windows.AF_INET, windows.SOCK_DGRAM, windows.IPPROTO_UDP, nil, 0, wsaFlagOverlapped)
	require.NoError(f, err)
	require.NoError(f, windows.Bind(socket, &windows.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := windows.Getsockname(socket)
	require.NoError(f, err)
	require.NoError(f, windows.Connect(socket, name))
	handle = f.adopt(int32(socket))
	require.Zero(f, f.hints(handle))
	return handle, socket
}

func (f *fixture) send(handle uint64, text string) {
	f.Helper()
	o := f.op(len(text))
	copy(o.memory, text)
	o.start(handle, core.KindSend)
	o.ends(0, text)
}

func TestDatagrams(t *testing.T) {
	f := newFixture(t)
	handle, socket := datagrams(f)
	for range 20 {
		f.send(handle, "early")
		require.Eventually(t, func() bool { return readable(int32(socket)) }, 20*time.Second, 100*time.Microsecond)
		o := f.op(16)
		o.waits(handle, core.KindReceive) // there, but the packet comes
		o.ends(0, "early")
		o = f.op(16)
		o.waits(handle, core.KindReceive)
		f.send(handle, "late")
		o.ends(0, "late")
	}
	require.Zero(t, f.poller.Poll(int64(20*time.Millisecond), f.add))
}

// A receive that cuts a datagram off fails at once, and its packet comes all the same.
func TestDatagramsThatAreCutOff(t *testing.T) {
	f := newFixture(t)
	handle, socket := datagrams(f)
	for range 20 {
		f.send(handle, "much too long")
		require.Eventually(t, func() bool { return readable(int32(socket)) }, 20*time.Second, 100*time.Microsecond)
		o := f.op(4)
		o.waits(handle, core.KindReceive)
		o.ends(0, "much")
		o = f.op(4)
		o.waits(handle, core.KindReceive)
		f.send(handle, "long, too")
		o.ends(0, "long")
	}
	require.Zero(t, f.poller.Poll(int64(20*time.Millisecond), f.add))
}

// pipe makes a named pipe with two ends.
func pipe(f *fixture, mode uint32) (server, client windows.Handle) {
	name, err := windows.UTF16PtrFromString(fmt.Sprintf(`\\.\pipe\weft-%d-%d`, windows.GetCurrentProcessId(), now()))
	require.NoError(f, err)
	server, err = windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, mode, 1, 4096, 4096, 0, nil)
	require.NoError(f, err)
	client, err = windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_OVERLAPPED, 0)
	require.NoError(f, err)
	return server, client
}

func TestPipe(t *testing.T) {
	f := newFixture(t)
	s, c := pipe(f, windows.PIPE_TYPE_BYTE)
	server, client := f.adopt(int32(s)), f.adopt(int32(c))
	for range 20 {
		o := f.op(8)
		o.waits(server, core.KindReceive)
		f.send(client, "there")
		o.ends(0, "there")
		f.send(server, "and back")
		o = f.op(8)
		o.start(client, core.KindReceive)
		o.ends(0, "and back")
	}
	o := f.op(8)
	o.waits(server, core.KindReceive)
	require.True(t, f.lane.Cancel(o.IO, f.add))
	o.ends(core.ECanceled, "")
	o = f.op(8)
	o.waits(server, core.KindReceive)
	require.NoError(t, f.Close(client, f.add))
	o.ends(0, "") // the end of the stream
	o = f.op(8)
	o.start(server, core.KindReceive)
	o.ends(0, "")
	o = f.op(8)
	o.start(server, core.KindSend)
	for !o.work() {
		f.poller.Poll(-1, f.add)
	}
	require.EqualValues(t, core.EPipe, o.Status)
}

// A socket may be closed as if it were something else; Go's own syscall does so. Its number, Wine believes, is a socket's ever after.
func TestPipeWithTheNumberOfASocket(t *testing.T) {
	f := newFixture(t)
	socket, err := newSocket(windows.AF_INET)
	require.NoError(t, err)
	require.NoError(t, windows.CloseHandle(socket))
	for again := false; !again; {
		server, client := pipe(f, windows.PIPE_TYPE_BYTE)
		defer windows.CloseHandle(server)
		defer windows.CloseHandle(client)
		require.Less(t, client, socket+1000, "the number is never used again")
		again = server == socket || client == socket
		require.EqualValues(t, core.HintFile, Sockets{}.Kind(int32(server)))
		require.EqualValues(t, core.HintFile, Sockets{}.Kind(int32(client)))
	}
}

// A message that is longer than the buffer comes in pieces.
func TestPipeOfMessages(t *testing.T) {
	f := newFixture(t)
	s, c := pipe(f, windows.PIPE_TYPE_MESSAGE|windows.PIPE_READMODE_MESSAGE)
	server, client := f.adopt(int32(s)), f.adopt(int32(c))
	f.send(client, "message")
	for _, piece := range []string{"mess", "age"} {
		o := f.op(4)
		o.start(server, core.KindReceive)
		o.ends(0, piece)
	}
	require.Zero(t, f.poller.Poll(int64(20*time.Millisecond), f.add))
}

func TestRefusedConnect(t *testing.T) {
	f := newFixture(t)
	// Not at 127.0.0.1, where the port could be another process's next.
	free, err := Sockets{}.Listen(core.Endpoint{Family: core.IPv4, Address: [16]byte{127, 0, 0, 2}}, 1)
	require.NoError(t, err)
	peer, err := Sockets{}.Local(free)
	require.NoError(t, err)
	Sockets{}.Close(free)
	socket, err := Sockets{}.Open(core.IPv4)
	require.NoError(t, err)
	o := f.op(1)
	_, err = f.lane.Start(o.IO, f.adopt(socket), core.Request{Kind: core.KindConnect, Peer: &peer}, f.add)
	require.NoError(t, err)
	o.memory = nil
	o.ends(core.EConnRefused, "")
	require.EqualValues(t, windows.WSAECONNREFUSED, o.OSError)
}
