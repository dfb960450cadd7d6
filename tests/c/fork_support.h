/* SPDX-License-Identifier: MIT
 *
 * fork_support.h: what the tests of forks share.
 */
#ifndef WEFT_TESTS_FORK_SUPPORT_H
#define WEFT_TESTS_FORK_SUPPORT_H

#include "stall_support.h"

/* The smallest stack that a worker may have, after what a program's thread-local variables take from it. */
enum { LOCALS = 40000, STACK_BYTES = 65536 + LOCALS };
static _Thread_local volatile char locals[LOCALS];

typedef struct noted {
    weft_fork fork;
    atomic_long ran;
    int where;
    pthread_t thread;
} noted;

static inline void note_run(weft_fork *fork)
{
    noted *self = (noted *)fork;
    self->where = weft_worker_index();
    self->thread = pthread_self();
    atomic_fetch_add(&self->ran, 1);
}

static inline noted new_noted(void) { return (noted){.fork = {.call = note_run}}; }

/* Runs a function on a worker, and waits for it. */
typedef struct call {
    weft_op op;
    void (*function)(void *);
    void *argument;
    atomic_long done;
} call;

static inline void make_call(weft_op *op)
{
    call *self = (call *)op;
    locals[LOCALS - 1] = 1;
    self->function(self->argument);
    atomic_store(&self->done, 1);
}

static inline void on_worker(weft_runtime runtime, void (*function)(void *), void *argument)
{
    call c = {{.run = make_call}, function, argument, 0};
    assert_int_equal(weft_schedule(runtime, &c.op), WEFT_OK);
    wait_for(&c.done, 1);
}

#define MUST(condition) ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), abort()))

/* A fork that begins elsewhere while its parent goes on. */
typedef struct meeting {
    weft_fork fork;
    weft_runtime runtime;
    atomic_long begun, go, over;
    int where;
    int64_t slept_ns, cpu_ns;
} meeting;

static inline void spin_until(atomic_long *what)
{
    int64_t limit = weft_now_ns() + INT64_C(40000000000);
    while (atomic_load(what) == 0) MUST(weft_now_ns() < limit);
}

static inline void meet(weft_fork *fork)
{
    meeting *self = (meeting *)fork;
    self->where = weft_worker_index();
    atomic_store(&self->begun, 1);
    spin_until(&self->go);
    atomic_store(&self->over, 1);
}

#endif
