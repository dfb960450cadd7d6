package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/stat: USER_HZ is 100 on every Linux.
const tick = 10 * time.Millisecond

// noisyCores is how many cores others may use, in the mean, before a sample counts as disturbed.
const noisyCores = 0.3

// foreign measures what other processes used of the CPUs since begin: all that was used, less what this process and its
// ended children used.
type foreign struct {
	begun     time.Time
	all, ours time.Duration
}

func beginForeign() foreign { return foreign{time.Now(), allCPU(), ownCPU()} }

func (f foreign) cores() float64 {
	took := time.Since(f.begun)
	others := (allCPU() - f.all) - (ownCPU() - f.ours)
	// Two readings of a clock of 10 ms on each of which a whole tick may be missing.
	return max(0, float64(others-2*tick)/float64(took))
}

func allCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return parseStat(line)
}

// parseStat adds up user, nice and system time of the first line of /proc/stat.
func parseStat(line string) time.Duration {
	var user, nice, system time.Duration
	if _, err := fmt.Sscanf(line, "cpu %d %d %d", &user, &nice, &system); err != nil {
		return 0
	}
	return (user + nice + system) * tick
}

func ownCPU() time.Duration {
	total := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var use syscall.Rusage
		if syscall.Getrusage(who, &use) == nil {
			total += time.Duration(use.Utime.Nano() + use.Stime.Nano())
		}
	}
	return total
}
