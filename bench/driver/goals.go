package main

import (
	"fmt"
	"slices"
	"strings"
)

// goal is something that weft wants to reach: a result of its own, in the same run, over another, or alone.
type goal struct {
	work    string
	metric  string // of weft; "" is the median time
	peer    string // compared with; "" is no one: the value itself counts
	than    string // work of weft's own that it is compared with instead
	workers []int
	atMost  float64
}

var (
	both = []int{1, 2}
	one  = []int{1}
	two  = []int{2}
)

var goals = slices.Concat(
	[]goal{
		{work: "chain", peer: "resume_loop", workers: both, atMost: 2},
		{work: "chain", peer: "tbb", workers: one, atMost: 0.5},
		{work: "chain", peer: "asio", workers: two, atMost: 0.1},
		{work: "yield2", peer: "resume_loop", workers: both, atMost: 2},
		{work: "yield1000", peer: "resume_loop", workers: both, atMost: 2},
		{work: "micro_inside", peer: "mutex_pool", workers: two, atMost: 0.25},
		{work: "micro_inside", peer: "mutex_pool", workers: one, atMost: 0.5},
		{work: "micro_outside", peer: "mutex_pool", workers: both, atMost: 0.6},
	},
	ahead("micro_outside", both, "asio", "tbb", "libuv", "std_async"),
	[]goal{
		{work: "micro_outside_batch", workers: both, atMost: 50},
		{work: "fib30", peer: "tbb", workers: both, atMost: 0.25},
		{work: "fib30_calls", peer: "tbb", workers: both, atMost: 0.25},
		{work: "skynet", peer: "tbb", workers: both, atMost: 0.5},
		{work: "skynet_calls", peer: "tbb", workers: both, atMost: 0.5},
		{work: "nqueens", peer: "tbb", workers: both, atMost: 0.9},
		{work: "nqueens_calls", peer: "tbb", workers: both, atMost: 0.9},
		{work: "pingpong_event", peer: "go", workers: both, atMost: 0.3},
		{work: "pingpong_channel", peer: "go", workers: both, atMost: 0.3},
		{work: "sleep100k", peer: "asio", workers: two, atMost: 0.35},
		{work: "sleep100k", metric: "cpu_ns", peer: "asio", workers: both, atMost: 0.5},
		{work: "timer_cancel", peer: "go", workers: both, atMost: 0.2},
		{work: "timer_cancel", peer: "asio", workers: both, atMost: 0.02},
		{work: "sleep1000", workers: both, atMost: 100e6 * 1.005}, // the longest sleeps 100 ms
	},
	ahead("echo1", both, "asio", "libuv", "go"),
	ahead("echo64", both, "asio", "libuv", "go"),
	ahead("echo1000", both, "asio", "libuv", "go"),
	ahead("file_read1", both, "libuv"),
	ahead("file_read64", both, "libuv"),
	ahead("file_cold64", both, "libuv", "go"),
	[]goal{
		{work: "file_read1", peer: "pread", workers: both, atMost: 1.5},
		{work: "file_read64", peer: "pread", workers: both, atMost: 1.5},
		{work: "file_cold64", peer: "pread", workers: both, atMost: 1.2},
		{work: "echo1", peer: "epoll", workers: both, atMost: 1 / 0.97}, // 0.97 of its messages per second
		{work: "echo64", peer: "epoll", workers: both, atMost: 1 / 0.97},
		{work: "echo1000", peer: "epoll", workers: both, atMost: 1 / 0.97},
		{work: "recovery_one", workers: two, atMost: 100e3},
		{work: "recovery_all", workers: both, atMost: 1e6},
		{work: "recovery_all", metric: "p99_ns", workers: both, atMost: 10e6},
		{work: "blocked_lateness", metric: "p99_ns", workers: both, atMost: 10e6},
		{work: "http_slow1", than: "http_slow0", workers: both, atMost: 1 / 0.9}, // 0.9 of its requests per second
		{work: "wake", peer: "futex", workers: both, atMost: 1.2},
		{work: "wake", metric: "p99_ns", peer: "futex", workers: both, atMost: 2},
		{work: "parked", metric: "beyond_frame_bytes", workers: both, atMost: 64},
		{work: "idle_cpu", metric: "cpu_percent", workers: both, atMost: 0.05},
		{work: "idle_cpu_timer", metric: "cpu_percent", workers: both, atMost: 0.05},
	},
)

// ahead is a goal against each of several peers: to need no more time.
func ahead(work string, workers []int, names ...string) []goal {
	var all []goal
	for _, name := range names {
		all = append(all, goal{work: work, peer: name, workers: workers, atMost: 1})
	}
	return all
}

// reached is the value that a goal limits; false when the run did not measure it.
func (g goal) reached(all []record, workers int) (float64, bool) {
	weft, ok := own(all, g.work, workers)
	ours, has := weft.metric(g.metric)
	if !ok || !has || g.peer == "" && g.than == "" {
		return ours, ok && has
	}
	if g.than != "" {
		base, ok := own(all, g.than, workers)
		theirs, has := base.metric(g.metric)
		return ours / theirs, ok && has && theirs > 0
	}
	at := slices.IndexFunc(peers, func(p peer) bool { return p.name == g.peer })
	other, ok := find(all, g.work, peers[at].column, workers)
	theirs, has := other.metric(g.metric)
	return ours / theirs, ok && has && theirs > 0
}

func goalTable(all []record) string {
	var t strings.Builder
	for _, g := range goals {
		for _, workers := range g.workers {
			value, ok := g.reached(all, workers)
			if !ok {
				continue
			}
			what, shown, limit := "over "+g.peer+"'s", digits(value), digits(g.atMost)
			if g.than != "" {
				what = "over its " + g.than
			} else if g.peer == "" {
				what, shown, limit = "alone", show(g.metric, value), show(g.metric, g.atMost)
			}
			verdict := "yes"
			if value > g.atMost {
				verdict = "**no**"
			}
			name := g.work
			if g.metric != "" {
				name += ", " + g.metric
			}
			fmt.Fprintf(&t, "| %s | %s | %d | %s | %s | %s |\n", name, what, workers, shown, limit, verdict)
		}
	}
	if t.Len() == 0 {
		return ""
	}
	return "| weft's | | workers | is | at most | reached |\n|---|---|---|---|---|---|\n" + t.String()
}
