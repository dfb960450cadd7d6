/* SPDX-License-Identifier: MIT
 *
 * threads.c: worker threads are made here and not by Go, so that stack, name and signal mask are weft's own. They block every signal but
 * those that a fault raises: a host's handlers never run on them, and its signals never interrupt them.
 */
#include "delay.h"
#include "threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "crossing.h"
#include "export.h"
#include "tsan.h"

typedef struct lane_thread {
    pthread_t handle;
    bool joinable; /* guarded by mutex: it has been made, and neither joined nor detached */
    uint32_t slot;
    uint32_t index;
    char name[16];
} lane_thread;

/* Threads of one runtime: a place for each worker that there may be, and after these the monitor's. None begins until all of the base exist. */
typedef struct lane_threads {
    lane_thread *threads;
    uint32_t places; /* immutable while it runs */
    uint64_t stack_bytes;
    int64_t keep_ns;
    char name[11];
    bool joining; /* guarded by mutex: who ends now is waited for */
    enum { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP } gate;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} lane_threads;

static lane_threads threads_of[LANE_RUNTIMES_MAX];

void lane_threads_enter(void) { lane_block_signals(NULL); }

int lane_thread_make(pthread_t *handle, uint64_t stack_bytes, void *(*main)(void *), void *argument) {
    sigset_t before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int rc = pthread_attr_setstacksize(&attributes, (size_t)(stack_bytes + 4095) & ~(size_t)4095);
    lane_block_signals(&before);
    if (rc == 0) rc = pthread_create(handle, &attributes, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

static void *lane_thread_main(void *argument) {
    lane_thread *thread = argument;
    lane_threads *all = &threads_of[thread->slot];
    pthread_mutex_lock(&all->mutex);
    while (all->gate == GATE_SHUT) pthread_cond_wait(&all->changed, &all->mutex);
    bool begins = all->gate == GATE_OPEN;
    pthread_mutex_unlock(&all->mutex);
    if (!begins) return NULL;
    pthread_setname_np(pthread_self(), thread->name);
    lane_runtime *runtime = &lane_table[thread->slot];
    uint32_t slot = thread->slot;
    WEFT_TEST_DELAY(lane_thread_begins);
    lane_cross_for_life();
    if (thread->index < all->places - 1) {
        lane_self = lane_worker_at(runtime, thread->index);
        atomic_store_explicit(&lane_self->thread, lane_thread_number(), memory_order_relaxed);
        weftgo_thread_main(slot, (int32_t)thread->index);
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
    return NULL;
}

static void lane_open_gate(lane_threads *all, int gate) {
    pthread_mutex_lock(&all->mutex);
    all->gate = gate;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
}

/* Makes a thread in a place that has none. What pthread_create returns. */
static int lane_place_fill(lane_threads *all, uint32_t slot, uint32_t index) {
    lane_thread *thread = &all->threads[index];
    thread->slot = slot;
    thread->index = index;
    if (index + 1 < all->places)
        snprintf(thread->name, sizeof thread->name, "%s-%u", all->name, index & 0xfff);
    else
        snprintf(thread->name, sizeof thread->name, "%s-mon", all->name);
    int rc = lane_thread_make(&thread->handle, all->stack_bytes, lane_thread_main, thread);
    if (rc == 0) {
        pthread_mutex_lock(&all->mutex);
        thread->joinable = true;
        pthread_mutex_unlock(&all->mutex);
    }
    return rc;
}

int lane_threads_start(uint32_t slot, uint32_t workers, const weft_runtime_config *config) {
    lane_threads *all = &threads_of[slot];
    all->places = lane_table[slot].worker_max + 1;
    all->threads = calloc(all->places, sizeof *all->threads);
    if (all->threads == NULL) return WEFT_ENOMEM;
    all->stack_bytes = config->stack_bytes;
    all->keep_ns = config->keep_ns;
    snprintf(all->name, sizeof all->name, "%s", config->name);
    all->joining = false;
    all->gate = GATE_SHUT;
    pthread_mutex_init(&all->mutex, NULL);
    pthread_cond_init(&all->changed, NULL);

    int rc = lane_place_fill(all, slot, all->places - 1);
    for (uint32_t i = 0; rc == 0 && i < workers; i++) rc = lane_place_fill(all, slot, i);
    lane_open_gate(all, rc == 0 ? GATE_OPEN : GATE_GIVEN_UP);
    if (rc == 0) return WEFT_OK;
    lane_threads_join(slot);
    return WEFT_ELIMIT;
}

int lane_threads_add(uint32_t slot, uint32_t index) {
    return lane_place_fill(&threads_of[slot], slot, index) == 0 ? WEFT_OK : WEFT_ELIMIT;
}

/* The thread of a cached worker ends, unless it is wanted after all. The mutex keeps lane_threads_join from giving away the memory that is
 * touched here: it finds the thread detached, or waits for its end. Absent comes last: from then on the place is the monitor's to fill. */
static bool lane_thread_leaves(lane_worker *worker) {
    lane_threads *all = &threads_of[lane_runtime_at(worker) - lane_table];
    lane_thread *thread = &all->threads[worker->index];
    uint32_t cached = LANE_CACHED;
    pthread_mutex_lock(&all->mutex);
    bool leaves = !all->joining && atomic_compare_exchange_strong_explicit(&worker->life, &cached, LANE_LEAVING, memory_order_seq_cst,
                                                                           memory_order_seq_cst);
    if (leaves) {
        pthread_detach(thread->handle);
        thread->joinable = false;
        /* release pairs with the acquire by which core's enlist takes the place. */
        atomic_store_explicit(&worker->life, LANE_ABSENT, memory_order_release);
    }
    pthread_mutex_unlock(&all->mutex);
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
    lane_thread *monitor = &all->threads[all->places - 1];
    lane_wait_begins();
    /* The monitor first: once it has ended, none is added. */
    if (monitor->joinable) pthread_join(monitor->handle, NULL);
    pthread_mutex_lock(&all->mutex);
    all->joining = true;
    pthread_mutex_unlock(&all->mutex);
    for (uint32_t i = 0; i < all->places - 1; i++)
        if (all->threads[i].joinable) pthread_join(all->threads[i].handle, NULL);
    lane_wait_ends();
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->mutex);
    free(all->threads);
    all->threads = NULL;
}
