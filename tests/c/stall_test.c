/* SPDX-License-Identifier: MIT
 *
 * stall_test.c: ops that hold up their worker, by blocking or by computing, and what happens to everybody else. The clock decides nothing here:
 * what must go on is what ends the stall, or must have happened before it ends.
 */
#include "stall_support.h"

#include <sys/socket.h>

typedef struct ticking {
    weft_timer timer; /* the op comes first */
    atomic_long *ran;
    int left;
    weft_runtime runtime;
} ticking;

/* A timer that starts itself again. */
static void tick(weft_op *op)
{
    ticking *self = (ticking *)op;
    atomic_fetch_add(self->ran, 1);
    if (--self->left > 0 && weft_schedule_after(self->runtime, &self->timer, 1000000) != WEFT_OK) abort();
}

typedef struct talking {
    weft_io io;
    atomic_long ran;
} talking;

static void hear(weft_op *op) { atomic_fetch_add(&((talking *)op)->ran, 1); }

/* All workers wait for a mutex. Ops, timers and sockets of everybody else go on. */
static void all_blocked_and_all_goes_on(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers++) {
        weft_runtime runtime = start_with((weft_runtime_config){.workers = workers});
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        weft_descriptor descriptor;
        assert_int_equal(weft_descriptor_open(runtime, ends[0], &descriptor), WEFT_OK);
        atomic_long ran = 0, ticks = 0;
        ticking timer = {.timer = {.op = {.run = tick}}, .ran = &ticks, .left = 20, .runtime = runtime};
        talking talk = {.io = {.op = {.run = hear}}};
        char byte;
        assert_int_equal(weft_recv(&talk.io, descriptor, &byte, 1, 0), WEFT_OK);

        blockade *b = blockade_begin(runtime, (int)workers);
        assert_int_equal(weft_schedule_after(runtime, &timer.timer, 1000000), WEFT_OK);
        wait_for(&ticks, 20);
        assert_int_equal(send(ends[1], "x", 1, 0), 1);
        wait_for(&talk.ran, 1);
        counted ops[100];
        for (int i = 0; i < 100; i++) {
            ops[i] = (counted){{.run = count}, &ran};
            assert_int_equal(weft_schedule(runtime, &ops[i].op), WEFT_OK);
        }
        wait_for(&ran, 100);
        blockade_end(b, (int)workers);

        weft_stats stats = stats_of(runtime);
        assert_true(stats.stalls >= 1);
        assert_true(stats.replacements >= 1);
        assert_true(stats.recoveries >= 1 && stats.recoveries <= stats.replacements);
        assert_true(stats.recovery_total_ns >= stats.recovery_longest_ns && stats.recovery_longest_ns > 0);
        assert_int_equal(weft_descriptor_close(descriptor), WEFT_OK);
        close(ends[1]);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        free(b);
    }
}

typedef struct waiting {
    weft_op op;
    weft_runtime runtime;
    counted behind;
    atomic_long *ran;
    bool computes;
} waiting;

/* Queues an op behind itself and waits for it: by blocking, or by computing. */
static void wait_for_next(weft_op *op)
{
    waiting *self = (waiting *)op;
    if (weft_schedule(self->runtime, &self->behind.op) != WEFT_OK) abort();
    while (atomic_load(self->behind.ran) == 0)
        if (!self->computes) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_fetch_add(self->ran, 1);
}

static void waits_for_its_own(uint32_t workers, int count_of, bool computes)
{
    weft_runtime runtime = start_with((weft_runtime_config){.workers = workers});
    atomic_long over = 0, behind[BLOCKERS_MAX] = {0};
    waiting ops[BLOCKERS_MAX];
    for (int i = 0; i < count_of; i++) {
        ops[i] = (waiting){{.run = wait_for_next}, runtime, {{.run = count}, &behind[i]}, &over, computes};
        assert_int_equal(weft_schedule(runtime, &ops[i].op), WEFT_OK);
    }
    wait_for(&over, count_of);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    for (int i = 0; i < count_of; i++) assert_int_equal(atomic_load(&behind[i]), 1);
}

