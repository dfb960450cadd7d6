/* SPDX-License-Identifier: MIT
 *
 * fork.c: fork and join of plain functions. A fork is a runnable on its worker's deque, as an op is; the join takes it back if nobody stole it. Else the
 * worker helps: it runs what it has and what it can steal until the fork is done, and sleeps on the fork's state when there is nothing.
 *
 * Helping cannot end in a ring of joins that wait for each other. What stands higher on a worker's stack has begun later; and a join waits for a
 * fork that begins after the op that started it, which is the one that joins it. So along a chain of such waits everything has begun later than what waits for
 * it, and the chain ends at something that runs, or at a fork that is queued. That one's joiner looks for it in every queue, again and again, whatever he runs in
 * between and however little stack is left: it needs no more than if it had never been stolen. docs/decisions/fork.md.
 */
#include "delay.h"
#include "lane_internal.h"
#include "ring.h"
#include "steal.h"
#include "tsan.h"

/* weft_fork.state_. Who runs it writes DONE as his last access, and wakes a joiner whom he finds to sleep; the joiner says so before he sleeps. Both by
 * one atomic instruction on the word, so one of the two sees the other. Model: docs/models/fork.pml. */
enum {
    FORK_QUEUED = 0,
    FORK_AWAITED = 1, /* a joiner sleeps, or is about to */
    FORK_DONE = 2,
    FORK_KEPT = 3, /* started where there is no worker */
};

enum {
    AWAKE_ROUNDS = 256, /* looks for work, with a pause between them, before a joiner sleeps */
    NAP_NS = 50000,     /* between two looks of one that sleeps; grows to NAP_MAX_NS */
    NAP_MAX_NS = 1000000,
    SEARCH_INTERVAL = 64, /* looks for work between two searches for the fork, while there is work or hope */
};

_Static_assert(offsetof(weft_fork, run_) == 0, "a fork is a runnable");
_Static_assert(sizeof(weft_fork) == 24, "part of the interface");

static _Atomic uint32_t *state_of(weft_fork *fork) { return (_Atomic uint32_t *)&fork->state_; }

/* On a worker that is not the joiner, or that helps. After the exchange the fork may be gone; a wake needs only its address, and one that comes to something else
 * there is a wake for no reason, for which everybody who sleeps on a futex is ready. release: the joiner sees what the function has written. */
static void fork_run(weft_fork *fork) {
    fork->call(fork);
    tsan_release(fork);
    WEFT_TEST_DELAY(fork_run_called);
    if (atomic_exchange_explicit(state_of(fork), FORK_DONE, memory_order_acq_rel) == FORK_AWAITED) {
        WEFT_TEST_DELAY(fork_run_exchanged);
        lane_futex_wake(state_of(fork));
    }
}

/* The parent goes on for a while, so a lone fork is for an idle worker, too: the mark that the monitor would set says that it may be taken. While one that
 * was woken has not looked, it is as good as told. */
static LANE_COLD void fork_offer(lane_worker *worker, lane_runtime *runtime) {
    atomic_store_explicit(&worker->stalled, atomic_load_explicit(&worker->ticks, memory_order_relaxed), memory_order_relaxed);
    if (atomic_load_explicit(&runtime->waking, memory_order_relaxed) == 0) lane_wake_one(runtime);
}

void weft_fork_start(weft_fork *fork) {
    lane_worker *worker = lane_self;
    if (LANE_UNLIKELY(worker == NULL)) {
        fork->state_ = FORK_KEPT;
        return;
    }
    fork->run_ = fork_run;
    fork->state_ = FORK_QUEUED;
    tsan_release(fork);
    lane_enter(worker);
    lane_put(worker, fork);
    lane_leave(worker);
    WEFT_TEST_DELAY(fork_started);
    lane_runtime *runtime = lane_runtime_at(worker);
    if (LANE_UNLIKELY(lane_any_idle(runtime))) fork_offer(worker, runtime);
}

/* Takes a fork back that is the newest. Unlike weft_take_local it gives nobody else his turn: no op begins. */
static bool fork_take_back(lane_worker *worker, const weft_fork *fork) {
    lane_enter(worker);
    uint64_t next = atomic_load_explicit(&worker->next, memory_order_relaxed);
    bool taken = next == (uint64_t)(uintptr_t)fork;
    if (taken)
        atomic_store_explicit(&worker->next, 0, memory_order_relaxed);
    else if (next == 0)
        taken = lane_ring_take_back(&worker->deque, (uint64_t)(uintptr_t)fork);
    lane_leave(worker);
    return taken;
}

static bool is_done(weft_fork *fork) { return atomic_load_explicit(state_of(fork), memory_order_acquire) == FORK_DONE; }

/* Sleeps until it is done, or for some time. One that is taken back after that stays AWAITED, which is nobody's business any more. */
static void fork_sleep(weft_fork *fork, int64_t until) {
    uint32_t queued = FORK_QUEUED;
    WEFT_TEST_DELAY(fork_sleeps);
    if (!atomic_compare_exchange_strong_explicit(state_of(fork), &queued, FORK_AWAITED, memory_order_acq_rel, memory_order_acquire) &&
        queued != FORK_AWAITED)
        return;
    WEFT_TEST_DELAY(fork_announced);
    lane_futex_wait(state_of(fork), FORK_AWAITED, until);
}

/* True: the fork has been found in a queue, and is the caller's to call. False: it is done. */
static LANE_COLD bool fork_help(lane_worker *worker, weft_fork *fork) {
    lane_thief thief = {.place = worker->index};
    lane_fairness fair = {0};
    bool roomy = (uintptr_t)__builtin_frame_address(0) > lane_stack_half;
    if (lane_reclaim(worker, fork, false)) return true;
    for (uint32_t rounds = 0, looks = 1; !is_done(fork); looks++) {
        if ((looks % SEARCH_INTERVAL == 0 || rounds > AWAKE_ROUNDS) && lane_reclaim(worker, fork, true)) return true;
        if (roomy && lane_run_one(worker, &thief, &fair)) {
            rounds = 0;
        } else if (rounds++ < AWAKE_ROUNDS) {
            lane_pause(rounds);
        } else {
            int64_t nap = (int64_t)NAP_NS * (rounds - AWAKE_ROUNDS);
            fork_sleep(fork, lane_now() + (nap < NAP_MAX_NS ? nap : NAP_MAX_NS));
        }
    }
    return false;
}

void weft_fork_join(weft_fork *fork) {
    lane_worker *worker = lane_self;
    bool kept = atomic_load_explicit(state_of(fork), memory_order_relaxed) == FORK_KEPT;
    if (LANE_UNLIKELY(kept) || (worker != NULL && (fork_take_back(worker, fork) || fork_help(worker, fork)))) {
        fork->call(fork);
        return;
    }
    while (!is_done(fork)) fork_sleep(fork, INT64_MAX);
    tsan_acquire(fork);
}
