/* SPDX-License-Identifier: MIT
 *
 * lane.c: the owner's end of a worker's queue, the loop that runs ops, and injection from other threads.
 *
 * The queue is a growing ring that the owner uses as a stack at its newest end and thieves as a queue at its oldest
 * end (Chase and Lev, "Dynamic circular work-stealing deque", 2005, gives the shape), and a second ring, first in first out, for
 * those who yielded. Both are guarded by the queue section of lane_internal.h instead of by Chase and Lev's fence and
 * compare-and-swap: docs/decisions/queue.md says why and what it costs. Owner: the worker's thread. Thieves: steal.c, core/queue.go.
 */
#include "delay.h"
#include "lane_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "io.h"
#include "ring.h"
#include "steal.h"
#include "tsan.h"

enum {
    FAIR_INTERVAL = 61,         /* ops between two looks at the injection queue and at the oldest ends; the prime Go uses */
    CHECK_INTERVAL_MAX = 61 * 64,
    CHECK_SHORT_NS = 10000,     /* looks at the clock are aimed at 10 to 40 us apart; with long ops that is every op */
    CHECK_LONG_NS = 40000,
    POLL_INTERVAL_NS = 50000,   /* a busy worker lets the poller have a turn this often */
    INJECTED_WAKE = 16,         /* this many ops from outside at once are worth a second worker */
    WAKE_GAP_OPS = 32,          /* ops between two wakes by the same producer */
    LEAVE_GAP_NS = 1000000,     /* between two tries of a busy worker to leave: a try crosses, and is futile while those who stay are held up */
    DRAIN_BATCH = 64,           /* ops moved in one queue section: it has to stay short, since thieves wait for it */
};

LANE_LOCAL_IS(lane_worker *, lane_self);
LANE_LOCAL_IS(uint64_t, lane_watched);
LANE_LOCAL_IS(uintptr_t, lane_stack_half);
lane_runtime lane_table[LANE_RUNTIMES_MAX];
_Atomic uint32_t lane_forked;

LANE_COLD void lane_enter_contended(lane_worker *worker) {
    lane_leave(worker); /* else the thief waits for us, and gives up: no harm, but no steal either */
    /* No op holds the worker up while it waits, perhaps asleep, for a thief that has lost its CPU. */
    uint64_t running = atomic_load_explicit(&worker->running, memory_order_relaxed);
    atomic_store_explicit(&worker->running, 0, memory_order_relaxed);
    for (uint32_t spins = 0; atomic_load_explicit(&worker->thief, memory_order_acquire) != 0; spins++) lane_pause(spins);
    atomic_store_explicit(&worker->running, running, memory_order_relaxed);
    lane_enter(worker);
}

/* Doubles a ring. Inside the queue section, so no thief reads the old words and they can go at once. */
LANE_COLD void lane_grow(lane_ring *ring) {
    uint64_t *old = (uint64_t *)(uintptr_t)ring->words;
    int64_t size = (ring->mask + 1) * 2;
    uint64_t *grown = lane_allocate_words((size_t)size);
    if (grown == NULL) {
        fputs("weft: out of memory while a worker's queue grows\n", stderr);
        abort();
    }
    int64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    for (int64_t i = atomic_load_explicit(&ring->head, memory_order_relaxed); i < tail; i++)
        grown[i & (size - 1)] = old[i & ring->mask];
    lane_free(old);
    tsan_release(grown);
    ring->words = (uint64_t)(uintptr_t)grown;
    ring->mask = size - 1;
}

/* A function of its own, so that the run loop has the registers for those that need no ring. */
static __attribute__((noinline)) lane_runnable *lane_take_newest(lane_worker *worker) { return lane_ring_take_newest(&worker->deque); }

static inline lane_runnable *lane_take(lane_worker *worker) {
    uint64_t next = atomic_load_explicit(&worker->next, memory_order_relaxed);
    if (LANE_LIKELY(next != 0)) {
        WEFT_TEST_DELAY(lane_takes_next);
        atomic_store_explicit(&worker->next, 0, memory_order_relaxed);
        return (lane_runnable *)(uintptr_t)next;
    }
    if (LANE_UNLIKELY(lane_ring_length(&worker->deque) != 0)) return lane_take_newest(worker); /* likely enough, but a call already */
    lane_runnable *runnable = lane_ring_take_oldest(&worker->injected);
    if (runnable == NULL) runnable = lane_ring_take_oldest(&worker->yielded);
    return runnable;
}

void lane_push_quiet(lane_worker *worker, void *runnable) {
    lane_enter(worker);
    lane_put(worker, runnable);
    lane_leave(worker);
}

