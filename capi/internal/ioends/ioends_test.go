package ioends_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"weft/capi/internal/ioends"
	"weft/core"
	"weft/core/pollertest"
	"weft/core/purelane"
	"weft/epoll"
)

// system is all in C; the tests put Go's twins in.
func system() pollertest.System {
	return pollertest.System{
		Poller:      func() core.Poller { return ioends.NewPoller() },
		Sockets:     epoll.Sockets{},
		Memory:      purelane.Memory{},
		Runtime:     ioends.Runtime,
		Lane:        func(table *core.DescriptorTable) pollertest.Lane { return ioends.NewLane(table) },
		RegularFile: core.ENotSup,
	}
}

func TestConformance(t *testing.T) {
	t.Run("ops and wait in C", func(t *testing.T) { pollertest.Run(t, system()) })
	t.Run("ops in Go, wait in C", func(t *testing.T) {
		s := system()
		s.Lane = nil
		pollertest.Run(t, s)
	})
	t.Run("ops in C, wait in Go", func(t *testing.T) {
		s := system()
		s.Poller = func() core.Poller { return epoll.New() }
		pollertest.Run(t, s)
	})
}

func TestConstants(t *testing.T) {
	for name, values := range ioends.Constants() {
		require.Equal(t, values[0], values[1], name)
	}
}

func TestErrorNumbers(t *testing.T) {
	require.Zero(t, ioends.ErrorFromOS(0))
	for number := 1; number < 200; number++ {
		require.Equal(t, ioends.ErrorFromOS(number), epoll.ErrorOf(unix.Errno(number)), "%d: %v", number, unix.Errno(number))
	}
	require.Equal(t, core.ESystem, ioends.ErrorFromOS(-1))
}

// A worker that polls without waiting hands a wake on to the keeper, who may sleep: nobody else would wake him.
func TestWakeIsHandedOn(t *testing.T) {
	poller := ioends.NewPoller()
	shared := ioends.Runtime()
	require.NoError(t, poller.Attach(core.NewDescriptorTable(shared, poller, purelane.Memory{}), shared))
	defer poller.Close()
	const myself, another = 1, 2 // index + 1
	woken := func() bool {
		events := make([]unix.EpollEvent, 1)
		n, err := unix.EpollWait(int(shared.Port), events, 0)
		require.NoError(t, err)
		return n == 1
	}
	for _, test := range []struct {
		keeper uint32
		left   bool
	}{{0, false}, {myself, false}, {another, true}} {
		shared.Keeper.Store(test.keeper)
		require.Zero(t, poller.Poll(0, nil))
		require.False(t, woken(), "no wake comes of none; keeper %d", test.keeper)
		poller.Wake()
		require.Zero(t, poller.Poll(0, nil))
		require.Equal(t, test.left, woken(), "keeper %d", test.keeper)
	}
}
