package cancel_test

import (
	"testing"

	"weft/cancel/canceltest"
	"weft/cancel/purehost"
)

// FuzzSequence compares programs of requests, registrations and deregistrations, inside callbacks too, with the model.
// The seeds in testdata were kept because each one reaches something that the others do not.
func FuzzSequence(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, pair := range pairs() {
			canceltest.Sequence(t, pair, purehost.Allocate, data)
		}
	})
}
