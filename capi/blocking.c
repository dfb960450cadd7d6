/* SPDX-License-Identifier: MIT
 *
 * blocking.c: the pool of threads for calls that block. docs/decisions/blocking.md says why it is C.
 *
 * Everything of a pool is guarded by its mutex, but for the op's state, which is also changed by who has no pool to lock yet (a
 * cancel before or during the submission), and for the counters. A call costs two switches of threads; a lock between them is
 * not what one waits for. Invariants, whenever the mutex is free:
 *   - running of a kind counts the threads that were given an op of it, and never exceeds limit;
 *   - an op waits only if running has reached limit, or the system has refused a thread: then the pool has another one,
 *     which looks for waiting ops of any kind when its own is done;
 *   - a thread is idle (on the list, given nothing), or was given one op;
 *   - while the pool is open, the runtime's pending count is not 0 (Stop's own reference), so submitting only has to add to it.
 * A thread that ends joins the one that ended before it, so that at most one is unjoined, and blocking_join waits for
 * all by waiting for the last. No callback runs under the mutex.
 */
#include "blocking.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crossing.h"
#include "end.h"
#include "threads.h"
#include "tsan.h"

/* weft_blocking.state_ */
enum {
    BLOCKING_IDLE = 0,
    BLOCKING_STARTING = 1,        /* in weft_blocking_submit, not yet under the mutex */
    BLOCKING_WAITING = 2,         /* in the queue of its kind; changes under the mutex only */
    BLOCKING_RUNNING = 3,         /* given to a thread */
    BLOCKING_COMPLETED = 4,       /* may be submitted again */
    BLOCKING_CANCELLED_EARLY = 5, /* asked before it was submitted */
    BLOCKING_CANCELLED_AT_START = 6,
    BLOCKING_REQUESTED = 7, /* runs, and was asked to end */
};

/* A thread of the pool costs some 20 us to make: kept for so long, that is paid once a second at the most. */
#define IDLE_NS INT64_C(1000000000)

typedef struct blocking_pool blocking_pool;

typedef struct blocking_thread {
    lane_thread thread;
    blocking_pool *pool;           /* immutable */
    uint32_t number;               /* immutable: for its name */
    weft_blocking *given;          /* guarded by mutex: to be run; NULL when idle */
    struct blocking_thread *below; /* guarded by mutex: the next idle one */
    lane_condition woken;          /* given has been set, or the pool closed */
} blocking_thread;

typedef struct blocking_kind {
    weft_blocking *first, *last; /* guarded by mutex: ops that wait, oldest first, linked by op.next_ and previous_ */
    uint32_t running;            /* guarded by mutex: threads that were given one */
} blocking_kind;

struct blocking_pool {
    lane_mutex mutex;
    lane_condition gone;         /* threads has become 0 */
    lane_runtime *runtime;       /* immutable */
    uint64_t id;                 /* guarded by mutex: the runtime's handle while the pool is open, else 0 */
    uint64_t stack_bytes;        /* written by blocking_open */
    uint32_t limit;              /* written by blocking_open */
    uint32_t made;               /* guarded by mutex: threads ever made */
    char name[11];               /* written by blocking_open */
    blocking_kind kinds[WEFT_BLOCKING_KINDS];
    blocking_thread *idle;       /* guarded by mutex: newest first, so that what is too many stays idle */
    blocking_thread *ended;      /* guarded by mutex: has nothing more to do than to join, not joined itself */
    /* Statistics: changed under the mutex, read by all. */
    _Atomic uint32_t threads;
    _Atomic uint32_t waiting;
    _Atomic uint64_t calls;
};

static blocking_pool pools[LANE_RUNTIMES_MAX];

LANE_LOCAL_IS(uint64_t, blocking_self);

__attribute__((constructor)) static void blocking_load(void) {
    for (uint32_t slot = 0; slot < LANE_RUNTIMES_MAX; slot++) {
        lane_mutex_begin(&pools[slot].mutex);
        lane_condition_begin(&pools[slot].gone);
        pools[slot].runtime = &lane_table[slot];
    }
}

