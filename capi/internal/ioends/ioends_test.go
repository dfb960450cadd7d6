package ioends_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/capi/internal/ioends"
	"weft/core"
	"weft/core/pollertest"
	"weft/core/purelane"
)

// system is all in C; the tests put Go's twins in.
func system() pollertest.System {
	return pollertest.System{
		Poller:      func() core.Poller { return ioends.NewPoller() },
		Sockets:     sockets,
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
		s.Poller = func() core.Poller { return newPoller() }
		pollertest.Run(t, s)
	})
}

func TestConstants(t *testing.T) {
	for name, values := range ioends.Constants() {
		require.Equal(t, values[0], values[1], name)
	}
}
