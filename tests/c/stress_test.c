/* SPDX-License-Identifier: MIT
 *
 * stress_test.c: what could be lost, at the moments at which it would be lost: single submits at random distances, stop at the moment of the last
 * op, ops that queue ops while the runtime stops, timers destroyed as they fire. Each on one CPU, on all, and with four times as many workers as
 * CPUs. The seed is printed, WEFT_SEED sets it; WEFT_TEST_SCALE multiplies the rounds. A watchdog tells the state of a run that stands still.
 */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t seed;
static long scale = 1;

static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    *state ^= *state << 13; /* xorshift64, Marsaglia 2003 */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % bound;
}

static void wait_some(uint64_t *state, uint64_t most)
{
    for (uint64_t n = random_below(state, most); n > 0; n--) __asm__ volatile("");
}

/* The watchdog. Whoever makes progress moves the count. */
static atomic_long progress;
static _Atomic(uint64_t) watched; /* handle of the runtime at work */
static atomic_bool watching = true;

static void *watch(void *unused)
{
    long last = -1;
    for (int still = 0; atomic_load(&watching); sleep_ms(100)) {
        long now = atomic_load(&progress);
        still = now == last ? still + 1 : 0;
        last = now;
        if (still < 300) continue;
        weft_stats stats = {.size = sizeof stats};
        weft_runtime_stats((weft_runtime){atomic_load(&watched)}, &stats);
        fprintf(stderr,
                "stands still after %ld: seed %llu, ops %llu injected %llu parks %llu wakes %llu steals %llu parked %llu of %llu timers %llu/%llu/%llu\n",
                now, (unsigned long long)seed, (unsigned long long)stats.ops_run, (unsigned long long)stats.injected,
                (unsigned long long)stats.parks, (unsigned long long)stats.wakes, (unsigned long long)stats.steals,
                (unsigned long long)stats.parked, (unsigned long long)stats.workers, (unsigned long long)stats.timers_started,
                (unsigned long long)stats.timers_fired, (unsigned long long)stats.timers_cancelled);
        abort();
    }
    return unused;
}

static weft_runtime stressed(uint32_t workers)
{
    weft_runtime runtime = start_runtime(workers);
    atomic_store(&watched, runtime.id);
    return runtime;
}

typedef struct flagged {
    weft_op op;
    atomic_long ran;
} flagged;

static void flag(weft_op *op)
{
    atomic_fetch_add(&((flagged *)op)->ran, 1);
    atomic_fetch_add(&progress, 1);
}

static void single_submits(uint32_t workers, uint64_t *state)
{
    weft_runtime runtime = stressed(workers);
    flagged one = {.op = {.run = flag}};
    for (long round = 1; round <= 20000 * scale; round++) {
        wait_some(state, random_below(state, 16) == 0 ? 60000 : 3000);
        if (weft_schedule(runtime, &one.op) != WEFT_OK) abort();
        for (uint32_t spins = 0; atomic_load(&one.ran) != round; spins++)
            if (spins > 1000) sched_yield();
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void *submit_late(void *argument)
{
    void **both = argument;
    uint64_t state = seed ^ (uintptr_t)argument;
    flagged *ops = both[0];
    weft_runtime *runtime = both[1];
    for (int i = 0; i < 8; i++) {
        wait_some(&state, 2000);
        if (weft_schedule(*runtime, &ops[i].op) != WEFT_OK) flag(&ops[i].op); /* a refused one is ours to run */
    }
    return NULL;
}

/* Stops while ops come in: each is refused, or runs. */
static void stop_at_the_last_op(uint32_t workers, uint64_t *state)
{
    for (long round = 0; round < 150 * scale; round++) {
        weft_runtime runtime = stressed(workers);
        flagged ops[8];
        for (int i = 0; i < 8; i++) ops[i] = (flagged){.op = {.run = flag}, .ran = 0};
        void *both[2] = {ops, &runtime};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, submit_late, both), 0);
        wait_some(state, 200000);
        assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
        pthread_join(thread, NULL);
        for (int i = 0; i < 8; i++) assert_int_equal(atomic_load(&ops[i].ran), 1);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        atomic_fetch_add(&progress, 1);
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
    atomic_fetch_add(&progress, 1);
    free(self);
}

static void ops_queued_while_stopping(uint32_t workers, uint64_t *state)
{
    for (long round = 0; round < 60 * scale; round++) {
        weft_runtime runtime = stressed(workers);
        atomic_long accepted = 1, ran = 0;
        fork_op *root = malloc(sizeof *root);
        assert_non_null(root);
        *root = (fork_op){.op = {.run = fork_on}, .runtime = runtime, .accepted = &accepted, .ran = &ran, .depth = 14};
        assert_int_equal(weft_schedule(runtime, &root->op), WEFT_OK);
        wait_some(state, 2000000);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&ran), atomic_load(&accepted));
    }
}

