/* SPDX-License-Identifier: MIT
 *
 * threads.c: worker threads are made here and not by Go, so that stack, name and signal mask are weft's own. They block every signal but
 * those that a fault raises: a host's handlers never run on them, and its signals never interrupt them.
 */
#include "delay.h"
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>

#include "crossing.h"
#include "export.h"
#include "tsan.h"

typedef struct lane_member {
    lane_thread thread;
    bool joinable; /* guarded by mutex: it has been made, and neither joined nor detached */
    uint32_t slot;
    uint32_t index;
    char name[16];
} lane_member;

/* Threads of one runtime: a place for each worker that there may be, and after these the monitor's. None begins until all of the base exist. */
typedef struct lane_threads {
    lane_member *members;
    uint32_t places; /* immutable while it runs */
    uint64_t stack_bytes;
    int64_t keep_ns;
    char name[11];
    bool joining; /* guarded by mutex: who ends now is waited for */
    enum { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP } gate;
    lane_mutex mutex;
    lane_condition changed;
} lane_threads;

static lane_threads threads_of[LANE_RUNTIMES_MAX];

static lane_thread_result lane_thread_main(void *argument) {
    lane_member *member = argument;
    lane_threads *all = &threads_of[member->slot];
    lane_mutex_lock(&all->mutex);
    while (all->gate == GATE_SHUT) lane_condition_wait(&all->changed, &all->mutex, INT64_MAX);
    bool begins = all->gate == GATE_OPEN;
    lane_mutex_unlock(&all->mutex);
    if (!begins) return 0;
    lane_thread_name(member->name);
    lane_runtime *runtime = &lane_table[member->slot];
    uint32_t slot = member->slot;
    WEFT_TEST_DELAY(lane_thread_begins);
    lane_cross_for_life();
    if (member->index < all->places - 1) {
        lane_self = lane_worker_at(runtime, member->index);
        lane_stack_half = (uintptr_t)__builtin_frame_address(0) - lane_thread_stack_left() / 2;
        atomic_store_explicit(&lane_self->thread, lane_thread_number(), memory_order_relaxed);
        weftgo_thread_main(slot, (int32_t)member->index);
    } else {
        lane_watched = atomic_load_explicit(&runtime->id, memory_order_relaxed);
        lane_sleep_sharply();
        weftgo_thread_main(slot, LANE_MONITOR_THREAD);
    }
    /* A replacement's thread that nobody wants any more has been detached: what it was made from may be another's by now. */
    lane_self = NULL;
    lane_watched = 0;
    WEFT_TEST_DELAY(lane_thread_ends);
    tsan_release(runtime);
    return 0;
}

static void lane_open_gate(lane_threads *all, int gate) {
    lane_mutex_lock(&all->mutex);
    all->gate = gate;
    lane_condition_wake_all(&all->changed);
    lane_mutex_unlock(&all->mutex);
}

/* Makes a thread in a place that has none. */
static bool lane_place_fill(lane_threads *all, uint32_t slot, uint32_t index) {
    lane_member *member = &all->members[index];
    member->slot = slot;
    member->index = index;
    if (index + 1 < all->places)
        snprintf(member->name, sizeof member->name, "%s-%u", all->name, index & 0xfff);
    else
        snprintf(member->name, sizeof member->name, "%s-mon", all->name);
    bool made = lane_thread_make(&member->thread, all->stack_bytes, lane_thread_main, member);
    if (made) {
        lane_mutex_lock(&all->mutex);
        member->joinable = true;
        lane_mutex_unlock(&all->mutex);
    }
    return made;
}

int lane_threads_start(uint32_t slot, uint32_t workers, const weft_runtime_config *config) {
    lane_threads *all = &threads_of[slot];
    all->places = lane_table[slot].worker_max + 1;
    all->members = calloc(all->places, sizeof *all->members);
    if (all->members == NULL) return WEFT_ENOMEM;
    all->stack_bytes = config->stack_bytes;
    all->keep_ns = config->keep_ns;
    snprintf(all->name, sizeof all->name, "%s", config->name);
    all->joining = false;
    all->gate = GATE_SHUT;
    lane_mutex_begin(&all->mutex);
    lane_condition_begin(&all->changed);

    bool made = lane_place_fill(all, slot, all->places - 1);
    for (uint32_t i = 0; made && i < workers; i++) made = lane_place_fill(all, slot, i);
    lane_open_gate(all, made ? GATE_OPEN : GATE_GIVEN_UP);
    if (made) return WEFT_OK;
    lane_threads_join(slot);
    return WEFT_ELIMIT;
}

int lane_threads_add(uint32_t slot, uint32_t index) {
    return lane_place_fill(&threads_of[slot], slot, index) ? WEFT_OK : WEFT_ELIMIT;
}

/* The thread of a cached worker ends, unless it is wanted after all. The mutex keeps lane_threads_join from giving away the memory that is
 * touched here: it finds the thread detached, or waits for its end. Absent comes last: from then on the place is the monitor's to fill. */
static bool lane_thread_leaves(lane_worker *worker) {
    lane_threads *all = &threads_of[lane_runtime_at(worker) - lane_table];
    lane_member *member = &all->members[worker->index];
    uint32_t cached = LANE_CACHED;
    lane_mutex_lock(&all->mutex);
    bool leaves = !all->joining && atomic_compare_exchange_strong_explicit(&worker->life, &cached, LANE_LEAVING, memory_order_seq_cst,
                                                                           memory_order_seq_cst);
    if (leaves) {
        lane_thread_detach(member->thread);
        member->joinable = false;
        /* release pairs with the acquire by which core's enlist takes the place. */
        atomic_store_explicit(&worker->life, LANE_ABSENT, memory_order_release);
    }
    lane_mutex_unlock(&all->mutex);
    return leaves;
}

bool lane_rest(lane_worker *worker) {
    int64_t until = lane_now() + threads_of[lane_runtime_at(worker) - lane_table].keep_ns;
    for (;;) {
        /* acquire pairs with the compare-and-swap in core's enlist: for whom the worker is to begin is seen. */
        uint32_t life = atomic_load_explicit(&worker->life, memory_order_acquire);
        if (life != LANE_CACHED) return life == LANE_STARTING;
        if (lane_now() >= until && lane_thread_leaves(worker)) return false;
        lane_futex_wait(&worker->life, LANE_CACHED, until);
    }
}

void lane_threads_join(uint32_t slot) {
    lane_threads *all = &threads_of[slot];
    lane_member *monitor = &all->members[all->places - 1];
    lane_wait_begins();
    /* The monitor first: once it has ended, none is added. */
    if (monitor->joinable) lane_thread_join(monitor->thread);
    lane_mutex_lock(&all->mutex);
    all->joining = true;
    lane_mutex_unlock(&all->mutex);
    for (uint32_t i = 0; i < all->places - 1; i++)
        if (all->members[i].joinable) lane_thread_join(all->members[i].thread);
    lane_wait_ends();
    lane_condition_end(&all->changed);
    lane_mutex_end(&all->mutex);
    free(all->members);
    all->members = NULL;
}
