/* SPDX-License-Identifier: MIT
 *
 * park.c: how a worker goes to sleep, and how it is woken, without a lost wake-up and without Go.
 *
 * A sleeper announces (park word, idle bit), looks again at everything that could be for it, and sleeps. A producer publishes, then
 * looks for a sleeper, takes its idle bit, and notifies it. Both orders are sequentially consistent, so one sees the other.
 * Whoever takes the idle bit owns the right, and has the duty, to notify, and the runtime does not end before he has. One sleeper at a time is the keeper: it sleeps until the
 * next timer, and in the poller when there are descriptors. Model: docs/models/park.pml. The same protocol in Go: core/purelane.
 */
#include "delay.h"
#include "lane_internal.h"

#include "io.h"
#include "flight.h"
#include "steal.h"

enum {
    SPIN_MAX_NS = 20000, /* about four times a futex wake on the machines this was measured on */
    SPIN_MIN_NS = 1000,
};

static inline uint64_t lane_bit(const lane_worker *worker) { return UINT64_C(1) << (worker->index & 63); }

/* Whoever ends the sleep of a runtime sees to it that somebody watches its workers. The relaxed load may miss a monitor that falls asleep just
 * now: it looks at the idle bits after its announcement (lane_watch), and ours is gone by then. */
static inline void lane_wake_monitor(lane_runtime *runtime) {
    if (LANE_UNLIKELY(atomic_load_explicit(&runtime->monitor, memory_order_relaxed) == LANE_MONITOR_ASLEEP)) {
        uint32_t asleep = LANE_MONITOR_ASLEEP;
        if (atomic_compare_exchange_strong_explicit(&runtime->monitor, &asleep, LANE_MONITOR_AWAKE, memory_order_seq_cst,
                                                    memory_order_seq_cst)) {
            WEFT_TEST_DELAY(lane_wake_monitor_claimed);
            lane_futex_wake(&runtime->monitor);
        }
    }
}

/* Takes an idle worker out of the set, a sleeper that is not the keeper before the keeper. */
static lane_worker *lane_claim(lane_runtime *runtime) {
    uint32_t keeper = atomic_load_explicit(&runtime->keeper, memory_order_relaxed);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t word = 0; word * 64 < lane_active(runtime); word++) {
            uint64_t idle = atomic_load_explicit(&runtime->idle[word], memory_order_seq_cst);
            if (pass == 0 && keeper != 0 && (keeper - 1) / 64 == word) idle &= ~(UINT64_C(1) << ((keeper - 1) & 63));
            WEFT_TEST_DELAY(lane_claim_looked);
            while (idle != 0) {
                uint64_t bit = idle & -idle;
                idle &= idle - 1;
                if (atomic_fetch_and_explicit(&runtime->idle[word], ~bit, memory_order_seq_cst) & bit)
                    return lane_worker_at(runtime, word * 64 + (uint32_t)__builtin_ctzll(bit));
            }
        }
    return NULL;
}

/* Around the taking of an idle bit and what is told its worker. The end of a runtime waits until nobody is in between (core's Destroy), since what the poller is
 * woken by would be closed, and its number be something else's. seq_cst: whoever has an idle bit was counted before; and the worker whose it is finds
 * it taken, and ends later. */
static void lane_waker_begins(lane_runtime *runtime) { atomic_fetch_add_explicit(&runtime->wakers, 1, memory_order_seq_cst); }

static void lane_waker_ends(lane_runtime *runtime) { atomic_fetch_sub_explicit(&runtime->wakers, 1, memory_order_seq_cst); }

/* Tells a worker whose idle bit the caller has taken. The exchange is seq_cst and pairs with the compare-and-swap in lane_park: either
 * that one fails, and the worker does not sleep, or this one returns how it sleeps. acq_rel would do; it is not on a hot path. */
static void lane_notify(lane_runtime *runtime, lane_worker *worker) {
    uint32_t how = atomic_exchange_explicit(&worker->park, LANE_NOTIFIED, memory_order_seq_cst);
    WEFT_TEST_DELAY(lane_notify_exchanged);
    if (how == LANE_PARKED) {
        lane_futex_wake(&worker->park);
        LANE_COUNT(runtime, wakes, 1);
    } else if (how == LANE_PARKED_IN_POLLER) {
        lane_poll_wake(runtime);
        LANE_COUNT(runtime, wakes, 1);
    }
}

/* Wakes one idle worker, unless one that was woken has not looked yet. waking is set before the claim and cleared by the woken worker before
 * it looks (lane_unpark): a producer that sees it set published before that look. When there is nobody to claim after all, a producer may have
 * relied on us while waking was set, and a worker may have gone to sleep: look again. */
