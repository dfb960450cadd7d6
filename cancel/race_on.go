//go:build race

package cancel

import (
	"runtime"
	"unsafe"
)

// The race detector does not see atomics in memory that is not Go's. These tell it what they order, through words of
// Go's that stand for the addresses; a few for all, so an accidental neighbour only hides a race and never invents one.
var raceShadow [256]uint64

func raceWord(key uint64) unsafe.Pointer {
	return unsafe.Pointer(&raceShadow[key*0x9e3779b97f4a7c15>>56])
}

func raceAcquire(key uint64) { runtime.RaceAcquire(raceWord(key)) }

func raceRelease(key uint64) { runtime.RaceReleaseMerge(raceWord(key)) }