/* Each would wait for ever without others who take what stands behind it. */
static void what_stands_behind_an_op_runs(void **state)
{
    (void)state;
    waits_for_its_own(2, 1, false);
    waits_for_its_own(1, 1, false);
    waits_for_its_own(2, 2, false);
    waits_for_its_own(2, 40, false);
}

static void a_computing_op_counts_as_well(void **state)
{
    (void)state;
    waits_for_its_own(2, 1, true);
    waits_for_its_own(1, 1, true);
    waits_for_its_own(2, 2, true);
}

/* The monitor, who sleeps while all sleep, is awake again when a timer has woken a worker. */
typedef struct late_waiting {
    weft_timer timer; /* the op comes first */
    waiting wait;
} late_waiting;

static void wait_for_next_of(weft_op *op) { wait_for_next(&((late_waiting *)op)->wait.op); }

static void a_stall_after_a_long_rest(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2});
    atomic_long over = 0, behind = 0;
    late_waiting late = {.timer = {.op = {.run = wait_for_next_of}}, .wait = {{0}, runtime, {{.run = count}, &behind}, &over, false}};
    assert_int_equal(weft_schedule_after(runtime, &late.timer, 300000000), WEFT_OK);
    wait_for(&over, 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_int_equal(atomic_load(&behind), 1);
}

#if !defined(_WIN32) /* Wine does not tell whether a thread that has no CPU waits for one */
/* Of computing ops there run at most one more than there are CPUs, or than workers if these are more. */
static void compute(weft_op *op)
{
    blocker *self = (blocker *)op;
    long now = atomic_fetch_add(self->begun, 1) + 1;
    int64_t until = weft_now_ns() + 60000000;
    while (weft_now_ns() < until) continue;
    atomic_fetch_sub(self->begun, 1);
    long most = atomic_load(self->over);
    while (most < now && !atomic_compare_exchange_weak(self->over, &most, now)) continue;
}

static void computing_ops_get_one_thread_more(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 1});
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    atomic_long now = 0, most = 0;
    blocker ops[12];
    for (int i = 0; i < 12; i++) {
        ops[i] = (blocker){{.run = compute}, NULL, &now, &most};
        assert_int_equal(weft_schedule(runtime, &ops[i].op), WEFT_OK);
    }
    WAIT_UNTIL(stats_of(runtime).ops_run == 12);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_true(atomic_load(&most) <= cpus + 1);
}
#endif

/* When there may be no more workers, the rest waits; where replacements are forbidden, nothing runs beside a blocked op. */
static void max_workers_is_the_bound(void **state)
{
    (void)state;
    for (uint32_t most = 1; most <= 4; most += 3) {
        weft_runtime runtime = start_with((weft_runtime_config){.workers = 1, .max_workers = most});
        blockade *b = blockade_begin(runtime, (int)most);
        assert_int_equal(stats_of(runtime).max_workers, most);
        assert_int_equal(stats_of(runtime).workers, most);
        atomic_long ran = 0;
        counted last = {{.run = count}, &ran};
        assert_int_equal(weft_schedule(runtime, &last.op), WEFT_OK);
        sleep_ms(50);
        assert_int_equal(atomic_load(&ran), 0);
        assert_int_equal(stats_of(runtime).workers, most);
        blockade_end(b, (int)most);
        wait_for(&ran, 1);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        free(b);
    }
}

