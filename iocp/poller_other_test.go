//go:build !windows

package iocp

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
)

func TestOtherSystems(t *testing.T) {
	var poller core.Poller = New()
	require.Equal(t, core.ENotSup, poller.Attach(nil, nil), "where there are no completion ports the package says so")
	command := exec.Command("go", "vet", "weft/iocp")
	command.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