void lane_push_behind_quiet(lane_worker *worker, void *runnable) {
    lane_enter(worker);
    lane_ring_put(&worker->yielded, (uint64_t)(uintptr_t)runnable);
    lane_leave(worker);
}

/* Wakes a second worker for a deque that held an op already. One op that its producer runs next is no reason to wake anybody, and should the
 * producer block, the monitor sees it. The look at the sleepers needs no barrier: a wake that is missed costs parallelism until the next push or
 * the monitor's next look, never an op. */
static inline int lane_offer(lane_worker *worker) {
    lane_runtime *runtime = lane_runtime_at(worker);
    uint64_t ticks = atomic_load_explicit(&worker->ticks, memory_order_relaxed);
    if (LANE_UNLIKELY(lane_any_idle(runtime)) && ticks >= worker->wake_after) {
        worker->wake_after = ticks + WAKE_GAP_OPS;
        lane_wake_one(runtime);
    }
    return WEFT_OK;
}

/* The rarer halves of the pushes below. They are functions of their own, called last, so that the common half saves no registers. */
static __attribute__((noinline)) int lane_push_older(lane_worker *worker, uint64_t older) {
    lane_ring_put(&worker->deque, older);
    lane_leave(worker);
    WEFT_TEST_DELAY(lane_push_older_published);
    return lane_offer(worker);
}

static LANE_COLD int lane_push_contended(lane_worker *worker, void *runnable) {
    lane_enter_contended(worker);
    bool held = lane_put(worker, runnable);
    lane_leave(worker);
    WEFT_TEST_DELAY(lane_push_contended_published);
    return held ? lane_offer(worker) : WEFT_OK;
}

static LANE_COLD int lane_push_behind_slow(lane_worker *worker, void *runnable) {
    lane_push_behind_quiet(worker, runnable);
    return WEFT_OK;
}

/* Queues on the caller's own worker as the newest. WEFT_OK. */
static inline __attribute__((always_inline)) int lane_push(lane_worker *worker, void *runnable) {
    if (LANE_UNLIKELY(!lane_try_enter(worker))) return lane_push_contended(worker, runnable);
    uint64_t older = atomic_load_explicit(&worker->next, memory_order_relaxed);
    atomic_store_explicit(&worker->next, (uint64_t)(uintptr_t)runnable, memory_order_relaxed);
    if (older != 0) return lane_push_older(worker, older);
    lane_leave(worker);
    WEFT_TEST_DELAY(lane_push_published);
    return WEFT_OK;
}

/* Queues on the caller's own worker behind everything. WEFT_OK. */
static inline __attribute__((always_inline)) int lane_push_behind(lane_worker *worker, void *runnable) {
    if (LANE_UNLIKELY(!lane_try_enter(worker))) return lane_push_behind_slow(worker, runnable);
    if (LANE_UNLIKELY(!lane_ring_try_put(&worker->yielded, (uint64_t)(uintptr_t)runnable)))
        return lane_push_behind_slow(worker, runnable);
    lane_leave(worker);
    WEFT_TEST_DELAY(lane_push_behind_published);
    return WEFT_OK;
}

/* Injects a chain; first is the newest and runs last. A Treiber stack that is only ever taken whole, so it has no ABA problem.
 * The exchange on inject is seq_cst: release publishes the ops to lane_drain; and, as a full barrier, it stands between the publication
 * and the look at the sleepers, against lane_park's announcement and second look. Model: docs/models/park.pml. */
int lane_inject(lane_runtime *runtime, weft_op *first, weft_op *last, bool wake) {
    uint64_t head = atomic_load_explicit(&runtime->inject, memory_order_relaxed);
    do {
        if (head == LANE_INJECT_CLOSED) return WEFT_ESTOPPED;
        last->next_ = (weft_op *)(uintptr_t)head;
    } while (!atomic_compare_exchange_weak_explicit(&runtime->inject, &head, (uint64_t)(uintptr_t)first, memory_order_seq_cst,
                                                    memory_order_relaxed));
    WEFT_TEST_DELAY(lane_injected);
    /* A list that was not empty has been announced already by whoever began it. */
    if (wake && head == 0 && atomic_load_explicit(&runtime->spinning, memory_order_seq_cst) == 0) lane_wake_one(runtime);
    return WEFT_OK;
}

