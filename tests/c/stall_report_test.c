/* SPDX-License-Identifier: MIT
 *
 * stall_report_test.c: who is told of stalls, what is none although it may look so, and stalls at random. WEFT_TEST_SCALE multiplies the random ones,
 * WEFT_SEED repeats them.
 */
#include "stall_support.h"

static long scale = 1;
static uint64_t seed;

typedef struct told {
    atomic_long early, late, of_mine;
    atomic_llong longest;
    weft_runtime runtime;
} told;

static void on_stall(const weft_stall *stall, void *context)
{
    told *all = context;
    bool good = stall->runtime.id == all->runtime.id && stall->thread != 0 && stall->function != NULL && stall->module != NULL &&
                weft_runtime_stop(stall->runtime) == WEFT_OK; /* allowed, and does not wait for itself */
    if (stall->function == (weft_function)block && good && stall->name != NULL && strcmp(stall->name, "a test's op") == 0 &&
        strcmp(stall->file, "stall_test.c") == 0 && stall->line == 42)
        atomic_fetch_add(&all->of_mine, 1);
    if (stall->duration_ns > atomic_load(&all->longest)) atomic_store(&all->longest, stall->duration_ns);
    atomic_fetch_add(stall->ended ? &all->late : &all->early, 1);
}

static void stalls_are_told(void **state)
{
    (void)state;
    assert_int_equal(weft_describe(NULL, "nothing", NULL, 0), WEFT_EINVAL);
    assert_int_equal(weft_describe((weft_function)block, "a test's op", "stall_test.c", 42), WEFT_OK);
    assert_int_equal(weft_describe((weft_function)block, "something else", "elsewhere.c", 1), WEFT_OK);
    told all = {0};
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 1, .on_stall = on_stall, .stall_context = &all});
    all.runtime = runtime;
    blockade *b = blockade_begin(runtime, 1);
    atomic_long ran = 0;
    counted behind = {{.run = count}, &ran};
    assert_int_equal(weft_schedule(runtime, &behind.op), WEFT_OK);
    wait_for(&ran, 1);
    int64_t blocked = weft_now_ns();
    wait_for(&all.early, 1);
    blocked = weft_now_ns() - blocked;
    blockade_end(b, 1);
    wait_for(&all.late, 1);
    assert_int_equal(atomic_load(&all.early), 1);
    assert_int_equal(atomic_load(&all.late), 1);
    assert_int_equal(atomic_load(&all.of_mine), 2);
    assert_true(atomic_load(&all.longest) >= blocked);
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.stalls, 1);
    assert_true((int64_t)stats.stalled_longest_ns >= blocked);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    free(b);
}

static void *use_cpu(void *argument)
{
    atomic_bool *going = argument;
    while (atomic_load(going)) continue;
    return NULL;
}

typedef struct short_op {
    weft_op op;
    atomic_long *ran;
} short_op;

static void work_a_little(weft_op *op)
{
    for (volatile int i = 0; i < 2000; i++) continue;
    atomic_fetch_add(((short_op *)op)->ran, 1);
}

/* On a machine where every worker waits for its CPU most of the time, ops that never block are no stalls. */
static void a_lost_cpu_is_no_stall(void **state)
{
    (void)state;
    enum { SPINNERS = 8, OPS = 200 };
    atomic_bool going = true;
    pthread_t spinners[SPINNERS];
    for (int i = 0; i < SPINNERS; i++) assert_int_equal(pthread_create(&spinners[i], NULL, use_cpu, &going), 0);
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2});
    static short_op ops[OPS];
    atomic_long ran = 0;
    for (long round = 1; round <= 50 * scale; round++) {
        for (int i = 0; i < OPS; i++) {
            ops[i] = (short_op){{.run = work_a_little}, &ran};
            assert_int_equal(weft_schedule(runtime, &ops[i].op), WEFT_OK);
        }
        wait_for(&ran, OPS * round);
    }
    weft_stats stats = stats_of(runtime);
    atomic_store(&going, false);
    for (int i = 0; i < SPINNERS; i++) pthread_join(spinners[i], NULL);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    printf("ops %llu, stalls %llu, dismissed %llu, replacements %llu\n", (unsigned long long)stats.ops_run,
           (unsigned long long)stats.stalls, (unsigned long long)stats.stalls_dismissed, (unsigned long long)stats.replacements);
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return; /* its runtime has locks that ops wait for, and whose holder may have lost its CPU: then a worker is blocked indeed */
#endif
#endif
    if (getenv("WEFT_TEST_EMULATOR") != NULL) return; /* and so has one */
    if (getenv("WEFT_TEST_DELAYS") != NULL) return; /* a delay blocks whom it meets, also in an op */
    assert_int_equal(stats.stalls, 0);
    assert_int_equal(stats.replacements, 0);
}

