package epoll

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherSystems: where there is no epoll the package is there all the same, and says so.
func TestOtherSystems(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		command := exec.Command("go", "vet", "weft/core", "weft/epoll")
		command.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s: %s", system, output)
	}
}
