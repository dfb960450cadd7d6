/* SPDX-License-Identifier: MIT
 *
 * lane_internal.h: what the C files of the lane offer each other. The queue section stands here because run loop, pushes
 * and poller all inline it.
 */
#ifndef WEFT_LANE_INTERNAL_H
#define WEFT_LANE_INTERNAL_H

#include "delay.h"
#include "lane.h"
#include "os.h"

/* Nothing here is for other libraries; so it is reached without the global offset table. */
#pragma GCC visibility push(hidden)

#define LANE_LIKELY(x) __builtin_expect(!!(x), 1)
#define LANE_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LANE_COLD __attribute__((noinline, cold))

/* A runnable: memory whose first word is a function to be called with the memory's address. */
typedef struct lane_runnable {
    void (*run)(struct lane_runnable *);
} lane_runnable;

LANE_LOCAL(lane_worker *, lane_self);              /* the calling thread's worker, or NULL */
LANE_LOCAL(uint64_t, lane_watched);                /* handle of the runtime whose monitor the calling thread is, or 0 */
LANE_LOCAL(uintptr_t, lane_stack_half);            /* the place on the calling worker's stack where a half of it is left */
extern lane_runtime lane_table[LANE_RUNTIMES_MAX]; /* by slot; type-stable, so that a stale handle reads no freed memory */
extern bool lane_asymmetric;                       /* immutable after load: lane_barrier reaches every thread */
extern _Atomic uint32_t lane_forked;               /* atomic: 1 in a forked child */

/* lane.c */
void lane_push_quiet(lane_worker *worker, void *runnable);        /* owner only; wakes nobody */
void lane_push_behind_quiet(lane_worker *worker, void *runnable); /* the same, behind everything */
int lane_complete(lane_runtime *runtime, weft_op *op);            /* queues a continuation, from any thread */
void lane_finish(lane_runtime *runtime, weft_op *op);             /* lane_complete; when no worker is left, runs it here */
int lane_inject(lane_runtime *runtime, weft_op *first, weft_op *last, bool wake); /* first runs last; WEFT_ESTOPPED once closed */
uint32_t lane_run(lane_worker *worker);                           /* until there is something that only Go can do */
struct lane_thief;
/* Whose turn it is. The newest ops could keep others waiting for ever, so after every FAIR_INTERVAL ops, or fewer when they are long, comes what was injected, as many as
 * there were ops of our own in the meantime; and then, in alternation, the first of those who yielded or the oldest of a deque that does not
 * get shorter. Owner: who runs a worker's ops, one after the other. */
typedef struct lane_fairness {
    uint32_t until_check; /* ops until the next look at the clock; 0: at the next turn */
    uint32_t injected;    /* 1 + injected ops that still go first in this turn; 0: no turn has begun */
    bool yielded;         /* it was the turn of those who yielded, not of the oldest */
    int64_t length;       /* of the deque at the last turn */
} lane_fairness;
/* On top of an op: runs another one of the worker's; or, if there is none, gets some from elsewhere. False: there is nothing. */
bool lane_run_one(lane_worker *worker, struct lane_thief *thief, lane_fairness *fair);

/* poll.c */
void lane_polled(lane_runtime *runtime, lane_worker *worker, uint32_t count, bool woken); /* the end of lane_poll: woken in a turn of a busy worker */

/* park.c */
void lane_wake_one(lane_runtime *runtime);
void lane_wake(lane_runtime *runtime, lane_worker *worker);   /* if it is idle */
void lane_keep_polling(lane_runtime *runtime);                /* counts a descriptor: from now on the keeper sleeps in the poller, also if he sleeps already */
/* Waits for something to do. Returns 0: look for ops again; else a reason for Go. */
uint32_t lane_park(lane_worker *worker, struct lane_thief *thief);

/* watch.c */
uint32_t lane_watch(lane_runtime *runtime); /* the monitor's loop, until there is something that only Go can do */

/* The runtime of a handle; NULL when it is stale. */
static inline lane_runtime *lane_runtime_of(uint64_t id) {
    uint64_t slot = (id & 0xff) - 1;
    if (LANE_UNLIKELY(slot >= LANE_RUNTIMES_MAX)) return NULL;
    lane_runtime *runtime = &lane_table[slot];
    /* acquire pairs with the store of ID in New (core/runtime.go): a live handle shows an initialised runtime. */
    return LANE_LIKELY(atomic_load_explicit(&runtime->id, memory_order_acquire) == id) ? runtime : NULL;
}