static void an_idle_runtime_is_no_stall(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 4});
    sleep_ms(100);
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.stalls + stats.stalls_dismissed + stats.replacements, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* Random stalls: each op blocks, computes, waits as a timer that others cancel, or queues more. A runtime is stopped now and then. */
typedef struct random_op {
    weft_timer timer; /* the op comes first */
    weft_runtime runtime;
    uint64_t state;
    int left;
    atomic_long *over;
} random_op;

static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    *state ^= *state << 13; /* xorshift64, Marsaglia 2003 */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % bound;
}

/* Windows does not tell sooner that a thread is blocked. */
#if defined(_WIN32)
enum { LONG_STALL_NS = 60000000 };
#else
enum { LONG_STALL_NS = 0 };
#endif

static atomic_long stalls_made;

static void stall_at_random(weft_op *op)
{
    random_op *self = (random_op *)op;
    uint64_t draw = random_below(&self->state, 8);
    if (draw < 4) {
        atomic_fetch_add(&stalls_made, 1);
        long span = (long)random_below(&self->state, 1000000);
        if (random_below(&self->state, 100) == 0) span += LONG_STALL_NS;
        nanosleep(&(struct timespec){.tv_nsec = span}, NULL);
    } else if (draw < 5) {
        int64_t until = weft_now_ns() + (int64_t)random_below(&self->state, 300000);
        while (weft_now_ns() < until) continue;
    }
    int rc = WEFT_ESTOPPED;
    if (--self->left > 0) {
        draw = random_below(&self->state, 3);
        rc = draw == 0   ? weft_schedule(self->runtime, op)
             : draw == 1 ? weft_yield(self->runtime, op)
                         : weft_schedule_after(self->runtime, &self->timer, (int64_t)random_below(&self->state, 2000000));
    }
    if (rc != WEFT_OK) atomic_fetch_add(self->over, 1);
}

static void random_stalls(void **state)
{
    (void)state;
    enum { OPS = 64 };
    uint64_t draw = seed;
    long runtimes = 0;
    unsigned long long replacements = 0;
    while (atomic_load(&stalls_made) < 2000 * scale) {
        weft_runtime runtime = start_with((weft_runtime_config){
            .workers = 1 + (uint32_t)random_below(&draw, 3),
            .max_workers = 3 + (uint32_t)random_below(&draw, 30),
            .keep_ns = 1 + (int64_t)random_below(&draw, 3000000),
        });
        random_op *ops = calloc(OPS, sizeof *ops);
        assert_non_null(ops);
        atomic_long over = 0;
        for (int i = 0; i < OPS; i++) {
            ops[i] = (random_op){.timer = {.op = {.run = stall_at_random}}, .runtime = runtime, .state = draw + 1 + (uint64_t)i * 977,
                                 .left = 1 + (int)random_below(&draw, 60), .over = &over};
            assert_int_equal(weft_schedule(runtime, &ops[i].timer.op), WEFT_OK);
        }
        bool stops = random_below(&draw, 2) == 0;
        for (uint64_t steps = random_below(&draw, 60); stops && steps > 0; steps--) {
            nanosleep(&(struct timespec){.tv_nsec = (long)random_below(&draw, 1000000)}, NULL);
            (void)weft_timer_cancel(&ops[random_below(&draw, OPS)].timer); /* it may be pending, queued, run, or over */
        }
        if (!stops) wait_for(&over, OPS);
        assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&over), OPS); /* each ended once, and none was lost */
        weft_stats stats = stats_of(runtime);
        assert_int_equal(stats.timers_started, stats.timers_fired + stats.timers_cancelled);
        replacements += stats.replacements;
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        free(ops);
        runtimes++;
    }
    printf("%ld stalls in %ld runtimes, %llu replacements\n", atomic_load(&stalls_made), runtimes, replacements);
    assert_true(replacements > 0);
}

int main(void)
{
    const char *given = getenv("WEFT_SEED"), *times = getenv("WEFT_TEST_SCALE");
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    if (seed == 0) seed = 1;
    if (times != NULL && atol(times) > 0) scale = atol(times);
    printf("seed %llu, scale %ld\n", (unsigned long long)seed, scale);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stalls_are_told),
        cmocka_unit_test(a_lost_cpu_is_no_stall),
        cmocka_unit_test(an_idle_runtime_is_no_stall),
        cmocka_unit_test(random_stalls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