/* Moves everything injected to the worker's queue of such, where thieves see it. The stack is newest first, so it is turned round. */
static bool lane_drain(lane_worker *worker, lane_runtime *runtime) {
    uint64_t head = atomic_load_explicit(&runtime->inject, memory_order_relaxed);
    do {
        if (head <= LANE_INJECT_CLOSED) return false;
    } while (!atomic_compare_exchange_weak_explicit(&runtime->inject, &head, 0, memory_order_acquire, memory_order_relaxed));
    WEFT_TEST_DELAY(lane_drain_taken);
    weft_op *oldest = NULL;
    uint64_t count = 0;
    for (weft_op *op = (weft_op *)(uintptr_t)head; op != NULL; count++) {
        weft_op *older = op->next_;
        op->next_ = oldest;
        oldest = op;
        op = older;
    }
    for (weft_op *op = oldest; op != NULL;) {
        lane_enter(worker);
        for (int i = 0; i < DRAIN_BATCH && op != NULL; i++) {
            weft_op *newer = op->next_;
            lane_ring_put(&worker->injected, (uint64_t)(uintptr_t)op);
            op = newer;
        }
        lane_leave(worker);
    }
    lane_count(&worker->injected_count, count);
    if (count >= INJECTED_WAKE && lane_any_idle(runtime)) lane_wake_one(runtime);
    return true;
}

static bool lane_timer_due(const lane_runtime *runtime, int64_t now) {
    for (uint32_t i = 0; i < lane_active(runtime); i++)
        if (atomic_load_explicit(&lane_worker_at(runtime, i)->wheel.earliest, memory_order_relaxed) <= now) return true;
    return false;
}

/* A busy worker's turn at the poller. The exchange lets one of several busy workers through; relaxed, it guards nothing else. */
static void lane_poll_in_turn(lane_worker *worker, lane_runtime *runtime, int64_t now) {
    int64_t polled_at = atomic_load_explicit(&runtime->polled_at, memory_order_relaxed);
    if (atomic_load_explicit(&runtime->descriptors, memory_order_relaxed) != 0 && now - polled_at > POLL_INTERVAL_NS &&
        atomic_compare_exchange_strong_explicit(&runtime->polled_at, &polled_at, now, memory_order_relaxed, memory_order_relaxed))
        lane_poll(runtime, worker, 0);
}

/* The look at the clock that a busy worker takes every check_interval ops. Returns a reason to enter Go, or 0. */
static LANE_COLD uint32_t lane_check(lane_worker *worker, lane_runtime *runtime) {
    int64_t now = lane_now();
    int64_t passed = now - worker->checked_at;
    worker->checked_at = now;
    if (passed < CHECK_SHORT_NS && worker->check_interval < CHECK_INTERVAL_MAX)
        worker->check_interval *= 2;
    else if (passed > CHECK_LONG_NS && worker->check_interval > 1)
        worker->check_interval /= 2;
    if (lane_length(worker) >= 2 && lane_any_idle(runtime)) lane_wake_one(runtime);
    if (atomic_load_explicit(&worker->life, memory_order_relaxed) == LANE_ASKED && now >= worker->leave_at) {
        worker->leave_at = now + LEAVE_GAP_NS;
        return LANE_RETIRE;
    }
    /* A keeper who sleeps minds both himself. */
    if (atomic_load_explicit(&runtime->keeper, memory_order_relaxed) != 0) return 0;
    if (lane_timer_due(runtime, now)) return LANE_TIMERS;
    lane_poll_in_turn(worker, runtime, now);
    return 0;
}

static uint32_t lane_turn_interval(const lane_worker *worker) {
    return worker->check_interval < FAIR_INTERVAL ? worker->check_interval : FAIR_INTERVAL;
}

/* Whose turn it is, which is not always the newest's: see lane_fairness. ticks is the number of the op to be chosen. NULL: there is nothing, or a reason to enter Go;
 * where reason is NULL, nobody can, and a due timer waits for the monitor. */
static LANE_COLD lane_runnable *lane_turn(lane_worker *worker, lane_runtime *runtime, uint64_t ticks, lane_fairness *fair,
                                          uint32_t *reason) {
    if (fair->injected == 0) {
        lane_drain(worker, runtime);
        uint32_t interval = lane_turn_interval(worker);
        if (fair->until_check > interval) {
            fair->until_check -= interval;
        } else {
            uint32_t found = lane_check(worker, runtime);
            if (found != 0 && reason != NULL) {
                *reason = found;
                return NULL;
            }
            fair->until_check = worker->check_interval;
        }
        int64_t injected = lane_ring_length(&worker->injected);
        fair->injected = 1 + (injected < interval ? (uint32_t)injected : interval);
    }
    lane_runnable *runnable = NULL;
    lane_enter(worker);
    if (fair->injected > 1) runnable = lane_ring_take_oldest(&worker->injected);
    if (runnable != NULL) {
        fair->injected--;
        worker->turn_at = ticks + 1;
    } else {
        int64_t length = lane_ring_length(&worker->deque);
        fair->yielded = !fair->yielded;
        if (fair->yielded)
            runnable = lane_ring_take_oldest(&worker->yielded);
        else if (length >= fair->length)
            runnable = lane_ring_take_oldest(&worker->deque);
        if (runnable == NULL) runnable = lane_take(worker);
        fair->length = length;
        fair->injected = 0;
        worker->turn_at = ticks + lane_turn_interval(worker);
    }
    lane_leave(worker);
    return runnable;
}

