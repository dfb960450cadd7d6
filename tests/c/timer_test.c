/* SPDX-License-Identifier: MIT
 *
 * timer_test.c: timers: deadlines of every kind, cancelling, stopping, and their crossing budget.
 */
#include "support.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct alarm_clock {
    weft_timer timer;
    atomic_long *done;
    int64_t deadline_ns;
    int64_t ran_at_ns;
    atomic_int runs;
} alarm_clock;

static void ring(weft_op *op)
{
    alarm_clock *self = (alarm_clock *)op;
    self->ran_at_ns = weft_now_ns();
    atomic_fetch_add(&self->runs, 1);
    atomic_fetch_add(self->done, 1);
}

static alarm_clock new_clock(atomic_long *done) { return (alarm_clock){.timer = {.op = {.run = ring}}, .done = done}; }

static void bad_timers(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    weft_timer without_run = {0};
    assert_int_equal(weft_schedule_at(runtime, NULL, 0), WEFT_EINVAL);
    assert_int_equal(weft_schedule_at(runtime, &without_run, 0), WEFT_EINVAL);
    assert_int_equal(weft_schedule_after(runtime, NULL, 0), WEFT_EINVAL);
    assert_int_equal(weft_timer_cancel(NULL), WEFT_EINVAL);
    assert_int_equal(weft_timer_remove(NULL), WEFT_EINVAL);
    assert_int_equal(weft_timer_cancel(&without_run), 1); /* idle: nothing to cancel */
    assert_int_equal(weft_timer_remove(&without_run), 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void deadlines_that_are_due_at_once(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    const int64_t deadlines[] = {0, -1, INT64_MIN, 1, weft_now_ns() - 1, weft_now_ns()};
    const int64_t timeouts[] = {0, -1, INT64_MIN};
    atomic_long done = 0;
    alarm_clock clocks[9];
    long started = 0;
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++, started++) {
        clocks[started] = new_clock(&done);
        assert_int_equal(weft_schedule_at(runtime, &clocks[started].timer, deadlines[i]), WEFT_OK);
    }
    for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++, started++) {
        clocks[started] = new_clock(&done);
        assert_int_equal(weft_schedule_after(runtime, &clocks[started].timer, timeouts[i]), WEFT_OK);
    }
    wait_for(&done, started);
    for (long i = 0; i < started; i++) assert_int_equal(clocks[i].timer.status, WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void never_and_overflowing(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    atomic_long done = 0;
    alarm_clock clocks[3] = {new_clock(&done), new_clock(&done), new_clock(&done)};
    assert_int_equal(weft_schedule_at(runtime, &clocks[0].timer, WEFT_NEVER), WEFT_OK);
    assert_int_equal(weft_schedule_after(runtime, &clocks[1].timer, INT64_MAX), WEFT_OK);
    assert_int_equal(weft_schedule_at(runtime, &clocks[2].timer, INT64_MAX - 1), WEFT_OK);
    sleep_ms(20);
    assert_int_equal(atomic_load(&done), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(weft_timer_cancel(&clocks[i].timer), WEFT_OK);
    wait_for(&done, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(clocks[i].timer.status, WEFT_ECANCELED);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void started_twice(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    atomic_long done = 0;
    alarm_clock clock = new_clock(&done);
    assert_int_equal(weft_schedule_at(runtime, &clock.timer, WEFT_NEVER), WEFT_OK);
    assert_int_equal(weft_schedule_at(runtime, &clock.timer, 0), WEFT_EBUSY);
    assert_int_equal(weft_timer_cancel(&clock.timer), WEFT_OK);
    wait_for(&done, 1);
    assert_int_equal(weft_schedule_at(runtime, &clock.timer, 0), WEFT_OK); /* idle again once run has begun */
    wait_for(&done, 2);
    assert_int_equal(clock.timer.status, WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void removed_timer_never_runs(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2);
    atomic_long done = 0;
    for (int i = 0; i < 1000; i++) {
        alarm_clock *clock = malloc(sizeof *clock);
        *clock = new_clock(&done);
        assert_int_equal(weft_schedule_after(runtime, &clock->timer, 5000000000), WEFT_OK);
        assert_int_equal(weft_timer_remove(&clock->timer), WEFT_OK);
        memset(clock, 0xff, sizeof *clock); /* the memory is ours at once */
        free(clock);
    }
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.timers_started, 1000);
    assert_int_equal(stats.timers_cancelled, 1000);
    assert_int_equal(stats.timers_fired, 0);
    assert_int_equal(atomic_load(&done), 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void stop_cancels_every_timer_once(void **state)
{
    (void)state;
    enum { N = 1000 };
    static alarm_clock clocks[N];
    weft_runtime runtime = start_runtime(2);
    atomic_long done = 0;
    for (int i = 0; i < N; i++) {
        clocks[i] = new_clock(&done);
        assert_int_equal(weft_schedule_after(runtime, &clocks[i].timer, INT64_C(1) << (32 + i % 31)), WEFT_OK);
    }
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(atomic_load(&done), N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(clocks[i].timer.status, WEFT_ECANCELED);
        assert_int_equal(atomic_load(&clocks[i].runs), 1);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* 100,000 timers: none early, each once, and a crossing per batch, not per timer. */
static void a_timer_outlives_its_runtime(void **state)
{
    (void)state;
    atomic_long done = 0;
    alarm_clock fired = new_clock(&done), stopped = new_clock(&done);
    weft_runtime runtime = start_alone();
    assert_int_equal(weft_schedule_after(runtime, &fired.timer, 0), WEFT_OK);
    assert_int_equal(weft_schedule_at(runtime, &stopped.timer, WEFT_NEVER), WEFT_OK);
    wait_for(&done, 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_int_equal(atomic_load(&done), 2);
    for (int other = 0; other < 2; other++) { /* the second time another runtime has its place */
        assert_int_equal(weft_timer_remove(&fired.timer), 1);
        assert_int_equal(weft_timer_cancel(&fired.timer), 1);
        assert_int_equal(weft_timer_remove(&stopped.timer), 1);
        assert_int_equal(weft_timer_cancel(&stopped.timer), 1);
        if (other == 0) runtime = start_alone();
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void many_timers_and_their_crossings(void **state)
{
    (void)state;
    enum { N = 100000 };
    alarm_clock *clocks = calloc(N, sizeof *clocks);
    assert_non_null(clocks);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        weft_runtime runtime = start_runtime(workers);
        atomic_long done = 0;
        weft_stats before = stats_of(runtime);
        int64_t begin = weft_now_ns();
        for (long i = 0; i < N; i++) {
            clocks[i] = new_clock(&done);
            clocks[i].deadline_ns = begin + 1000000 + i * 7919 % 50000 * 1000;
            assert_int_equal(weft_schedule_at(runtime, &clocks[i].timer, clocks[i].deadline_ns), WEFT_OK);
        }
        wait_for(&done, N);
        weft_stats after = stats_of(runtime);
        for (long i = 0; i < N; i++) {
            assert_true(clocks[i].ran_at_ns >= clocks[i].deadline_ns);
            assert_int_equal(atomic_load(&clocks[i].runs), 1);
        }
        assert_int_equal(after.timers_fired - before.timers_fired, N);
        /* 51 ms are 3,100 ticks; each may wake a worker and cost it a turn in Go. */
        assert_true(after.crossings - before.crossings <= 2 * 3200);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    }
    free(clocks);
}

typedef struct racer {
    weft_runtime runtime;
    unsigned seed;
} racer;

/* Starts timers that are about to fire and cancels them just then: each runs once, as fired or as cancelled, or is removed. */
static void *race(void *argument)
{
    racer *self = argument;
    for (int i = 0; i < 3000; i++) {
        atomic_long done = 0;
        alarm_clock clock = new_clock(&done);
        int64_t span = (int64_t)(rand_r(&self->seed) % 60) * 1000;
        if (weft_schedule_after(self->runtime, &clock.timer, span) != WEFT_OK) return "start";
        for (int64_t until = weft_now_ns() + span; weft_now_ns() < until;) {}
        bool removes = rand_r(&self->seed) % 2 == 0;
        int rc = removes ? weft_timer_remove(&clock.timer) : weft_timer_cancel(&clock.timer);
        if (removes && rc == WEFT_OK) {
            if (atomic_load(&done) != 0) return "ran though removed";
            continue;
        }
        for (int64_t until = weft_now_ns() + INT64_C(20000000000); atomic_load(&done) == 0;)
            if (weft_now_ns() > until) return "never ran";
        if (clock.timer.status != (rc == WEFT_OK ? WEFT_ECANCELED : WEFT_OK)) return "status";
    }
    return NULL;
}

static void cancel_races_with_firing(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2);
    pthread_t threads[2];
    racer racers[2] = {{runtime, (unsigned)time(NULL)}, {runtime, (unsigned)time(NULL) + 1}};
    print_message("seed %u\n", racers[0].seed);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        if (wrong != NULL) fail_msg("%s", (char *)wrong);
    }
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.timers_started, stats.timers_fired + stats.timers_cancelled);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_timers),
        cmocka_unit_test(deadlines_that_are_due_at_once),
        cmocka_unit_test(never_and_overflowing),
        cmocka_unit_test(started_twice),
        cmocka_unit_test(removed_timer_never_runs),
        cmocka_unit_test(stop_cancels_every_timer_once),
        cmocka_unit_test(a_timer_outlives_its_runtime),
        cmocka_unit_test(many_timers_and_their_crossings),
        cmocka_unit_test(cancel_races_with_firing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
