package cancel_test

import (
	"testing"

	"github.com/ebitengine/purego"

	"weft/cancel/canceltest"
	"weft/cancel/purehost"
)

// foreign has C functions for callbacks, as a registration that C made: the Go end must go through Host.Call.
var foreign = canceltest.Foreign{Callback: purego.NewCallback(func(context uintptr) uintptr { return purehost.Dispatch(context) })}

func pairs() []canceltest.Pair {
	return []canceltest.Pair{
		{Requester: canceltest.Go{}, Registrar: canceltest.Go{}},
		{Requester: canceltest.Go{}, Registrar: foreign},
	}
}

func TestScenarios(t *testing.T) {
	for _, pair := range pairs() {
		t.Run(pair.Name(), func(t *testing.T) { canceltest.Run(t, pair, purehost.Allocate) })
	}
}

func TestPrograms(t *testing.T) {
	for _, pair := range pairs() {
		t.Run(pair.Name(), func(t *testing.T) { canceltest.Programs(t, pair, purehost.Allocate) })
	}
}
