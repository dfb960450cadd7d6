package ioends_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"

	"weft/capi/internal/ioends"
	"weft/core"
	"weft/core/purelane"
	"weft/iocp"
)

var sockets iocp.Sockets

func newPoller() core.Poller { return iocp.New() }

func TestErrorNumbers(t *testing.T) {
	require.Zero(t, ioends.ErrorFromOS(0))
	for number := 1; number < 12000; number++ {
		require.Equal(t, ioends.ErrorFromOS(number), iocp.ErrorOf(windows.Errno(number)), "%d: %v", number, windows.Errno(number))
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
		var bytes uint32
		var key uintptr
		var overlapped *windows.Overlapped
		return windows.GetQueuedCompletionStatus(windows.Handle(shared.Port), &bytes, &key, &overlapped, 0) == nil && key == iocp.WakeKey
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