/* Runs what has been taken, as the op of this number. */
static inline __attribute__((always_inline)) void lane_begin(lane_worker *worker, lane_runnable *runnable, uint64_t ticks) {
    atomic_store_explicit(&worker->running, (uint64_t)(uintptr_t)runnable->run, memory_order_relaxed);
    atomic_store_explicit(&worker->ticks, ticks, memory_order_relaxed);
    WEFT_TEST_DELAY(lane_run_taken);
    tsan_acquire(runnable);
    runnable->run(runnable);
}

bool lane_run_one(lane_worker *worker, lane_thief *thief, lane_fairness *fair) {
    lane_runtime *runtime = lane_runtime_at(worker);
    uint64_t ticks = atomic_load_explicit(&worker->ticks, memory_order_relaxed) + 1;
    lane_runnable *runnable;
    if (ticks < worker->turn_at) {
        lane_enter(worker);
        runnable = lane_take(worker);
        lane_leave(worker);
    } else {
        runnable = lane_turn(worker, runtime, ticks, fair, NULL);
    }
    if (runnable == NULL) return lane_drain(worker, runtime) || lane_steal(worker, thief) == LANE_LOOT;
    uint64_t outer = atomic_load_explicit(&worker->running, memory_order_relaxed);
    lane_begin(worker, runnable, ticks);
    atomic_store_explicit(&worker->running, outer, memory_order_relaxed);
    return true;
}

uint32_t lane_run(lane_worker *worker) {
    lane_runtime *runtime = lane_runtime_at(worker);
    uint32_t reason = 0;
    lane_thief thief = {.place = worker->index};
    lane_fairness fair = {.until_check = worker->check_interval};
    worker->turn_at = atomic_load_explicit(&worker->ticks, memory_order_relaxed) + lane_turn_interval(worker);
    for (;;) {
        uint64_t ticks = atomic_load_explicit(&worker->ticks, memory_order_relaxed) + 1;
        lane_runnable *runnable;
        if (LANE_LIKELY(ticks < worker->turn_at)) {
            lane_enter(worker);
            runnable = lane_take(worker);
            lane_leave(worker);
        } else {
            runnable = lane_turn(worker, runtime, ticks, &fair, &reason);
            if (reason != 0) break;
        }
        if (LANE_LIKELY(runnable != NULL)) {
            lane_begin(worker, runnable, ticks);
            continue;
        }
        atomic_store_explicit(&worker->running, 0, memory_order_relaxed);
        if (lane_drain(worker, runtime)) continue;
        reason = lane_park(worker, &thief);
        if (reason != 0) break;
        fair = (lane_fairness){.until_check = worker->check_interval};
        worker->turn_at = ticks + lane_turn_interval(worker);
    }
    atomic_store_explicit(&worker->running, 0, memory_order_relaxed);
    return reason;
}

/* The public calls. */

static LANE_COLD int lane_why_not(const lane_worker *worker, weft_runtime handle) {
    return worker == NULL || worker->runtime_id != handle.id ? WEFT_ENOTWORKER : WEFT_ESTOPPED;
}

int weft_schedule_local(weft_runtime handle, void *runnable, int behind) {
    lane_worker *worker = lane_self;
    if (LANE_UNLIKELY(worker == NULL || atomic_load_explicit(&worker->accepts, memory_order_relaxed) != handle.id))
        return lane_why_not(worker, handle);
    tsan_release(runnable);
    return behind ? lane_push_behind(worker, runnable) : lane_push(worker, runnable);
}

int weft_resume_local(weft_runtime handle, void *runnable) {
    lane_worker *worker = lane_self;
    if (LANE_UNLIKELY(worker == NULL || worker->runtime_id != handle.id)) return WEFT_ENOTWORKER;
    tsan_release(runnable);
    return lane_push(worker, runnable);
}

