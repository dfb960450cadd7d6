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
    uint32_t slot;
    uint32_t index;
    char name[16];
} lane_thread;

/* Whether threads may begin: none does until all exist. */
typedef struct lane_threads {
    lane_thread *threads;
    uint32_t count;
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
    if (thread->index < runtime->worker_count) lane_self = lane_worker_at(runtime, thread->index);
    WEFT_TEST_DELAY(lane_thread_begins);
    lane_cross_for_life();
    weftgo_thread_main(thread->slot, thread->index);
    lane_self = NULL;
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

int lane_threads_start(uint32_t slot, uint32_t count, uint64_t stack_bytes, const char *name) {
    lane_threads *all = &threads_of[slot];
    all->threads = calloc(count, sizeof *all->threads);
    if (all->threads == NULL) return WEFT_ENOMEM;
    all->count = 0;
    all->gate = GATE_SHUT;
    pthread_mutex_init(&all->mutex, NULL);
    pthread_cond_init(&all->changed, NULL);

    int rc = 0;
    while (rc == 0 && all->count < count) {
        lane_thread *thread = &all->threads[all->count];
        thread->slot = slot;
        thread->index = all->count;
        if (thread->index + 1 < count)
            snprintf(thread->name, sizeof thread->name, "%.10s-%u", name, thread->index & 0xfff);
        else
            snprintf(thread->name, sizeof thread->name, "%.10s-mon", name);
        rc = lane_thread_make(&thread->handle, stack_bytes, lane_thread_main, thread);
        if (rc == 0) all->count++;
    }
    lane_open_gate(all, rc == 0 ? GATE_OPEN : GATE_GIVEN_UP);
    if (rc == 0) return WEFT_OK;
    lane_threads_join(slot);
    return WEFT_ELIMIT;
}

void lane_threads_join(uint32_t slot) {
    lane_threads *all = &threads_of[slot];
    lane_wait_begins();
    for (uint32_t i = 0; i < all->count; i++) pthread_join(all->threads[i].handle, NULL);
    lane_wait_ends();
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->mutex);
    free(all->threads);
    all->threads = NULL;
}
