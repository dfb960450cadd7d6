/* SPDX-License-Identifier: MIT
 *
 * stall_support.h: what the tests of stalls share: runtimes with settings, workers that are blocked for as long as a test wants.
 */
#ifndef WEFT_TESTS_C_STALL_SUPPORT_H
#define WEFT_TESTS_C_STALL_SUPPORT_H

#include "support.h"
#include "threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Waits until a condition holds. The bound is only there to end a test that has failed. */
#define WAIT_UNTIL(condition)                                                        \
    do {                                                                             \
        for (int i_ = 0; !(condition); i_++) {                                       \
            if (i_ > 30000) fail_msg("never came true: %s", #condition);             \
            sleep_ms(1);                                                             \
        }                                                                            \
    } while (0)

/* An op that blocks until the gate opens. */
typedef struct blocker {
    weft_op op;
    pthread_mutex_t *gate;
    atomic_long *begun, *over;
} blocker;

static inline void block(weft_op *op)
{
    blocker *self = (blocker *)op;
    atomic_fetch_add(self->begun, 1);
    pthread_mutex_lock(self->gate);
    pthread_mutex_unlock(self->gate);
    atomic_fetch_add(self->over, 1);
}

enum { BLOCKERS_MAX = 250 };
typedef struct blockade {
    pthread_mutex_t gate;
    atomic_long begun, over;
    blocker ops[BLOCKERS_MAX];
} blockade;

/* Blocks count workers; each of them is in its op when this returns. */
static inline blockade *blockade_begin(weft_runtime runtime, int count)
{
    blockade *b = calloc(1, sizeof *b);
    assert_non_null(b);
    pthread_mutex_init(&b->gate, NULL);
    pthread_mutex_lock(&b->gate);
    for (int i = 0; i < count; i++) {
        b->ops[i] = (blocker){{.run = block}, &b->gate, &b->begun, &b->over};
        assert_int_equal(weft_schedule(runtime, &b->ops[i].op), WEFT_OK);
    }
    wait_for(&b->begun, count);
    return b;
}

static inline void blockade_end(blockade *b, int count)
{
    assert_int_equal(atomic_load(&b->over), 0); /* nothing of what the test saw needed their end */
    pthread_mutex_unlock(&b->gate);
    wait_for(&b->over, count);
    pthread_mutex_lock(&b->gate); /* the last one has let go */
    pthread_mutex_unlock(&b->gate);
    pthread_mutex_destroy(&b->gate);
}

/* CPU time of the process. */
static inline int64_t cpu_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) abort();
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

typedef struct counted {
    weft_op op;
    atomic_long *ran;
} counted;

static inline void count(weft_op *op) { atomic_fetch_add(((counted *)op)->ran, 1); }

#endif
