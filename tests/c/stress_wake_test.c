/* SPDX-License-Identifier: MIT
 *
 * stress_wake_test.c: no wake-up is lost. One op, one timer, one byte at a time comes at random distances from the moment at
 * which the workers went to sleep, so that it meets them at every step of that: while they look for work, announce, look again,
 * sleep, and wake.
 */
#include <sys/socket.h>

#include "stress_support.h"

/* From nothing to some 40 us, every magnitude as often: a worker falls asleep within that, with or without looking for work for
 * a while. */
static void wait_for_sleep(uint64_t *random) { stress_wait(random, UINT64_C(64) << stress_below(random, 12)); }

static void single_submits(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    flagged one = {.op = {.run = flag}};
    for (long round = 1; round <= 4000 * stress_scale(); round++) {
        wait_for_sleep(random);
        if (weft_schedule(runtime, &one.op) != WEFT_OK) abort();
        wait_until(&one.ran, round);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* An op of one runtime hands another one on to the next runtime, and ends: a worker as the producer, and one that goes to sleep
 * itself. */
typedef struct relay {
    weft_op op;
    weft_runtime runtime;
    weft_op *next;
    uint64_t random;
} relay;

static void pass_on(weft_op *op)
{
    relay *self = (relay *)op;
    stress_wait(&self->random, 3000);
    if (weft_schedule(self->runtime, self->next) != WEFT_OK) abort();
}

static void single_submits_between_runtimes(uint32_t workers, uint64_t *random)
{
    weft_runtime there = stressed(workers), here = stressed(workers);
    flagged one = {.op = {.run = flag}};
    relay way = {.op = {.run = pass_on}, .runtime = here, .next = &one.op, .random = stress_random(random)};
    for (long round = 1; round <= 1000 * stress_scale(); round++) {
        wait_for_sleep(random);
        if (weft_schedule(there, &way.op) != WEFT_OK) abort();
        wait_until(&one.ran, round);
    }
    assert_int_equal(weft_runtime_destroy(there), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(here), WEFT_OK);
}

/* Several producers at once, each with one op on its way: one may rely on the wake that another one is about to make. */
typedef struct producer {
    weft_runtime runtime;
    uint64_t random;
    flagged one;
} producer;

static void *produce(void *argument)
{
    producer *self = argument;
    for (long round = 1; round <= 2000 * stress_scale(); round++) {
        wait_for_sleep(&self->random);
        if (weft_schedule(self->runtime, &self->one.op) != WEFT_OK) abort();
        wait_until(&self->one.ran, round);
    }
    return NULL;
}

static void submits_of_three(uint32_t workers, uint64_t *random)
{
    producer producers[3];
    pthread_t threads[3];
    weft_runtime runtime = stressed(workers);
    for (int i = 0; i < 3; i++) {
        producers[i] = (producer){.runtime = runtime, .random = stress_random(random), .one = {.op = {.run = flag}}};
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A timer that is earlier than what the sleepers wait for. One that was overlooked fires a minute later, with the other. */
static void single_timers(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    clocked late = {.timer = {.op = {.run = strike}}}, one = {.timer = {.op = {.run = strike}}};
    if (weft_schedule_after(runtime, &late.timer, INT64_C(3600000000000)) != WEFT_OK) abort();
    for (long round = 1; round <= 1200 * stress_scale(); round++) {
        wait_for_sleep(random);
        if (weft_schedule_after(runtime, &one.timer, (int64_t)stress_below(random, 60000)) != WEFT_OK) abort();
        wait_until(&one.ran, round);
    }
    assert_int_equal(weft_timer_cancel(&late.timer), WEFT_OK);
    wait_until(&late.ran, 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A receive that arms itself again and again, and what it has received. */
typedef struct receiver {
    weft_io io;
    weft_descriptor from;
    char byte;
    atomic_long received;
} receiver;

static void receive(receiver *self)
{
    int rc;
    while ((rc = weft_recv(&self->io, self->from, &self->byte, 1, 0)) == 1 && self->io.status == WEFT_OK && self->io.count == 1) {
        atomic_fetch_add(&self->received, 1);
        stress_progress();
    }
    if (rc < 0 && rc != WEFT_ESTOPPED) abort(); /* the last byte has been counted, and the end has begun */
}

static void received(weft_op *op)
{
    receiver *self = (receiver *)op;
    if (self->io.status != WEFT_OK) return; /* cancelled, in the end */
    atomic_fetch_add(&self->received, 1);
    stress_progress();
    receive(self);
}

static void begin_to_receive(weft_op *op) { receive(op->context); }

/* A byte at a time, against the sleep in the poller; and an op at a time, against the same. */
static void single_bytes(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    receiver reader = {.io = {.op = {.run = received}}};
    assert_int_equal(weft_descriptor_open(runtime, pair[0], &reader.from), WEFT_OK);
    weft_op begin = {.run = begin_to_receive, .context = &reader};
    if (weft_schedule(runtime, &begin) != WEFT_OK) abort();
    flagged one = {.op = {.run = flag}};
    long bytes = 0, ops = 0;
    for (long round = 1; round <= 2000 * stress_scale(); round++) {
        wait_for_sleep(random);
        if (stress_below(random, 2) == 0) {
            if (send(pair[1], "x", 1, 0) != 1) abort();
            wait_until(&reader.received, ++bytes);
        } else {
            if (weft_schedule(runtime, &one.op) != WEFT_OK) abort();
            wait_until(&one.ran, ++ops);
        }
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_int_equal(atomic_load(&reader.received), bytes);
    close(pair[1]);
}

STRESS(single_submits)
STRESS(single_submits_between_runtimes)
STRESS(submits_of_three)
STRESS(single_timers)
STRESS(single_bytes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_submits_everywhere),
        cmocka_unit_test(single_submits_between_runtimes_everywhere),
        cmocka_unit_test(submits_of_three_everywhere),
        cmocka_unit_test(single_timers_everywhere),
        cmocka_unit_test(single_bytes_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