void lane_wake_one(lane_runtime *runtime) {
    while (lane_any_idle(runtime)) {
        uint32_t none = 0;
        if (!atomic_compare_exchange_strong_explicit(&runtime->waking, &none, 1, memory_order_seq_cst, memory_order_seq_cst)) return;
        WEFT_TEST_DELAY(lane_wake_one_waking);
        lane_waker_begins(runtime);
        lane_worker *worker = lane_claim(runtime);
        if (worker != NULL) {
            lane_notify(runtime, worker);
            lane_wake_monitor(runtime);
        }
        lane_waker_ends(runtime);
        if (worker != NULL) return;
        WEFT_TEST_DELAY(lane_wake_one_nobody);
        atomic_store_explicit(&runtime->waking, 0, memory_order_seq_cst);
    }
}

void lane_wake(lane_runtime *runtime, lane_worker *worker) {
    uint64_t bit = lane_bit(worker);
    lane_waker_begins(runtime);
    if (atomic_fetch_and_explicit(&runtime->idle[worker->index / 64], ~bit, memory_order_seq_cst) & bit) lane_notify(runtime, worker);
    lane_waker_ends(runtime);
}

static int64_t lane_earliest(const lane_runtime *runtime) {
    int64_t earliest = INT64_MAX;
    for (uint32_t i = 0; i < lane_active(runtime); i++) {
        int64_t at = atomic_load_explicit(&lane_worker_at(runtime, i)->wheel.earliest, memory_order_seq_cst);
        if (at < earliest) earliest = at;
    }
    return earliest;
}

/* What a worker that has nothing itself could still do. */
static bool lane_injected(const lane_runtime *runtime) {
    return atomic_load_explicit(&runtime->inject, memory_order_seq_cst) > LANE_INJECT_CLOSED;
}

/* Whether a worker that retires has given us something. seq_cst: giveAway (core/takeover.go) puts it there first and looks for our idle bit second. */
static bool lane_was_given(const lane_worker *worker) {
    return atomic_load_explicit(&worker->injected.tail, memory_order_seq_cst) !=
           atomic_load_explicit(&worker->injected.head, memory_order_relaxed);
}

static bool lane_stopping(const lane_runtime *runtime) {
    return atomic_load_explicit(&runtime->state, memory_order_seq_cst) != LANE_RUNNING;
}

/* Whether the monitor wants the worker to leave. seq_cst: it asks first and looks for our idle bit second (watch_ask_to_leave). */
static bool lane_asked(const lane_worker *worker) { return atomic_load_explicit(&worker->life, memory_order_seq_cst) == LANE_ASKED; }

/* Looks for work without sleeping, for as long as recent sleeps turned out to be short. At most half of the workers do so at once. */
static bool lane_spin(lane_worker *worker, lane_runtime *runtime) {
    if (worker->spin_ns == 0 || runtime->cpus < 2) return false;
    uint32_t limit = (runtime->worker_count + 1) / 2;
    if (atomic_fetch_add_explicit(&runtime->spinning, 1, memory_order_seq_cst) >= limit) {
        atomic_fetch_sub_explicit(&runtime->spinning, 1, memory_order_seq_cst);
        return false;
    }
    int64_t until = lane_now() + worker->spin_ns;
    bool found = false;
    do {
        for (int i = 0; i < 16 && !found; i++) {
            lane_relax();
            found = atomic_load_explicit(&runtime->inject, memory_order_relaxed) > LANE_INJECT_CLOSED;
        }
        found = found || lane_backlog_elsewhere(worker, runtime) || lane_stopping(runtime);
    } while (!found && lane_now() < until);
    /* seq_cst: a producer that saw spinning != 0 published before the second look that lane_park takes after this. */
    atomic_fetch_sub_explicit(&runtime->spinning, 1, memory_order_seq_cst);
    if (!found) worker->spin_ns = worker->spin_ns / 2 < SPIN_MIN_NS ? 0 : worker->spin_ns / 2;
    return found;
}

/* Back among the living. If a waker has taken the idle bit, waking is ours to clear, before we look for work; to clear another's would only cost
 * needless wakes. */
static void lane_unpark(lane_worker *worker, lane_runtime *runtime) {
    uint64_t bit = lane_bit(worker);
    uint64_t idle = atomic_fetch_and_explicit(&runtime->idle[worker->index / 64], ~bit, memory_order_seq_cst);
    WEFT_TEST_DELAY(lane_unpark_counted_out);
    atomic_store_explicit(&worker->park, LANE_AWAKE, memory_order_relaxed);
    WEFT_TEST_DELAY(lane_unpark_awake);
    if ((idle & bit) == 0)
        atomic_store_explicit(&runtime->waking, 0, memory_order_seq_cst);
    else
        lane_wake_monitor(runtime);
}

/* As for the first descriptor (core/descriptor.go, wakeKeeper): the count is raised before the look at the keeper. */
void lane_keep_polling(lane_runtime *runtime) {
    atomic_fetch_add_explicit(&runtime->descriptors, 1, memory_order_seq_cst);
    uint32_t keeper = atomic_load_explicit(&runtime->keeper, memory_order_seq_cst);
    if (keeper != 0) lane_wake(runtime, lane_worker_at(runtime, keeper - 1));
}

