// Command go is Go itself as a peer of weft: the benchmark works written with goroutines, channels, timers and net, as a Go
// program would do them. A worker is one of GOMAXPROCS. Its command line and its line of results are those of the C++ peers
// (bench/common/bench.hpp).
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

type options struct {
	workers int
	scale   float64
}

func (o options) count(full int) int { return max(1, int(float64(full)*o.scale)) }

// result is one line: ns, and more values under names that end in their unit.
type result struct {
	ns    float64
	extra []value
}

type value struct {
	name   string
	number float64
}

type work struct {
	name string
	run  func(options) result
}

var works = slices.Concat(taskWorks, forkJoinWorks, waitWorks, echoWorks, fileWorks)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "list" {
		for _, w := range works {
			fmt.Println(w.name, 1)
			fmt.Println(w.name, 2)
		}
		return
	}
	if len(os.Args) != 5 || os.Args[1] != "run" {
		fmt.Fprintf(os.Stderr, "usage: %s list | run WORK WORKERS SCALE\n", os.Args[0])
		os.Exit(2)
	}
	workers, err := strconv.Atoi(os.Args[3])
	need(err)
	scale, err := strconv.ParseFloat(os.Args[4], 64)
	need(err)
	at := slices.IndexFunc(works, func(w work) bool { return w.name == os.Args[2] })
	if at < 0 || workers < 1 {
		fail("no work %s for %d workers", os.Args[2], workers)
	}
	runtime.GOMAXPROCS(workers)
	r := works[at].run(options{workers, scale})
	fmt.Printf("ns=%.6g", r.ns)
	for _, v := range r.extra {
		fmt.Printf(" %s=%.6g", v.name, v.number)
	}
	fmt.Println()
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arguments...)
	os.Exit(1)
}

func need(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func check(got, want uint64, what string) {
	if got != want {
		fail("%s: got %d, want %d", what, got, want)
	}
}

// measure is bench::measure: one run to warm up, then runs until 100 ms are full, at most nine; the median time and the mean
// CPU time of an operation.
func measure(operations int, body func()) result {
	body()
	var times []float64
	var total time.Duration
	cpu := cpuNS()
	for total < 100*time.Millisecond && len(times) < 9 {
		begin := time.Now()
		body()
		took := time.Since(begin)
		total += took
		times = append(times, float64(took)/float64(operations))
	}
	cpu = cpuNS() - cpu
	slices.Sort(times)
	return result{times[len(times)/2], []value{{"cpu_ns", float64(cpu) / float64(len(times)*operations)}}}
}

func percentiles(samples []int64) result {
	slices.Sort(samples)
	at := func(share float64) float64 { return float64(samples[int(float64(len(samples))*share)]) }
	return result{at(0.5), []value{{"p99_ns", at(0.99)}}}
}

func cpuNS() int64 { return clockNS(unix.CLOCK_PROCESS_CPUTIME_ID) }

// nowNS is the monotonic clock as a number, which time.Time does not give.
func nowNS() int64 { return int64(time.Since(start)) }

var start = time.Now()

func clockNS(clock int32) int64 {
	var t unix.Timespec
	need(unix.ClockGettime(clock, &t))
	return t.Nano()
}

// random, sleepOf and microValue are bench_random, bench_sleep_of and bench_value of bench/common/bench.h: every peer gets
// the same numbers.
func random(i uint64) uint64 {
	z := (i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func sleepOf(i, count, most int) time.Duration {
	if i+1 == count {
		return time.Duration(most) * time.Millisecond
	}
	return time.Duration(1+random(uint64(i))%uint64(most)) * time.Millisecond
}

func microValue(i int) uint64 { return uint64(uint32(i) * 2 * 2654435761 >> 16) }
