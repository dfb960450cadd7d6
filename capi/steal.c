/* SPDX-License-Identifier: MIT
 *
 * steal.c: the thief's end of the queue section, in C, so that a worker that was woken for another's backlog begins on it without a visit to Go.
 * core/queue.go has the protocol, and the thieves in Go; docs/decisions/queue.md tells what the visit cost. Model: docs/models/queue.pml.
 */
#include "steal.h"

#include "ring.h"

enum {
    LOOT_MAX = 512,    /* bounds a steal. Half of a longer queue takes another one, by which time others may have come for it */
    SEIZE_SPINS = 256, /* bounds the wait for an owner inside its section, which takes nanoseconds: one that lasts longer has lost its CPU */
    STEAL_GAP_NS = 10000, /* between two steals of one thief. Each holds the owner up for the microseconds that the barrier takes */
};

/* Enters another worker's queue section. Thieves exclude each other by the compare-and-swap; it, the barrier and the load of turn pair with
 * lane_try_enter: without the barrier both could be inside, and a runnable would run twice. */
static bool lane_seize(lane_worker *victim) {
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong_explicit(&victim->thief, &none, 1, memory_order_seq_cst, memory_order_relaxed)) return false;
    lane_barrier();
    for (uint32_t spins = 0; atomic_load_explicit(&victim->turn, memory_order_acquire) != 0; spins++) {
        if (spins == SEIZE_SPINS) {
            atomic_store_explicit(&victim->thief, 0, memory_order_release);
            return false;
        }
        lane_relax();
    }
    return true;
}

/* Leaves it. release pairs with the owner's load of thief, which then sees what was taken. */
static void lane_release(lane_worker *victim) { atomic_store_explicit(&victim->thief, 0, memory_order_release); }

/* Moves the older half of the first ring that holds something, or else the newest runnable, into loot, oldest first. */
static uint32_t lane_rob(lane_worker *victim, void *loot[LOOT_MAX]) {
    lane_ring *const rings[] = {&victim->deque, &victim->injected, &victim->yielded};
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        int64_t half = (lane_ring_length(rings[i]) + 1) / 2;
        uint32_t count = half < LOOT_MAX ? (uint32_t)half : LOOT_MAX;
        for (uint32_t taken = 0; taken < count; taken++) loot[taken] = lane_ring_take_oldest(rings[i]);
        if (count != 0) return count;
    }
    loot[0] = (void *)(uintptr_t)atomic_load_explicit(&victim->next, memory_order_relaxed);
    atomic_store_explicit(&victim->next, 0, memory_order_relaxed);
    return loot[0] != NULL;
}

bool lane_backlog_elsewhere(const lane_worker *worker, const lane_runtime *runtime) {
    for (uint32_t i = 0; i < lane_active(runtime); i++)
        if (i != worker->index && lane_has_backlog(lane_worker_at(runtime, i))) return true;
    return false;
}

lane_stolen lane_steal(lane_worker *worker, lane_thief *thief) {
    lane_runtime *runtime = lane_runtime_at(worker);
    lane_stolen result = LANE_NOTHING;
    void *loot[LOOT_MAX];
    uint32_t count = 0;
    uint32_t places = lane_active(runtime);
    for (uint32_t i = 0; i < places && count == 0; i++) {
        thief->place = (thief->place + 1) % places;
        lane_worker *victim = lane_worker_at(runtime, thief->place);
        if (victim == worker || !lane_has_backlog(victim)) continue;
        if (result == LANE_NOTHING && lane_now() < thief->next_at) return LANE_LATER;
        result = LANE_LATER;
        if (!lane_seize(victim)) continue;
        WEFT_TEST_DELAY(lane_steal_seized);
        count = lane_rob(victim, loot);
        lane_release(victim);
    }
    if (count == 0) return result;
    WEFT_TEST_DELAY(lane_steal_taken);
    thief->next_at = lane_now() + STEAL_GAP_NS;
    lane_count(&worker->steals, 1);
    lane_count(&worker->ops_stolen, count);
    /* Newest first onto our stack: the oldest, likely the one with most work behind it, is taken next. */
    lane_enter(worker);
    for (uint32_t left = count; left-- > 0;) lane_put(worker, loot[left]);
    lane_leave(worker);
    WEFT_TEST_DELAY(lane_steal_put);
    if (count > 1) lane_wake_one(runtime);
    return LANE_LOOT;
}

static bool lane_reclaim_from(lane_worker *holder, uint64_t runnable) {
    WEFT_TEST_DELAY(lane_reclaim_entered);
    if (atomic_load_explicit(&holder->next, memory_order_relaxed) == runnable) {
        atomic_store_explicit(&holder->next, 0, memory_order_relaxed);
        return true;
    }
    return lane_ring_take_out(&holder->deque, runnable) || lane_ring_take_out(&holder->injected, runnable);
}

bool lane_reclaim(lane_worker *worker, const void *runnable, bool everywhere) {
    lane_runtime *runtime = lane_runtime_at(worker);
    uint64_t wanted = (uint64_t)(uintptr_t)runnable;
    lane_enter(worker);
    bool taken = lane_reclaim_from(worker, wanted);
    lane_leave(worker);
    for (uint32_t i = 0; everywhere && !taken && i < lane_active(runtime); i++) {
        lane_worker *holder = lane_worker_at(runtime, i);
        if (holder == worker || lane_length(holder) == 0 || !lane_seize(holder)) continue;
        taken = lane_reclaim_from(holder, wanted);
        lane_release(holder);
    }
    return taken;
}
