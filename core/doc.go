// Package core is weft's scheduler: it decides; the lane runs.
//
// # Words
//
// One word for one thing, here, in C and in C++:
//
//   - op: an intrusive node in the caller's memory, something to run once.
//   - runnable: what a queue holds, memory whose first word is a function that is called with the memory's address. An op is one, a
//     C++ coroutine frame is another.
//   - worker: a thread that runs ops, for life. lane: the code that does so; in the library it is C, in Go's own tests package purelane.
//   - held up: a worker that stays in one op, which blocks or computes. replacement: a worker that begins for it, and later leaves.
//   - runtime: workers, their timers, one poller, one monitor.
//   - inject: hand over an op from a thread that is no worker. steal: take half of another worker's queue.
//   - park, wake: a worker sleeps, and is made to look again. keeper: the one sleeper who minds timers and poller.
//   - fire: a timer's deadline has come. arm: an op waits on a descriptor. complete: an op has its result.
//   - resume: continue a coroutine. cancel, token, source, registration: package cancel.
//
// # A worker's life
//
// The worker enters the lane ([Lane.Run]), which runs ops, steals, sleeps, and runs ops again, and comes back only with a [Reason]: a timer is
// due, nobody has polled for a while, the worker is to leave, or the runtime stops. Each is answered here in a short piece of Go that runs no
// op, and the worker enters the lane again. So a language crossing is paid per batch, never per op.
//
// # Who touches what
//
// shared.go lists the words that C and Go share, with their owners. A worker's queue belongs to whoever is in its queue section (queue.go):
// the owner most of the time, a thief for a moment. A wheel belongs to the holder of its lock (wheel.go). The injection stack is only pushed
// to, and taken whole. Everything else is a single atomic word with its argument beside it.
//
// Nothing that a worker holds is invisible to the others: if its current op blocks, its queue can be stolen to the last op, its timers are in
// a wheel that anybody may advance, and what was injected was never its own.
//
// # Parking
//
// Announce, look again, sleep; publish, look for sleepers. capi/park.c holds the argument, purelane/park.go is its twin, and
// docs/models/park.pml is checked exhaustively.
//
// # Locks
//
// A thread holds at most one of: a queue section, a wheel's lock, the descriptor table's mutex, the runtime's mutex; but that a worker that leaves
// enters its own queue section while it holds the runtime's mutex, which no thief wants. None is held while an op or a callback runs. So there
// is no order to violate.
//
// # Stop
//
//  1. State goes from running to stopping: new ops, timers and I/O are refused from here on; continuations of accepted work are not.
//  2. Every wheel is closed under its lock, its timers complete as cancelled. Every descriptor's waiting ops complete as cancelled. So do
//     blocking calls that wait for a thread, and names that are being looked up.
//  3. Workers drain. One that finds nothing counts itself as done, and uncounts itself when something is injected.
//  4. When all are done, no blocking call runs any more, and the injection stack could be closed while empty, nothing can come any more: stopped. Workers and monitor end.
//  5. An op that somebody held in his hands across step 4 (its canceller) is run by that thread.
package core
