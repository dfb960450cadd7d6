// Package layout tells where C keeps the fields of the memory that it shares with Go. Its test compares that with package core, field by
// field, so that neither side can move one alone.
package layout

/*
#cgo CFLAGS: -std=c11 -D_GNU_SOURCE -I${SRCDIR}/../.. -I${SRCDIR}/../../../include
#include "lane.h"

typedef struct layout_row {
	const char *structure; // Go's name of the structure
	const char *field;     // Go's name of the field; NULL: the row is about the structure
	size_t offset;         // of the field; of the structure its size
} layout_row;

#define S(c, go) {#go, NULL, sizeof(c)}
#define F(c, field, go_structure, go_field) {#go_structure, #go_field, offsetof(c, field)}

static const layout_row layout_rows[] = {
#define R(field, go) F(weft_op, field, Op, go)
	S(weft_op, Op), R(run, Run), R(context, Context), R(next_, Next), R(reserved_, Reserved),
#undef R
#define R(field, go) F(weft_timer, field, Timer, go)
	S(weft_timer, Timer), R(op, Op), R(status, Status), R(state_, State), R(deadline_, Deadline), R(link_[0], Next),
	R(link_[1], Previous), R(slot_, Slot), R(worker_, Worker),
#undef R
#define R(field, go) F(weft_io, field, IO, go)
	S(weft_io, IO), R(op, Op), R(status, Status), R(os_error, OSError), R(count, Count), R(accepted, Accepted), R(state_, State),
	R(kind_, Kind), R(flags_, Flags), R(descriptor_, Descriptor), R(data_, Data), R(length_, Length), R(system_, System),
	R(spare_, Spare),
#undef R
#define R(field, go) F(weft_datagram, field, Datagram, go)
	S(weft_datagram, Datagram), R(io, IO), R(peer, Peer), R(truncated, Truncated), R(reserved_, Reserved), R(address_, Address),
#undef R
#define R(field, go) F(lane_ring, field, Ring, go)
	S(lane_ring, Ring), R(head, Head), R(tail, Tail), R(words, Words), R(mask, Mask),
#undef R
#define R(field, go) F(lane_wheel, field, Wheel, go)
	S(lane_wheel, Wheel), R(lock, Lock), R(closed, Closed), R(earliest, Earliest), R(elapsed, Elapsed), R(pending, Pending),
	R(started, Started), R(fired, Fired), R(cancelled, Cancelled), R(occupied, Occupied), R(never, Never), R(slots, Slots),
	R(minimum, Minimum),
#undef R
#define R(field, go) F(lane_worker, field, WorkerMemory, go)
	S(lane_worker, WorkerMemory), R(turn, Turn), R(index, Index), R(ticks, Ticks), R(next, Next), R(deque, Deque),
	R(injected, Injected), R(yielded, Yielded), R(runtime, Runtime), R(runtime_id, RuntimeID), R(accepts, Accepts), R(turn_at, TurnAt),
	R(running, Running), R(io_streak_tick, IOStreakTick), R(io_streak, IOStreak), R(check_interval, CheckInterval), R(checked_at, CheckedAt),
	R(spin_ns, SpinNS), R(wake_after, WakeAfter), R(leave_at, LeaveAt), R(crossings, Crossings), R(steals, Steals), R(ops_stolen, OpsStolen),
	R(parks, Parks), R(wakes, Wakes), R(injected_count, InjectedCount), R(io_started, IOStarted), R(io_events, IOEvents),
	R(io_immediate, IOImmediate), R(thief, Thief), R(stalled, Stalled), R(park, Park), R(life, Life), R(thread, Thread),
	R(replaces_since, ReplacesSince), R(recoveries, Recoveries), R(recovery_total, RecoveryTotal),
	R(recovery_longest, RecoveryLongest), R(wheel, Wheel),
#undef R
#define R(field, go) F(lane_descriptor, field, DescriptorMemory, go)
	S(lane_descriptor, DescriptorMemory), R(slot, Slot), R(generation, Generation), R(system, System), R(hints, Hints),
	R(index, Index), R(runtime, Runtime), R(next_free, NextFree), R(id, ID),
#undef R
#define R(field, go) F(lane_runtime, field, RuntimeMemory, go)
	S(lane_runtime, RuntimeMemory), R(id, ID), R(state, State), R(worker_count, WorkerCount), R(workers, Workers),
	R(asymmetric, Asymmetric), R(cpus, CPUs), R(port, Port), R(event, Event), R(worker_max, WorkerMax), R(active, Active), R(begun, Begun),
	R(inject, Inject), R(pending, Pending), R(idle, Idle),
	R(waking, Waking), R(spinning, Spinning), R(keeper, Keeper), R(descriptors, Descriptors), R(sleep_until, SleepUntil),
	R(polled_at, PolledAt), R(released, Released), R(wakers, Wakers), R(drained, Drained), R(monitor, Monitor), R(replace_since, ReplaceSince), R(refused_at, RefusedAt),
	R(stalls, Stalls), R(stalled_longest, StalledLongest), R(replacements, Replacements), R(refused, Refused),
	R(dismissed, Dismissed), R(crossings, Crossings), R(wakes, Wakes),
	R(io_started, IOStarted), R(io_events, IOEvents), R(io_immediate, IOImmediate), R(chunks, Chunks),
#undef R
};

static size_t layout_count(void) { return sizeof layout_rows / sizeof *layout_rows; }
static const layout_row *layout_at(size_t i) { return &layout_rows[i]; }

static const int64_t layout_numbers[] = {
	LANE_WORKERS_MAX, LANE_WHEEL_LEVELS, LANE_WHEEL_SLOTS, LANE_WHEEL_TICK_SHIFT, LANE_CHUNK_DESCRIPTORS, LANE_CHUNKS_MAX,
	LANE_FREE, LANE_RUNNING, LANE_STOPPING, LANE_STOPPED,
	LANE_AWAKE, LANE_ANNOUNCED, LANE_PARKED, LANE_PARKED_IN_POLLER, LANE_NOTIFIED,
	LANE_ABSENT, LANE_STARTING, LANE_RUNS, LANE_ASKED, LANE_CACHED, LANE_DISMISSED, LANE_LEAVING,
	LANE_TIMERS, LANE_POLL, LANE_STOP, LANE_RETIRE, LANE_REPLACE, LANE_INJECT_CLOSED,
	LANE_SLOT_READY, LANE_SLOT_CLOSED, LANE_SLOT_HELD, (int64_t)LANE_SLOT_OWNER, LANE_RECEIVE, LANE_SEND,
	LANE_HINT_RECEIVE_DRAINED, LANE_HINT_HANGUP,
};
static size_t layout_numbers_count(void) { return sizeof layout_numbers / sizeof *layout_numbers; }
static int64_t layout_number(size_t i) { return layout_numbers[i]; }

typedef struct layout_error { int code; const char *name, *text; } layout_error;
static const layout_error layout_errors[] = {
#define ROW(name, number, text) {number, #name, text},
	WEFT_ERROR_TABLE(ROW)
#undef ROW
};
static size_t layout_errors_count(void) { return sizeof layout_errors / sizeof *layout_errors; }
static const layout_error *layout_error_at(size_t i) { return &layout_errors[i]; }
*/
import "C"

// Row is a field's place in C, or with an empty Field a structure's size.
type Row struct {
	Structure, Field string
	Offset           uintptr
}

// Rows lists everything that C knows, by Go's names.
func Rows() []Row {
	rows := make([]Row, C.layout_count())
	for i := range rows {
		row := C.layout_at(C.size_t(i))
		rows[i] = Row{C.GoString(row.structure), C.GoString(row.field), uintptr(row.offset)}
	}
	return rows
}

// Numbers lists C's constants, in the order of the test's table.
func Numbers() []int64 {
	numbers := make([]int64, C.layout_numbers_count())
	for i := range numbers {
		numbers[i] = int64(C.layout_number(C.size_t(i)))
	}
	return numbers
}

// Errors lists the error table of the header: name and text by code.
func Errors() map[int32][2]string {
	errors := map[int32][2]string{}
	for i := range C.layout_errors_count() {
		row := C.layout_error_at(i)
		errors[int32(row.code)] = [2]string{C.GoString(row.name), C.GoString(row.text)}
	}
	return errors
}
