package canceltest

import (
	"math/rand/v2"
	"testing"
)

// Programs plays random programs on a pair of ends. Their seed is printed.
func Programs(t *testing.T, pair Pair, memory Memory) {
	random := rand.New(rand.NewPCG(seed(newHarness(t, pair, memory)), 4))
	data := make([]byte, 2*(programInside*programRegistrations+60))
	for range 300 {
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		Sequence(t, pair, memory, data)
	}
}
