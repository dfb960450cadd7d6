/* SPDX-License-Identifier: MIT
 *
 * stress_stop_test.c: the end of a runtime loses nothing either. It comes at the moment of the last op, among ops that queue
 * ops, among those that come from outside, while timers and I/O are being cancelled, and from inside a task that drops the last
 * handle.
 */
#include <sys/socket.h>

#include "stress_support.h"

/* Ops that each queue the next; the last one tells, and the stop comes at about that moment. */
typedef struct chained {
    weft_op op;
    weft_runtime runtime;
    atomic_long *done;
    long left;
} chained;

static void go_on(weft_op *op)
{
    chained *self = (chained *)op;
    if (self->left == 0) {
        atomic_fetch_add(self->done, 1);
        return;
    }
    self->left--;
    /* A stop that has begun refuses it; then the chain ends here, and the count of what was left tells. */
    if (weft_schedule(self->runtime, op) != WEFT_OK) atomic_fetch_add(self->done, 1);
}

static void stop_at_the_last_op(uint32_t workers, uint64_t *random)
{
    for (long round = 0; round < 170 * stress_scale(); round++) {
        weft_runtime runtime = stressed(workers);
        atomic_long done = 0;
        long length = (long)stress_below(random, 200);
        chained chain = {.op = {.run = go_on}, .runtime = runtime, .done = &done, .left = length};
        if (weft_schedule(runtime, &chain.op) != WEFT_OK) abort();
        if (stress_below(random, 2) == 0)
            wait_until(&done, 1);
        else
            stress_wait(random, (uint64_t)length * 400 + 1000);
        stress_wait(random, 300);
        assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&done), 1);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        stress_progress();
    }
}

/* Stops while ops, timers and receives come in: each is refused, or runs, once. */
enum { LATE = 1000, LATE_WAITS = 8 };

typedef struct late {
    weft_runtime runtime;
    uint64_t random;
    atomic_long begun;
    long count; /* of ops that were accepted */
    flagged ops[LATE];
    clocked timers[LATE_WAITS];
    struct late_receive {
        weft_io io;
        weft_descriptor descriptor;
        atomic_long ran;
        char byte;
    } receives[LATE_WAITS];
    int timer_codes[LATE_WAITS], receive_codes[LATE_WAITS];
} late;

static void receive_ended(weft_op *op)
{
    struct late_receive *self = (struct late_receive *)op;
    if (self->io.status != WEFT_ECANCELED) abort();
    atomic_fetch_add(&self->ran, 1);
}

static void *submit_late(void *argument)
{
    late *self = argument;
    atomic_store(&self->begun, 1);
    int waits = 0;
    while (self->count < LATE) {
        stress_wait(&self->random, 1000);
        if (stress_below(&self->random, 8) == 0 && waits < LATE_WAITS) {
            self->timer_codes[waits] = weft_schedule_after(self->runtime, &self->timers[waits].timer, INT64_C(3600000000000));
            struct late_receive *receive = &self->receives[waits];
            self->receive_codes[waits++] = weft_recv(&receive->io, receive->descriptor, &receive->byte, 1, 0);
        }
        if (weft_schedule(self->runtime, &self->ops[self->count].op) != WEFT_OK) break;
        self->count++;
    }
    for (; waits < LATE_WAITS; waits++) self->timer_codes[waits] = self->receive_codes[waits] = WEFT_ESTOPPED;
    return NULL;
}

static void stop_among_submits(uint32_t workers, uint64_t *random)
{
    for (long round = 0; round < 60 * stress_scale(); round++) {
        static late all;
        int others[LATE_WAITS];
        memset(&all, 0, sizeof all);
        all.runtime = stressed(workers);
        all.random = stress_random(random);
        for (int i = 0; i < LATE; i++) all.ops[i].op.run = flag;
        for (int i = 0; i < LATE_WAITS; i++) {
            int pair[2];
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
            assert_int_equal(weft_descriptor_open(all.runtime, pair[0], &all.receives[i].descriptor), WEFT_OK);
            all.receives[i].io.op.run = receive_ended;
            all.timers[i].timer.op.run = strike;
            others[i] = pair[1];
        }
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, submit_late, &all), 0);
        wait_until(&all.begun, 1);
        stress_wait(random, 60000);
        assert_int_equal(weft_runtime_stop(all.runtime), WEFT_OK);
        pthread_join(thread, NULL);
        for (int i = 0; i < LATE; i++) assert_int_equal(atomic_load(&all.ops[i].ran), i < all.count);
        for (int i = 0; i < LATE_WAITS; i++) {
            assert_int_equal(atomic_load(&all.timers[i].ran), all.timer_codes[i] == WEFT_OK);
            assert_int_equal(atomic_load(&all.receives[i].ran), all.receive_codes[i] == WEFT_OK);
            close(others[i]);
        }
        assert_int_equal(weft_runtime_destroy(all.runtime), WEFT_OK);
        stress_progress();
    }
}

typedef struct fork {
    weft_op op;
    weft_runtime runtime;
    atomic_long *accepted, *ran;
    int depth;
} fork_op;

/* Queues two more until refused. What was accepted must run; what was refused is ours to free. */
static void fork_on(weft_op *op)
{
    fork_op *self = (fork_op *)op;
    for (int i = 0; i < 2 && self->depth > 0; i++) {
        fork_op *child = malloc(sizeof *child);
        if (child == NULL) abort();
        *child = *self;
        child->op.next_ = NULL;
        child->depth--;
        atomic_fetch_add(self->accepted, 1);
        if (weft_schedule(self->runtime, &child->op) != WEFT_OK) {
            atomic_fetch_sub(self->accepted, 1);
            free(child);
        }
    }
    atomic_fetch_add(self->ran, 1);
    stress_progress();
    free(self);
}

