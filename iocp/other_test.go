//go:build !windows

package iocp

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVet: what is built for Windows alone is looked at on other systems too.
func TestVet(t *testing.T) {
	command := exec.Command("go", "vet", "weft/iocp")
	command.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
