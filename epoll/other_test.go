package epoll

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherSystems: where there is no epoll, core and its tests are built all the same, and the package is empty.
func TestOtherSystems(t *testing.T) {
	command := exec.Command("go", "build", "weft/core", "weft/epoll", "weft/core/pollertest")
	command.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