int weft_take_local(weft_runtime handle, const void *runnable) {
    lane_worker *worker = lane_self;
    if (LANE_UNLIKELY(worker == NULL || worker->runtime_id != handle.id)) return 0;
    uint64_t ticks = atomic_load_explicit(&worker->ticks, memory_order_relaxed) + 1;
    if (LANE_UNLIKELY(ticks >= worker->turn_at)) return 0; /* somebody else's turn: the lane's to give */
    bool taken = false;
    if (LANE_LIKELY(lane_try_enter(worker))) { /* else a thief is at work, and may take it */
        uint64_t next = atomic_load_explicit(&worker->next, memory_order_relaxed);
        taken = next == (uint64_t)(uintptr_t)runnable;
        if (taken)
            atomic_store_explicit(&worker->next, 0, memory_order_relaxed);
        else if (next == 0)
            taken = lane_ring_take_back(&worker->deque, (uint64_t)(uintptr_t)runnable);
    }
    lane_leave(worker);
    if (taken) {
        atomic_store_explicit(&worker->ticks, ticks, memory_order_relaxed); /* it is an op that begins */
        tsan_acquire(runnable);
    }
    return taken;
}

int lane_complete(lane_runtime *runtime, weft_op *op) {
    lane_worker *worker = lane_self;
    if (worker != NULL && lane_runtime_at(worker) == runtime) return lane_push(worker, op);
    return lane_inject(runtime, op, op, true);
}

/* For an accepted op that its canceller holds: the drain of a stopping runtime may end before the canceller gets here, and the op must run
 * all the same. */
void lane_finish(lane_runtime *runtime, weft_op *op) {
    WEFT_TEST_DELAY(lane_finish);
    if (lane_complete(runtime, op) == WEFT_OK) return;
    tsan_acquire(op);
    op->run(op);
}

/* Finds the runtime of a handle for a thread that is not its worker, and says why not. */
static int lane_find(weft_runtime handle, lane_runtime **found) {
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    *found = lane_runtime_of(handle.id);
    return *found == NULL ? WEFT_EBADHANDLE : WEFT_OK;
}

static int lane_start(weft_runtime handle, weft_op *op, int behind) {
    if (op == NULL || op->run == NULL) return WEFT_EINVAL;
    int rc = weft_schedule_local(handle, op, behind);
    if (rc != WEFT_ENOTWORKER) return rc;
    lane_runtime *runtime;
    rc = lane_find(handle, &runtime);
    if (rc != WEFT_OK) return rc;
    /* An op that passes this test while the runtime begins to stop is still accepted: the workers drain until lane_inject is closed. */
    if (atomic_load_explicit(&runtime->state, memory_order_relaxed) != LANE_RUNNING) return WEFT_ESTOPPED;
    WEFT_TEST_DELAY(lane_start_accepted);
    tsan_release(op);
    return lane_inject(runtime, op, op, true);
}

int weft_schedule(weft_runtime handle, weft_op *op) { return lane_start(handle, op, 0); }

int weft_yield(weft_runtime handle, weft_op *op) { return lane_start(handle, op, 1); }

int weft_resume(weft_runtime handle, weft_op *op) {
    if (op == NULL || op->run == NULL) return WEFT_EINVAL;
    lane_runtime *runtime;
    int rc = lane_find(handle, &runtime);
    if (rc != WEFT_OK) return rc;
    tsan_release(op);
    return lane_complete(runtime, op);
}

int weft_schedule_batch(weft_runtime handle, weft_op *const *ops, uint64_t count) {
    lane_runtime *runtime;
    int rc = lane_find(handle, &runtime);
    if (rc != WEFT_OK) return rc;
    if (atomic_load_explicit(&runtime->state, memory_order_relaxed) != LANE_RUNNING) return WEFT_ESTOPPED;
    if (count == 0) return WEFT_OK;
    if (ops == NULL) return WEFT_EINVAL;
    for (uint64_t i = 0; i < count; i++)
        if (ops[i] == NULL || ops[i]->run == NULL) return WEFT_EINVAL;
    WEFT_TEST_DELAY(lane_batch_accepted);
    for (uint64_t i = 0; i < count; i++) tsan_release(ops[i]);
    lane_worker *worker = lane_self;
    if (worker != NULL && lane_runtime_at(worker) == runtime) {
        for (uint64_t i = count; i-- > 1;) lane_push_quiet(worker, ops[i]);
        return lane_push(worker, ops[0]);
    }
    for (uint64_t i = count; i-- > 1;) ops[i]->next_ = ops[i - 1];
    return lane_inject(runtime, ops[count - 1], ops[0], true);
}