/* Sleeps as the keeper. Returns LANE_TIMERS when a timer is due. */
static uint32_t lane_keep(lane_worker *worker, lane_runtime *runtime) {
    int64_t until;
    int64_t earliest = lane_earliest(runtime);
    WEFT_TEST_DELAY(lane_keep_begins);
    /* Publish until when we sleep, look again: pairs with weft_schedule_at, which publishes wheel.earliest and then reads sleep_until. */
    do {
        until = earliest;
        atomic_store_explicit(&runtime->sleep_until, until, memory_order_seq_cst);
        WEFT_TEST_DELAY(lane_keep_published);
        earliest = lane_earliest(runtime);
    } while (earliest < until);
    WEFT_TEST_DELAY(lane_keep_looked);
    uint32_t reason = 0;
    uint32_t announced = LANE_ANNOUNCED;
    bool polls = atomic_load_explicit(&runtime->descriptors, memory_order_seq_cst) != 0;
    WEFT_TEST_DELAY(lane_keep_polls);
    if (until != INT64_MAX && until <= lane_now()) {
        reason = LANE_TIMERS;
    } else if (atomic_compare_exchange_strong_explicit(&worker->park, &announced, polls ? LANE_PARKED_IN_POLLER : LANE_PARKED,
                                                       memory_order_seq_cst, memory_order_seq_cst)) {
        lane_count(&worker->parks, 1);
        WEFT_TEST_DELAY(lane_keep_parked);
        if (polls) {
            int64_t timeout = -1;
            if (until != INT64_MAX) {
                timeout = until - lane_now();
                if (timeout < 0) timeout = 0;
            }
            lane_poll(runtime, worker, timeout);
        } else {
            lane_futex_wait(&worker->park, LANE_PARKED, until);
        }
        /* The look before the next sleep would find it as well. */
        if (until != INT64_MAX && lane_length(worker) == 0 && until <= lane_now()) reason = LANE_TIMERS;
    }
    WEFT_TEST_DELAY(lane_keep_woken);
    atomic_store_explicit(&runtime->sleep_until, INT64_MIN, memory_order_seq_cst);
    WEFT_TEST_DELAY(lane_keep_ends);
    atomic_store_explicit(&runtime->keeper, 0, memory_order_seq_cst);
    return reason;
}

uint32_t lane_park(lane_worker *worker, lane_thief *thief) {
    lane_runtime *runtime = lane_runtime_at(worker);
    lane_stolen stolen = lane_steal(worker, thief);
    if (stolen == LANE_LOOT) {
        thief->waits = 0;
        return 0;
    }
    bool stopping = lane_stopping(runtime);
    bool asked = lane_asked(worker);
    if (stolen == LANE_LATER && (stopping || !asked)) {
        lane_pause(thief->waits++);
        return 0;
    }
    thief->waits = 0;
    if (stopping) return flight_collect(runtime, false) != 0 ? 0 : LANE_STOP; /* nobody sleeps in the poller any more */
    if (asked) return LANE_RETIRE;
    if (lane_spin(worker, runtime)) return 0;
    WEFT_TEST_DELAY(lane_park_begins);

    atomic_store_explicit(&worker->park, LANE_ANNOUNCED, memory_order_relaxed);
    /* The announcement. seq_cst, against lane_inject's exchange: see there. The park word is visible to whoever sees the bit. */
    atomic_fetch_or_explicit(&runtime->idle[worker->index / 64], lane_bit(worker), memory_order_seq_cst);
    WEFT_TEST_DELAY(lane_park_announced);
    uint32_t reason = 0;
    if (!lane_injected(runtime) && !lane_was_given(worker) && !lane_stopping(runtime) && !lane_asked(worker) &&
        !lane_backlog_elsewhere(worker, runtime)) {
        WEFT_TEST_DELAY(lane_park_looked);
        int64_t slept_at = lane_now();
        uint32_t nobody = 0;
        if (atomic_compare_exchange_strong_explicit(&runtime->keeper, &nobody, worker->index + 1, memory_order_seq_cst,
                                                    memory_order_seq_cst)) {
            reason = lane_keep(worker, runtime);
        } else {
            uint32_t announced = LANE_ANNOUNCED;
            if (atomic_compare_exchange_strong_explicit(&worker->park, &announced, LANE_PARKED, memory_order_seq_cst,
                                                        memory_order_seq_cst)) {
                lane_count(&worker->parks, 1);
                WEFT_TEST_DELAY(lane_park_parked);
                lane_futex_wait(&worker->park, LANE_PARKED, INT64_MAX); /* when it ends for no reason, we look once too often */
            }
        }
        /* A sleep that a spin would have bridged makes the next one spin. Sleeps that sockets or timers ended say nothing about that. */
        if (atomic_load_explicit(&worker->park, memory_order_relaxed) == LANE_NOTIFIED &&
            lane_now() - slept_at < 2 * SPIN_MAX_NS)
            worker->spin_ns = SPIN_MAX_NS;
    }
    WEFT_TEST_DELAY(lane_park_ends);
    lane_unpark(worker, runtime);
    return reason;
}