static void ops_queued_while_stopping(uint32_t workers, uint64_t *random)
{
    for (long round = 0; round < 20 * stress_scale(); round++) {
        weft_runtime runtime = stressed(workers);
        atomic_long accepted = 1, ran = 0;
        fork_op *root = malloc(sizeof *root);
        assert_non_null(root);
        *root = (fork_op){.op = {.run = fork_on}, .runtime = runtime, .accepted = &accepted, .ran = &ran, .depth = 14};
        assert_int_equal(weft_schedule(runtime, &root->op), WEFT_OK);
        stress_wait(random, 2000000);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&ran), atomic_load(&accepted));
    }
}

/* A wait of each kind, which a thread and the stop both want to cancel. Its run must come once, whoever was first, and also
 * when the drain of the runtime had ended before the canceller came to it. */
enum { WAITS = 16 };

typedef struct waits {
    weft_io receives[WAITS];
    clocked timers[WAITS];
    atomic_long received;
    uint64_t random;
} waits;

static void count_receive(weft_op *op)
{
    weft_io *io = (weft_io *)op;
    if (io->status != WEFT_ECANCELED) abort();
    atomic_fetch_add((atomic_long *)op->context, 1);
    stress_progress();
}

static void *cancel_waits(void *argument)
{
    waits *self = argument;
    for (int i = 0; i < WAITS; i++) {
        stress_wait(&self->random, 1500);
        weft_io_cancel(&self->receives[i]);
        weft_timer_cancel(&self->timers[i].timer);
    }
    return NULL;
}

static void stop_against_cancel(uint32_t workers, uint64_t *random)
{
    for (long round = 0; round < 20 * stress_scale(); round++) {
        weft_runtime runtime = stressed(workers);
        static waits all;
        memset(&all, 0, sizeof all);
        all.random = stress_random(random);
        int others[WAITS];
        char byte;
        for (int i = 0; i < WAITS; i++) {
            int pair[2];
            weft_descriptor descriptor;
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
            assert_int_equal(weft_descriptor_open(runtime, pair[0], &descriptor), WEFT_OK);
            others[i] = pair[1];
            all.receives[i].op = (weft_op){.run = count_receive, .context = &all.received};
            assert_int_equal(weft_recv(&all.receives[i], descriptor, &byte, 1, 0), WEFT_OK);
            all.timers[i].timer.op.run = strike;
            assert_int_equal(weft_schedule_after(runtime, &all.timers[i].timer, INT64_C(3600000000000)), WEFT_OK);
        }
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancel_waits, &all), 0);
        stress_wait(random, 150000);
        assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
        pthread_join(thread, NULL);
        assert_int_equal(atomic_load(&all.received), WAITS);
        for (int i = 0; i < WAITS; i++) {
            assert_int_equal(atomic_load(&all.timers[i].ran), 1);
            assert_int_equal(all.timers[i].timer.status, WEFT_ECANCELED);
            close(others[i]);
        }
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    }
}

/* The last handle goes inside a task: nobody waits for that runtime, which must run what it has accepted, and end. */
enum { DROPPED = 8 };

typedef struct dropping {
    weft_op op;
    weft_runtime runtime;
    flagged others[DROPPED];
    atomic_long destroyed;
} dropping;

static void drop(weft_op *op)
{
    dropping *self = (dropping *)op;
    weft_runtime runtime = self->runtime;
    if (weft_runtime_destroy(runtime) != WEFT_OK) abort();
    atomic_store(&self->destroyed, 1);
}

static void last_handle_dropped_inside_a_task(uint32_t workers, uint64_t *random)
{
    for (long round = 0; round < 30 * stress_scale(); round++) {
        dropping all = {.op = {.run = drop}, .runtime = stressed(workers)};
        for (int i = 0; i < DROPPED; i++) all.others[i] = (flagged){.op = {.run = flag}, .ran = 0};
        if (weft_schedule(all.runtime, &all.op) != WEFT_OK) abort();
        bool taken[DROPPED];
        for (int i = 0; i < DROPPED; i++) {
            stress_wait(random, 3000);
            taken[i] = weft_schedule(all.runtime, &all.others[i].op) == WEFT_OK;
        }
        wait_until(&all.destroyed, 1);
        for (int i = 0; i < DROPPED; i++)
            if (taken[i]) wait_until(&all.others[i].ran, 1);
        /* The handle is stale once the last worker has ended. */
        for (uint32_t spins = 0; weft_runtime_status(all.runtime) != WEFT_EBADHANDLE;) stress_pause(&spins);
        for (int i = 0; i < DROPPED; i++) assert_int_equal(atomic_load(&all.others[i].ran), taken[i]);
        stress_progress();
    }
}

STRESS(stop_at_the_last_op)
STRESS(stop_among_submits)
STRESS(ops_queued_while_stopping)
STRESS(stop_against_cancel)
STRESS(last_handle_dropped_inside_a_task)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_at_the_last_op_everywhere),
        cmocka_unit_test(stop_among_submits_everywhere),
        cmocka_unit_test(ops_queued_while_stopping_everywhere),
        cmocka_unit_test(stop_against_cancel_everywhere),
        cmocka_unit_test(last_handle_dropped_inside_a_task_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
