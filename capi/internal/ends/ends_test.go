package ends_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"weft/cancel"
	"weft/cancel/canceltest"
	"weft/capi/internal/ends"
)

// pairs are all pairs of who requests and who registers.
func pairs() []canceltest.Pair {
	var all []canceltest.Pair
	for _, requester := range []canceltest.End{canceltest.Go{}, ends.End{}} {
		for _, registrar := range []canceltest.End{canceltest.Go{}, ends.End{}} {
			all = append(all, canceltest.Pair{Requester: requester, Registrar: registrar})
		}
	}
	return all
}

func TestScenarios(t *testing.T) {
	for _, pair := range pairs() {
		t.Run(pair.Name(), func(t *testing.T) { canceltest.Run(t, pair, ends.Allocate) })
	}
}

func TestBothEndsSeeTheSameWords(t *testing.T) {
	var s cancel.SourceMemory
	var r cancel.RegistrationMemory
	require.Equal(t, []uintptr{
		unsafe.Sizeof(s),
		unsafe.Offsetof(s.State),
		unsafe.Offsetof(s.Newest),
		unsafe.Offsetof(s.Running),
		unsafe.Sizeof(r),
		unsafe.Offsetof(r.Callback),
		unsafe.Offsetof(r.Context),
		unsafe.Offsetof(r.Source),
		unsafe.Offsetof(r.Previous),
		unsafe.Offsetof(r.Next),
		unsafe.Offsetof(r.Thread),
		unsafe.Offsetof(r.State),
	}, ends.Layout())
	require.Equal(t, [3]int{cancel.OK, cancel.Invalid, cancel.Busy}, ends.Codes())
}

func TestPrograms(t *testing.T) {
	for _, pair := range pairs() {
		t.Run(pair.Name(), func(t *testing.T) { canceltest.Programs(t, pair, ends.Allocate) })
	}
}
