/* SPDX-License-Identifier: MIT
 *
 * stress_timer_test.c: a timer fires or is cancelled, once, and its memory can go the moment that it is known to be ours, just
 * about when it fires.
 */
#include "stress_support.h"

static void destroy_against_fire(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    for (long round = 0; round < 1500 * stress_scale(); round++) {
        clocked *clock = calloc(1, sizeof *clock);
        assert_non_null(clock);
        clock->timer.op.run = strike;
        int64_t span = (int64_t)stress_below(random, 40000);
        if (weft_schedule_after(runtime, &clock->timer, span) != WEFT_OK) abort();
        stress_wait(random, 60000);
        if (weft_timer_remove(&clock->timer) != WEFT_OK) wait_until(&clock->ran, 1);
        memset(clock, 0xff, sizeof *clock);
        free(clock);
    }
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.timers_started, stats.timers_fired + stats.timers_cancelled);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* The run frees the timer; the canceller may still look at it until it is told that. */
typedef struct owned {
    clocked clock;
    atomic_long cancels; /* cancellers that are inside */
    atomic_long *freed;
    atomic_long *cancelled;
} owned;

static void strike_and_go(weft_op *op)
{
    owned *self = (owned *)op;
    if (self->clock.timer.status == WEFT_ECANCELED)
        atomic_fetch_add(self->cancelled, 1);
    else if (self->clock.timer.status != WEFT_OK)
        abort();
    for (uint32_t spins = 0; atomic_load(&self->cancels) != 0;) stress_pause(&spins);
    atomic_long *freed = self->freed;
    memset(self, 0xff, sizeof *self);
    free(self);
    atomic_fetch_add(freed, 1);
    stress_progress();
}

static void cancel_against_fire(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    atomic_long freed = 0, cancelled = 0;
    long cancels = 0, rounds = 1500 * stress_scale();
    for (long round = 1; round <= rounds; round++) {
        owned *timer = calloc(1, sizeof *timer);
        assert_non_null(timer);
        timer->clock.timer.op.run = strike_and_go;
        timer->freed = &freed;
        timer->cancelled = &cancelled;
        atomic_store(&timer->cancels, 1);
        if (weft_schedule_after(runtime, &timer->clock.timer, (int64_t)stress_below(random, 40000)) != WEFT_OK) abort();
        stress_wait(random, 60000);
        cancels += weft_timer_cancel(&timer->clock.timer) == WEFT_OK;
        atomic_fetch_sub(&timer->cancels, 1); /* our last access */
        wait_until(&freed, round);
    }
    assert_int_equal(atomic_load(&cancelled), cancels);
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.timers_cancelled, cancels);
    assert_int_equal(stats.timers_fired, rounds - cancels);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* 100,000 timers with one deadline; every seventh is cancelled at about that time. */
static void one_deadline(uint32_t workers, uint64_t *random)
{
    enum { N = 100000 };
    clocked *clocks = calloc(N, sizeof *clocks);
    assert_non_null(clocks);
    weft_runtime runtime = stressed(workers);
    int64_t deadline = weft_now_ns() + 30000000;
    for (int i = 0; i < N; i++) {
        clocks[i].timer.op.run = strike;
        if (weft_schedule_at(runtime, &clocks[i].timer, deadline) != WEFT_OK) abort();
    }
    uint64_t cancels = 0;
    for (int i = (int)stress_below(random, 7); i < N; i += 7) cancels += weft_timer_cancel(&clocks[i].timer) == WEFT_OK;
    for (int i = 0; i < N; i++) wait_until(&clocks[i].ran, 1);
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.timers_cancelled, cancels);
    assert_int_equal(stats.timers_fired, N - cancels);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    for (int i = 0; i < N; i++) assert_int_equal(atomic_load(&clocks[i].ran), 1);
    free(clocks);
}

/* 100,000 ops that all wait for the moment at which one timer fires, and are queued by it. */
typedef struct starter {
    weft_timer timer;
    weft_runtime runtime;
    flagged *ops;
    long count;
} starter;

static void start_all(weft_op *op)
{
    starter *self = (starter *)op;
    for (long i = 0; i < self->count; i++)
        if (weft_schedule(self->runtime, &self->ops[i].op) != WEFT_OK) abort();
}

static void one_timer_for_all(uint32_t workers, uint64_t *random)
{
    enum { N = 100000 };
    flagged *ops = calloc(N, sizeof *ops);
    starter all = {.timer = {.op = {.run = start_all}}, .runtime = stressed(workers), .ops = ops, .count = N};
    assert_non_null(all.ops);
    for (long i = 0; i < N; i++) all.ops[i].op.run = flag;
    if (weft_schedule_after(all.runtime, &all.timer, (int64_t)stress_below(random, 1000000)) != WEFT_OK) abort();
    for (long i = 0; i < N; i++) wait_until(&all.ops[i].ran, 1);
    assert_int_equal(weft_runtime_destroy(all.runtime), WEFT_OK);
    for (long i = 0; i < N; i++) assert_int_equal(atomic_load(&all.ops[i].ran), 1);
    free(all.ops);
}

/* Timers that start themselves again, each time in the wheel of the worker that runs them, while somebody cancels them: in the old wheel or the new one. */
enum { RESTARTED = 16 };

typedef struct restarted {
    weft_timer timer;
    weft_runtime runtime;
    uint64_t random;
    long left, cancelled;
    atomic_int waits;
    atomic_long *over;
} restarted;

static void start_again(restarted *self)
{
    if (self->left-- == 0) {
        atomic_fetch_add(self->over, 1);
        return;
    }
    if (atomic_exchange(&self->waits, 1) != 0) abort();
    if (weft_schedule_after(self->runtime, &self->timer, 20000 + (int64_t)stress_below(&self->random, 60000)) != WEFT_OK) abort();
}

static void strike_again(weft_op *op)
{
    restarted *self = (restarted *)op;
    if (atomic_exchange(&self->waits, 0) != 1) abort(); /* once for each start */
    self->cancelled += self->timer.status == WEFT_ECANCELED;
    stress_progress();
    start_again(self);
}

static void cancel_against_restart(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    atomic_long over = 0;
    static restarted timers[RESTARTED];
    for (int i = 0; i < RESTARTED; i++)
        timers[i] = (restarted){.timer.op.run = strike_again, .runtime = runtime, .random = stress_random(random),
                                .left = 400 * stress_scale(), .over = &over};
    for (int i = 0; i < RESTARTED; i++) start_again(&timers[i]);
    long cancels = 0, cancelled = 0;
    while (atomic_load(&over) < RESTARTED) {
        cancels += weft_timer_cancel(&timers[stress_below(random, RESTARTED)].timer) == WEFT_OK;
        stress_wait(random, 3000);
        if (stress_below(random, 16) == 0) sched_yield();
    }
    for (int i = 0; i < RESTARTED; i++) cancelled += timers[i].cancelled;
    assert_int_equal(cancelled, cancels);
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.timers_started, RESTARTED * 400 * stress_scale());
    assert_int_equal(stats.timers_started, stats.timers_fired + stats.timers_cancelled);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

STRESS(destroy_against_fire)
STRESS(cancel_against_restart)
STRESS(cancel_against_fire)
STRESS(one_deadline)
STRESS(one_timer_for_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroy_against_fire_everywhere),
        cmocka_unit_test(cancel_against_fire_everywhere),
        cmocka_unit_test(cancel_against_restart_everywhere),
        cmocka_unit_test(one_deadline_everywhere),
        cmocka_unit_test(one_timer_for_all_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