static void config_is_checked(void **state)
{
    (void)state;
    const weft_runtime_config bad[] = {
        {.workers = 2, .max_workers = 1}, {.max_workers = 257}, {.flags = 2}, {.keep_ns = -1}, {.stall_ns = -1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft_runtime_config config = bad[i];
        config.size = sizeof config;
        weft_runtime runtime;
        assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_EINVAL);
    }
    weft_runtime runtime = start_with((weft_runtime_config){.max_workers = 1});
    assert_int_equal(stats_of(runtime).workers, 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void threads_go_back_to_the_base(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2, .keep_ns = 20000000});
    long base = threads_now();
    for (int round = 0; round < 3; round++) {
        blockade *b = blockade_begin(runtime, 12);
        assert_true(threads_now() >= base + 10);
        blockade_end(b, 12);
        WAIT_UNTIL(threads_now() == base);
        assert_int_equal(stats_of(runtime).workers, 2);
        free(b);
    }
    /* Kept ones are used again. */
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    runtime = start_with((weft_runtime_config){.workers = 2});
    for (int round = 0; round < 3; round++) {
        blockade *b = blockade_begin(runtime, 12);
        blockade_end(b, 12);
        WAIT_UNTIL(stats_of(runtime).workers == 2);
        assert_true(threads_now() <= base + 11);
        free(b);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void *open_late(void *argument)
{
    blockade *b = argument;
    sleep_ms(30);
    pthread_mutex_unlock(&b->gate);
    return NULL;
}

/* Stop begins while all are blocked, with ops queued behind them that nothing else runs. */
static void stop_while_all_are_blocked(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        weft_runtime runtime = start_with((weft_runtime_config){.workers = 2, .max_workers = round < 3 ? 2 : 8});
        blockade *b = blockade_begin(runtime, 2);
        atomic_long ran = 0;
        counted ops[50];
        for (int i = 0; i < 50; i++) {
            ops[i] = (counted){{.run = count}, &ran};
            assert_int_equal(weft_schedule(runtime, &ops[i].op), WEFT_OK);
        }
        pthread_t opener;
        assert_int_equal(pthread_create(&opener, NULL, open_late, b), 0);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&ran), 50);
        pthread_join(opener, NULL);
        free(b);
    }
}

/* Many workers rest at once in the end, and let each other. Each of those that went on looking for work needed one of Go's processors for it, of which there are as many
 * as CPUs: the end took half a minute. */
static void a_crowd_comes_to_its_end(void **state)
{
    (void)state;
    enum { CROWD = BLOCKERS_MAX };
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2});
    blockade *b = blockade_begin(runtime, CROWD);
    int64_t cpu = cpu_ns();
    pthread_mutex_unlock(&b->gate);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    cpu = cpu_ns() - cpu;
    printf("    %d ms of CPU\n", (int)(cpu / 1000000));
    assert_int_equal(atomic_load(&b->over), CROWD);
    assert_true(cpu < INT64_C(4000000000) || getenv("WEFT_TEST_EMULATOR") != NULL);
    free(b);
}

typedef struct latch_op {
    weft_op op;
    atomic_long *open, *begun;
} latch_op;

static void latch_wait(weft_op *op)
{
    latch_op *self = (latch_op *)op;
    atomic_fetch_add(self->begun, 1);
    while (atomic_load(self->open) == 0) sleep_ms(1);
}

/* A stopping runtime too lets others run what the blocked ones wait for. */
static void stop_waits_for_what_only_a_queued_op_ends(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2});
    atomic_long open = 0, begun = 0;
    latch_op ops[2];
    for (int i = 0; i < 2; i++) {
        ops[i] = (latch_op){{.run = latch_wait}, &open, &begun};
        assert_int_equal(weft_schedule(runtime, &ops[i].op), WEFT_OK);
    }
    wait_for(&begun, 2);
    counted last = {{.run = count}, &open};
    assert_int_equal(weft_schedule(runtime, &last.op), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_int_equal(atomic_load(&open), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_blocked_and_all_goes_on),
        cmocka_unit_test(what_stands_behind_an_op_runs),
        cmocka_unit_test(a_computing_op_counts_as_well),
        cmocka_unit_test(a_stall_after_a_long_rest),
#if !defined(_WIN32)
        cmocka_unit_test(computing_ops_get_one_thread_more),
#endif
        cmocka_unit_test(max_workers_is_the_bound),
        cmocka_unit_test(config_is_checked),
        cmocka_unit_test(threads_go_back_to_the_base),
        cmocka_unit_test(stop_while_all_are_blocked),
        cmocka_unit_test(a_crowd_comes_to_its_end),
        cmocka_unit_test(stop_waits_for_what_only_a_queued_op_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
