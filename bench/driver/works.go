package main

import "time"

// kind tells how a work is run.
type kind int

const (
	alone    kind = iota // a process that works and ends, nothing beside it
	server               // a server process, and the common client beside it
	together             // processes that do nothing: all peers at once
)

// work is one row of the table. Its name is what the programs call it, unless it is a server.
type work struct {
	name        string
	kind        kind
	per         string   // what the time is per
	serves      string   // what programs call it, when it is a server
	connections int      // of the client of a server
	slow        string   // percentage of requests whose handler blocks, for the client of an HTTP server
	like        string   // work whose result stands in for peers that have no such difference
	more        []string // names of further results that are worth a row
}

const echoSeconds = 1.5 // of the client, warm-up included; scaled

var works = []work{
	{name: "micro_outside", per: "task"},
	{name: "micro_outside_batch", per: "task"},
	{name: "micro_inside", per: "task"},
	{name: "spawn_outside", per: "task", like: "micro_outside"},
	{name: "spawn_inside", per: "task", like: "micro_inside"},
	{name: "chain", per: "hop"},
	{name: "chain_spawn", per: "hop", like: "chain"},
	{name: "yield2", per: "yield"},
	{name: "yield1000", per: "yield"},
	{name: "fib30", per: "fork"},
	{name: "fib30_calls", per: "fork", like: "fib30"},
	{name: "skynet", per: "leaf"},
	{name: "skynet_calls", per: "leaf", like: "skynet"},
	{name: "nqueens", per: "run"},
	{name: "nqueens_calls", per: "run", like: "nqueens"},
	{name: "matmul", per: "run"},
	{name: "matmul_calls", per: "run", like: "matmul"},
	{name: "pingpong_event", per: "round trip"},
	{name: "pingpong_channel", per: "round trip"},
	{name: "sleep1000", per: "run"},
	{name: "sleep100k", per: "run", more: []string{"cpu_ns"}},
	{name: "timer_cancel", per: "timer"},
	{name: "timer_lateness", per: "timer, p50", more: []string{"p99_ns"}},
	{name: "echo1", kind: server, serves: "echo", per: "message", connections: 1, more: []string{"p50_ns", "p99_ns", "server_cpu_ns"}},
	{name: "echo64", kind: server, serves: "echo", per: "message", connections: 64, more: []string{"p50_ns", "p99_ns", "server_cpu_ns"}},
	{name: "echo1000", kind: server, serves: "echo", per: "message", connections: 1000, more: []string{"p50_ns", "p99_ns", "server_cpu_ns"}},
	{name: "recovery_one", per: "op behind, p50", more: []string{"p99_ns"}},
	{name: "recovery_all", per: "op behind, p50", more: []string{"p99_ns"}},
	{name: "blocked_lateness", per: "timer, p50", more: []string{"p99_ns"}},
	{name: "http_slow0", kind: server, serves: "http", per: "request", connections: 256, slow: "0", more: []string{"p99_ns"}},
	{name: "http_slow1", kind: server, serves: "http", per: "request", connections: 256, slow: "1", more: []string{"p99_ns"}},
	{name: "http_slow10", kind: server, serves: "http", per: "request", connections: 256, slow: "10", more: []string{"p99_ns"}},
	{name: "file_read1", per: "read"},
	{name: "file_read64", per: "read"},
	{name: "file_cold64", per: "read", more: []string{"cpu_ns"}},
	{name: "wake", per: "wake, p50", more: []string{"p99_ns"}},
	{name: "parked", per: "coroutine", more: []string{"bytes", "beyond_frame_bytes"}},
	{name: "idle_cpu", kind: together, per: "idle second"},
	{name: "idle_cpu_timer", kind: together, per: "idle second"},
}

// asked is what the programs call the work.
func (w work) asked() string {
	if w.kind == server {
		return w.serves
	}
	return w.name
}

// peer is one program. Peers of one column never share a row.
type peer struct {
	name    string
	program string
	column  string
}

// subjects are the peers that the others are compared with: the first one that has the row.
var subjects = []string{"weft", "weft_c"}

var peers = []peer{
	{"weft", "bench_weft", "weft"},
	{"weft_c", "bench_weft_c", "weft_c"},
	{"asio", "bench_asio", "asio"},
	{"tbb", "bench_tbb", "tbb"},
	{"libuv", "bench_libuv", "libuv"},
	{"mutex_pool", "bench_mutex_pool", "mutex_pool"},
	{"std_async", "bench_std_async", "std_async"},
	{"go", "bench_go", "go"},
	{"epoll", "bench_epoll", "limit"},
	{"resume_loop", "bench_resume_loop", "limit"},
	{"futex", "bench_futex", "limit"},
	{"pread", "bench_pread", "limit"},
}

var columns = []string{"weft", "weft_c", "asio", "tbb", "libuv", "mutex_pool", "std_async", "go", "limit"}

// Limits on one process: generous, for a machine under load; a process that needs them has hung.
const (
	runTimeout   = 120 * time.Second
	startTimeout = 10 * time.Second // until a server tells its port
	endTimeout   = 10 * time.Second // from the end of its input until a server has ended
)