/* A level that is changed under the mutex. */
static uint32_t level_add(_Atomic uint32_t *level, uint32_t by) {
    uint32_t now = atomic_load_explicit(level, memory_order_relaxed) + by;
    atomic_store_explicit(level, now, memory_order_relaxed);
    return now;
}

/* The state of an op. seq_cst throughout: this is no hot path. What a state says of other fields (WAITING of the pool, COMPLETED of the
 * result) is then visible to whoever reads it. */
static uint32_t state_of(const weft_blocking *op) { return __atomic_load_n(&op->state_, __ATOMIC_SEQ_CST); }
static void set_state(weft_blocking *op, uint32_t state) { __atomic_store_n(&op->state_, state, __ATOMIC_SEQ_CST); }
static bool change_state(weft_blocking *op, uint32_t *seen, uint32_t state) {
    return __atomic_compare_exchange_n(&op->state_, seen, state, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* The queue of a kind, under the mutex. */

static void enqueue(blocking_pool *pool, weft_blocking *op) {
    blocking_kind *kind = &pool->kinds[op->kind_];
    op->op.next_ = NULL;
    op->previous_ = kind->last;
    if (kind->last != NULL)
        kind->last->op.next_ = &op->op;
    else
        kind->first = op;
    kind->last = op;
    level_add(&pool->waiting, 1);
}

static void dequeue(blocking_pool *pool, weft_blocking *op) {
    blocking_kind *kind = &pool->kinds[op->kind_];
    weft_blocking *next = (weft_blocking *)op->op.next_;
    weft_blocking *previous = op->previous_;
    if (next != NULL)
        next->previous_ = previous;
    else
        kind->last = previous;
    if (previous != NULL)
        previous->op.next_ = (weft_op *)next; /* NULL stays NULL */
    else
        kind->first = next;
    level_add(&pool->waiting, -1u);
}

_Static_assert(offsetof(weft_blocking, op) == 0, "a blocking op and its op are at the same address");

/* Takes a waiting op that may run now, or NULL. */
static weft_blocking *take_waiting(blocking_pool *pool) {
    for (uint32_t i = 0; i < WEFT_BLOCKING_KINDS; i++) {
        blocking_kind *kind = &pool->kinds[i];
        if (kind->first == NULL || kind->running >= pool->limit) continue;
        weft_blocking *op = kind->first;
        dequeue(pool, op);
        kind->running++;
        set_state(op, BLOCKING_RUNNING);
        return op;
    }
    return NULL;
}

void blocking_finish(weft_blocking *op, bool behind) {
    lane_runtime *runtime = ((blocking_pool *)op->pool_)->runtime;
    op->status = WEFT_OK;
    set_state(op, BLOCKING_COMPLETED);
    tsan_release(op);
    if (behind && lane_self != NULL && lane_runtime_at(lane_self) == runtime)
        lane_push_behind_quiet(lane_self, &op->op);
    else
        lane_finish(runtime, &op->op);
    lane_release_end(runtime);
}

/* Completes an op that never ran and was taken from where it waited: its state says RUNNING, so that nobody else does. Not under the
 * mutex. */
static void complete_cancelled(lane_runtime *runtime, weft_blocking *op) {
    op->status = WEFT_ECANCELED;
    set_state(op, BLOCKING_COMPLETED);
    tsan_release(op);
    lane_finish(runtime, &op->op);
    lane_release_end(runtime);
}

/* The threads. */

static void run_call(weft_blocking *op) {
    tsan_acquire(op);
    op->call(op);
    blocking_finish(op, false);
}

/* Sleeps until it is given an op, has been idle for long, or the pool is closed. On the idle list; under the mutex. */
static void wait_idle(blocking_pool *pool, blocking_thread *self) {
    int64_t until = lane_now() + IDLE_NS;
    while (self->given == NULL && pool->id != 0 && lane_now() < until) lane_condition_wait(&self->woken, &pool->mutex, until);
}

static void leave_idle(blocking_pool *pool, blocking_thread *self) {
    blocking_thread **link = &pool->idle;
    while (*link != self) link = &(*link)->below;
    *link = self->below;
}

static void free_thread(blocking_thread *thread) {
    lane_thread_join(thread->thread);
    lane_condition_end(&thread->woken);
    free(thread);
}

static lane_thread_result blocking_main(void *argument) {
    blocking_thread *self = argument;
    blocking_pool *pool = self->pool;
    char name[16];
    lane_cross_for_life(); /* the default floating-point environment, instead of that of whoever submitted */
    lane_mutex_lock(&pool->mutex);
    snprintf(name, sizeof name, "%.10s-b%u", pool->name, self->number % 1000);
    lane_thread_name(name);
    blocking_self = atomic_load_explicit(&pool->runtime->id, memory_order_relaxed);
    for (;;) {
        weft_blocking *op = self->given;
        if (op == NULL) { /* idle */
            wait_idle(pool, self);
            if (self->given != NULL) continue;
            leave_idle(pool, self);
            break;
        }
        self->given = NULL;
        uint32_t kind = op->kind_;
        atomic_store_explicit(&pool->calls, atomic_load_explicit(&pool->calls, memory_order_relaxed) + 1, memory_order_relaxed);
        lane_mutex_unlock(&pool->mutex);
        run_call(op);
        lane_mutex_lock(&pool->mutex);
        pool->kinds[kind].running--;
        self->given = take_waiting(pool);
        if (self->given == NULL) {
            self->below = pool->idle;
            pool->idle = self;
        }
    }
    blocking_thread *before = pool->ended;
    pool->ended = self;
    lane_mutex_unlock(&pool->mutex);
    if (before != NULL) free_thread(before);
    tsan_release(pool->runtime);
    /* The last access: blocking_join waits for it, and then for this thread. */
    lane_mutex_lock(&pool->mutex);
    if (level_add(&pool->threads, -1u) == 0) lane_condition_wake_all(&pool->gone);
    lane_mutex_unlock(&pool->mutex);
    return 0;
}

/* Sees to it that there is an idle thread. Under the mutex, under which a new one is made, too: nobody then counts on one that the
 * system will refuse. False when it did. */
static bool find_thread(blocking_pool *pool) {
    if (pool->idle != NULL) return true;
    blocking_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) return false;
    thread->pool = pool;
    thread->number = pool->made;
    lane_condition_begin(&thread->woken);
    if (!lane_thread_make(&thread->thread, pool->stack_bytes, blocking_main, thread)) {
        lane_condition_end(&thread->woken);
        free(thread);
        return false;
    }
    pool->made++;
    level_add(&pool->threads, 1);
    pool->idle = thread;
    return true;
}

/* Gives an op to the idle thread that find_thread found. Under the mutex. */
static void give(blocking_pool *pool, weft_blocking *op) {
    blocking_thread *thread = pool->idle;
    pool->idle = thread->below;
    thread->given = op;
    lane_condition_wake_one(&thread->woken);
}

/* The pool's life. */

void blocking_open(uint32_t slot, uint64_t id, uint32_t limit, uint64_t stack_bytes, const char *name) {
    blocking_pool *pool = &pools[slot];
    lane_mutex_lock(&pool->mutex);
    pool->id = id;
    pool->limit = limit;
    pool->stack_bytes = stack_bytes;
    pool->made = 0;
    snprintf(pool->name, sizeof pool->name, "%s", name);
    atomic_store_explicit(&pool->calls, 0, memory_order_relaxed);
    lane_mutex_unlock(&pool->mutex);
}

void blocking_close(uint32_t slot) {
    blocking_pool *pool = &pools[slot];
    weft_blocking *cancelled = NULL;
    lane_mutex_lock(&pool->mutex);
    pool->id = 0;
    for (uint32_t i = 0; i < WEFT_BLOCKING_KINDS; i++) {
        for (weft_blocking *op; (op = pool->kinds[i].last) != NULL;) {
            dequeue(pool, op);
            set_state(op, BLOCKING_RUNNING);
            op->op.next_ = (weft_op *)cancelled;
            cancelled = op;
        }
    }
    for (blocking_thread *thread = pool->idle; thread != NULL; thread = thread->below) lane_condition_wake_one(&thread->woken);
    lane_mutex_unlock(&pool->mutex);
    while (cancelled != NULL) {
        weft_blocking *op = cancelled;
        cancelled = (weft_blocking *)op->op.next_;
        complete_cancelled(pool->runtime, op);
    }
}

void blocking_join(uint32_t slot) {
    blocking_pool *pool = &pools[slot];
    lane_wait_begins();
    lane_mutex_lock(&pool->mutex);
    while (atomic_load_explicit(&pool->threads, memory_order_relaxed) != 0) lane_condition_wait(&pool->gone, &pool->mutex, INT64_MAX);
    blocking_thread *last = pool->ended;
    pool->ended = NULL;
    lane_mutex_unlock(&pool->mutex);
    if (last != NULL) free_thread(last);
    lane_wait_ends();
}

void blocking_read_stats(uint32_t slot, weft_stats *stats) {
    const blocking_pool *pool = &pools[slot];
    stats->blocking_calls = atomic_load_explicit(&pool->calls, memory_order_relaxed);
    stats->blocking_threads = atomic_load_explicit(&pool->threads, memory_order_relaxed);
    stats->blocking_waiting = atomic_load_explicit(&pool->waiting, memory_order_relaxed);
}

/* The public calls. */

static bool is_idle(uint32_t state) {
    return state == BLOCKING_IDLE || state == BLOCKING_COMPLETED || state == BLOCKING_CANCELLED_EARLY;
}

bool blocking_is_idle(const weft_blocking *op) { return is_idle(state_of(op)); }

/* Undoes begin. A request that came meanwhile is kept for the next submission. */
static void abandon(weft_blocking *op, uint32_t before) {
    uint32_t starting = BLOCKING_STARTING;
    if (!change_state(op, &starting, before)) set_state(op, BLOCKING_CANCELLED_EARLY);
}

/* An op that was cancelled before it was accepted. */
static int refuse_cancelled(weft_blocking *op) {
    op->status = WEFT_ECANCELED;
    set_state(op, BLOCKING_COMPLETED);
    return 1;
}

/* Takes an idle op for a runtime's pool; *before is what its state was. 1: it was cancelled before, and has its result. */
static int begin(weft_runtime handle, weft_blocking *op, blocking_pool **pool, uint32_t *before) {
    const lane_runtime *runtime = lane_runtime_of(handle.id);
    if (runtime == NULL) return WEFT_EBADHANDLE;
    uint32_t state = state_of(op);
    do {
        if (!is_idle(state)) return WEFT_EBUSY;
    } while (!change_state(op, &state, BLOCKING_STARTING));
    if (state == BLOCKING_CANCELLED_EARLY) return refuse_cancelled(op);
    *before = state;
    op->pool_ = *pool = &pools[runtime - lane_table];
    return WEFT_OK;
}

/* Gives the op a thread, or lets it wait. Under the mutex. */
static int accept_op(blocking_pool *pool, weft_blocking *op, uint64_t id, uint32_t before) {
    int rc = pool->id != id ? WEFT_ESTOPPED : WEFT_OK;
    blocking_kind *kind = &pool->kinds[op->kind_];
    bool waits = kind->running >= pool->limit;
    if (rc == WEFT_OK && !waits && !find_thread(pool)) {
        waits = true;
        if (atomic_load_explicit(&pool->threads, memory_order_relaxed) == 0) rc = WEFT_ELIMIT;
    }
    if (rc != WEFT_OK) {
        abandon(op, before);
        return rc;
    }
    uint32_t starting = BLOCKING_STARTING;
    if (!change_state(op, &starting, waits ? BLOCKING_WAITING : BLOCKING_RUNNING)) return refuse_cancelled(op);
    atomic_fetch_add_explicit(&pool->runtime->pending, 1, memory_order_seq_cst); /* Stop's reference is still there */
    if (waits) {
        enqueue(pool, op);
    } else {
        kind->running++;
        give(pool, op);
    }
    return WEFT_OK;
}

int weft_blocking_submit(weft_runtime handle, weft_blocking *op, uint32_t kind) {
    if (op == NULL || op->op.run == NULL || op->call == NULL || kind >= WEFT_BLOCKING_KINDS) return WEFT_EINVAL;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    blocking_pool *pool;
    uint32_t before;
    int rc = begin(handle, op, &pool, &before);
    if (rc != WEFT_OK) return rc;
    int saved = errno;
    op->kind_ = kind;
    tsan_release(op);
    lane_mutex_lock(&pool->mutex);
    rc = accept_op(pool, op, handle.id, before);
    lane_mutex_unlock(&pool->mutex);
    errno = saved;
    return rc;
}

int blocking_begin(weft_runtime handle, weft_blocking *op) {
    blocking_pool *pool;
    uint32_t before;
    int rc = begin(handle, op, &pool, &before);
    if (rc != WEFT_OK) return rc;
    lane_runtime *runtime = pool->runtime;
    if (atomic_load_explicit(&runtime->state, memory_order_relaxed) != LANE_RUNNING || !lane_hold_end(runtime)) {
        abandon(op, before);
        return WEFT_ESTOPPED;
    }
    uint32_t starting = BLOCKING_STARTING;
    if (change_state(op, &starting, BLOCKING_RUNNING)) return WEFT_OK;
    lane_release_end(runtime);
    return refuse_cancelled(op);
}

void blocking_hand_over(weft_blocking *op, uint32_t kind) {
    blocking_pool *pool = op->pool_;
    enum { WAITS, RUNS, CANCELLED, REFUSED } what;
    op->kind_ = kind;
    tsan_release(op);
    lane_mutex_lock(&pool->mutex);
    blocking_kind *of_kind = &pool->kinds[kind];
    bool limited = of_kind->running >= pool->limit;
    uint32_t running = BLOCKING_RUNNING;
    if (pool->id == 0 || weft_blocking_requested(op)) /* also of a runtime that stops, and has not come to the pool yet */
        what = CANCELLED;
    else if (!limited && find_thread(pool))
        what = RUNS;
    else if (!limited && atomic_load_explicit(&pool->threads, memory_order_relaxed) == 0)
        what = REFUSED;
    else
        what = change_state(op, &running, BLOCKING_WAITING) ? WAITS : CANCELLED;
    if (what == WAITS) enqueue(pool, op);
    if (what == RUNS) {
        of_kind->running++;
        give(pool, op);
    }
    lane_mutex_unlock(&pool->mutex);
    if (what == CANCELLED) complete_cancelled(pool->runtime, op);
    if (what == REFUSED) run_call(op); /* the system has no thread for us: here, then, which weft survives */
}

lane_runtime *blocking_asked(const weft_blocking *op) {
    return state_of(op) == BLOCKING_REQUESTED ? ((blocking_pool *)op->pool_)->runtime : NULL;
}

int weft_blocking_cancel(weft_blocking *op) {
    if (op == NULL) return WEFT_EINVAL;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    tsan_release(op);
    for (uint32_t state = state_of(op);;) {
        switch (state) {
        case BLOCKING_IDLE:
            if (change_state(op, &state, BLOCKING_CANCELLED_EARLY)) return WEFT_OK;
            break;
        case BLOCKING_STARTING:
            if (change_state(op, &state, BLOCKING_CANCELLED_AT_START)) return WEFT_OK;
            break;
        case BLOCKING_RUNNING:
            if (change_state(op, &state, BLOCKING_REQUESTED)) return 1;
            break;
        case BLOCKING_WAITING: {
            blocking_pool *pool = op->pool_;
            lane_mutex_lock(&pool->mutex);
            state = state_of(op);
            bool waits = state == BLOCKING_WAITING;
            if (waits) {
                dequeue(pool, op);
                set_state(op, BLOCKING_RUNNING);
            }
            lane_mutex_unlock(&pool->mutex);
            if (!waits) break;
            complete_cancelled(pool->runtime, op);
            return WEFT_OK;
        }
        default: return 1;
        }
    }
}

int weft_blocking_requested(const weft_blocking *op) {
    const blocking_pool *pool = op->pool_;
    return state_of(op) == BLOCKING_REQUESTED ||
           atomic_load_explicit(&pool->runtime->state, memory_order_relaxed) != LANE_RUNNING;
}