typedef struct clock {
    weft_timer timer;
    atomic_long ran;
} clock_op;

static void strike(weft_op *op)
{
    atomic_fetch_add(&((clock_op *)op)->ran, 1);
    atomic_fetch_add(&progress, 1);
}

/* Gives the timer's memory away the moment that it is known to be ours, just about when it fires. */
static void destroy_against_fire(uint32_t workers, uint64_t *state)
{
    weft_runtime runtime = stressed(workers);
    for (long round = 0; round < 3000 * scale; round++) {
        clock_op *clock = calloc(1, sizeof *clock);
        assert_non_null(clock);
        clock->timer.op.run = strike;
        int64_t span = (int64_t)random_below(state, 40000);
        if (weft_schedule_after(runtime, &clock->timer, span) != WEFT_OK) abort();
        wait_some(state, 60000);
        if (weft_timer_remove(&clock->timer) != WEFT_OK)
            for (uint32_t spins = 0; atomic_load(&clock->ran) == 0; spins++)
                if (spins > 1000) sched_yield();
        memset(clock, 0xff, sizeof *clock);
        free(clock);
    }
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.timers_started, stats.timers_fired + stats.timers_cancelled);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* 100,000 timers with one deadline. */
static void one_deadline(uint32_t workers, uint64_t *state)
{
    (void)state;
    enum { N = 100000 };
    clock_op *clocks = calloc(N, sizeof *clocks);
    assert_non_null(clocks);
    weft_runtime runtime = stressed(workers);
    int64_t deadline = weft_now_ns() + 30000000;
    for (int i = 0; i < N; i++) {
        clocks[i].timer.op.run = strike;
        if (weft_schedule_at(runtime, &clocks[i].timer, deadline) != WEFT_OK) abort();
    }
    while (stats_of(runtime).timers_fired < N) sleep_ms(1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    for (int i = 0; i < N; i++) assert_int_equal(atomic_load(&clocks[i].ran), 1);
    free(clocks);
}

static void in_all_settings(void (*scenario)(uint32_t workers, uint64_t *state))
{
    cpu_set_t all, first;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&first);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) == 0; cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &first);
    uint32_t cpus = (uint32_t)CPU_COUNT(&all);
    const struct {
        const cpu_set_t *set;
        uint32_t workers;
    } settings[] = {{&first, 2}, {&all, cpus}, {&all, 4 * cpus}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        uint64_t state = seed + i;
        assert_int_equal(sched_setaffinity(0, sizeof(cpu_set_t), settings[i].set), 0); /* worker threads inherit it */
        scenario(settings[i].workers, &state);
        assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    }
}

#define STRESS(scenario)                                                                     \
    static void scenario##_everywhere(void **state)                                          \
    {                                                                                        \
        (void)state;                                                                         \
        in_all_settings(scenario);                                                           \
    }
STRESS(single_submits)
STRESS(stop_at_the_last_op)
STRESS(ops_queued_while_stopping)
STRESS(destroy_against_fire)
STRESS(one_deadline)

int main(void)
{
    const char *given = getenv("WEFT_SEED"), *times = getenv("WEFT_TEST_SCALE");
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    if (seed == 0) seed = 1;
    if (times != NULL && atol(times) > 0) scale = atol(times);
    printf("seed %llu, scale %ld\n", (unsigned long long)seed, scale);
    pthread_t watchdog;
    if (pthread_create(&watchdog, NULL, watch, NULL) != 0) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_submits_everywhere),
        cmocka_unit_test(stop_at_the_last_op_everywhere),
        cmocka_unit_test(ops_queued_while_stopping_everywhere),
        cmocka_unit_test(destroy_against_fire_everywhere),
        cmocka_unit_test(one_deadline_everywhere),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    atomic_store(&watching, false);
    pthread_join(watchdog, NULL);
    return failures;
}