static inline lane_runtime *lane_runtime_at(const lane_worker *worker) {
    return (lane_runtime *)(uintptr_t)worker->runtime;
}

static inline lane_worker *lane_worker_at(const lane_runtime *runtime, uint32_t index) {
    return (lane_worker *)(uintptr_t)runtime->workers + index;
}

/* Places that a search for ops, timers or sleepers has to look at. seq_cst: the monitor stores it before a worker begins in a new place, and so
 * before that worker's announcement, its ops and its timers; who looks after his own publication sees the place or is seen from it. It costs what
 * a plain load does on amd64. */
static inline uint32_t lane_active(const lane_runtime *runtime) {
    return atomic_load_explicit(&runtime->active, memory_order_seq_cst);
}

/* A statistic that one thread writes and others read. */
static inline void lane_count(_Atomic uint64_t *counter, uint64_t by) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

/* Counts for the calling thread: in its worker if it is one of this runtime, else in the runtime. */
#define LANE_COUNT(runtime, field, by)                                                          \
    do {                                                                                        \
        lane_worker *self_ = lane_self;                                                         \
        if (self_ != NULL && lane_runtime_at(self_) == (runtime))                               \
            lane_count(&self_->field, (by));                                                    \
        else                                                                                    \
            atomic_fetch_add_explicit(&(runtime)->field, (by), memory_order_relaxed);           \
    } while (0)

/* Opens the owner's queue section.
 *   store turn = 1, barrier, load thief  against  the thief's seize (steal.c, queue.go): store thief = 1, process-wide barrier, load turn.
 * One of the two sees the other. The owner's barrier is only the compiler's when the thief's reaches every thread
 * (membarrier); else it is a full one. Without either both could enter, and an op would run twice.
 * acquire on thief pairs with the release by which a thief's release gives the queue back: it makes the thief's changes visible.
 * Model: docs/models/queue.pml. */
static inline bool lane_try_enter(lane_worker *worker) {
    atomic_store_explicit(&worker->turn, 1, memory_order_relaxed);
    if (LANE_LIKELY(lane_asymmetric))
        atomic_signal_fence(memory_order_seq_cst);
    else
        atomic_thread_fence(memory_order_seq_cst);
    WEFT_TEST_DELAY(lane_entering);
    return LANE_LIKELY(atomic_load_explicit(&worker->thief, memory_order_acquire) == 0);
}

/* After a failed lane_try_enter: lets the thief finish, and enters. */
LANE_COLD void lane_enter_contended(lane_worker *worker);

static inline void lane_enter(lane_worker *worker) {
    if (LANE_UNLIKELY(!lane_try_enter(worker))) lane_enter_contended(worker);
}

/* Closes it. release pairs with the load of turn in the thief's seize: the thief then sees every change made inside. */
static inline void lane_leave(lane_worker *worker) {
    atomic_store_explicit(&worker->turn, 0, memory_order_release);
}

static inline int64_t lane_ring_length(const lane_ring *ring) {
    return atomic_load_explicit(&ring->tail, memory_order_relaxed) - atomic_load_explicit(&ring->head, memory_order_relaxed);
}

/* Runnables queued at a worker. Outside the queue section it is only a hint. */
static inline int64_t lane_length(const lane_worker *worker) {
    return lane_ring_length(&worker->deque) + lane_ring_length(&worker->injected) + lane_ring_length(&worker->yielded) +
           (atomic_load_explicit(&worker->next, memory_order_relaxed) != 0);
}

/* seq_cst: in lane_wake_one this is the look for sleepers that comes after the publication, against lane_park's announcement. It costs a plain
 * load on amd64 and a load-acquire on arm64. */
static inline bool lane_any_idle(const lane_runtime *runtime) {
    uint64_t idle = atomic_load_explicit(&runtime->idle[0], memory_order_seq_cst);
    if (LANE_UNLIKELY(lane_active(runtime) > 64))
        for (int i = 1; i < LANE_WORKERS_MAX / 64; i++)
            idle |= atomic_load_explicit(&runtime->idle[i], memory_order_seq_cst);
    return idle != 0;
}

/* Whether a worker has something that another should take: two ops or more, or one behind a stalled one. A lone op of a worker
 * that makes progress is left to it: taking it would cost more than running it. */
static inline bool lane_has_backlog(const lane_worker *worker) {
    int64_t length = lane_length(worker);
    if (length >= 2) return true;
    return length == 1 && atomic_load_explicit(&worker->stalled, memory_order_relaxed) ==
                              atomic_load_explicit(&worker->ticks, memory_order_relaxed);
}

#pragma GCC visibility pop

#endif
