/* SPDX-License-Identifier: MIT
 *
 * fork_test.c: fork and join of functions: where they run, in which order, and that everybody else goes on. fork_join_test.c has what a joiner does
 * meanwhile.
 */
#include "fork_support.h"

static void where_there_is_no_worker(void **state)
{
    (void)state;
    noted one = new_noted(), two = new_noted();
    for (long round = 1; round <= 2; round++) {
        weft_fork_start(&one.fork);
        weft_fork_start(&two.fork);
        assert_int_equal(atomic_load(&one.ran), round - 1);
        weft_fork_join(&one.fork);
        weft_fork_join(&two.fork);
        assert_int_equal(atomic_load(&one.ran), round);
        assert_int_equal(atomic_load(&two.ran), round);
        assert_true(pthread_equal(one.thread, pthread_self()));
    }
}

static void newest_first(void *argument)
{
    (void)argument;
    noted forks[5];
    for (int i = 0; i < 5; i++) {
        forks[i] = new_noted();
        weft_fork_start(&forks[i].fork);
    }
    for (int i = 5; i-- > 0;) {
        weft_fork_join(&forks[i].fork);
        for (int k = 0; k < 5; k++) MUST(atomic_load(&forks[k].ran) == (k >= i));
        MUST(pthread_equal(forks[i].thread, pthread_self()));
    }
}

static void oldest_first(void *argument)
{
    (void)argument;
    noted forks[5];
    for (int i = 0; i < 5; i++) {
        forks[i] = new_noted();
        weft_fork_start(&forks[i].fork);
    }
    for (int i = 0; i < 5; i++) {
        weft_fork_join(&forks[i].fork);
        MUST(atomic_load(&forks[i].ran) == 1);
    }
}

static void taken_back_by_the_only_worker(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    on_worker(runtime, newest_first, NULL);
    on_worker(runtime, oldest_first, NULL);
    assert_int_equal(stats_of(runtime).steals, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A fork outlives the op that started it, and is joined elsewhere. */
static void only_start(void *argument) { weft_fork_start(&((noted *)argument)->fork); }

static void joined_by_another_thread(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    for (int round = 0; round < 2000; round++) {
        noted one = new_noted();
        call c = {{.run = make_call}, only_start, &one, 0};
        assert_int_equal(weft_schedule(runtime, &c.op), WEFT_OK);
        while (atomic_load(&c.done) == 0) continue;
        weft_fork_join(&one.fork);
        assert_int_equal(atomic_load(&one.ran), 1);
        assert_int_equal(one.where, 0);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* fib, forking at every step. */
typedef struct fib_call {
    weft_fork fork;
    int n;
    long result;
} fib_call;

static long fib(int n);
static void fib_run(weft_fork *fork) { ((fib_call *)fork)->result = fib(((fib_call *)fork)->n); }

static long fib(int n)
{
    if (n < 2) return n;
    fib_call other = {{.call = fib_run}, n - 2, 0};
    weft_fork_start(&other.fork);
    long mine = fib(n - 1);
    weft_fork_join(&other.fork);
    return mine + other.result;
}

static void fib_of_22(void *result) { *(long *)result = fib(22); }

static void trees(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        weft_runtime runtime = start_with((weft_runtime_config){.workers = workers, .stack_bytes = STACK_BYTES});
        for (int round = 0; round < 5; round++) {
            long result = 0;
            on_worker(runtime, fib_of_22, &result);
            assert_int_equal(result, 17711);
        }
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    }
}

static void go_on_meanwhile(void *argument)
{
    meeting *self = argument;
    weft_fork_start(&self->fork);
    spin_until(&self->begun); /* nobody but another worker can begin it */
    MUST(self->where != weft_worker_index());
    MUST(atomic_load(&self->over) == 0);
    atomic_store(&self->go, 1);
    weft_fork_join(&self->fork);
    MUST(atomic_load(&self->over) == 1);
}

static void a_lone_fork_begins_elsewhere(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2);
    for (int round = 0; round < 50; round++) {
        meeting m = {.fork = {.call = meet}};
        on_worker(runtime, go_on_meanwhile, &m);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* An op that forks and joins for long is one that holds its worker up, and a timer does not wait for its end. */
typedef struct ring_out {
    weft_timer timer;
    atomic_long rang;
} ring_out;

static void ring(weft_op *op) { atomic_store(&((ring_out *)op)->rang, 1); }

static void compute_until_it_rings(void *argument)
{
    ring_out *self = argument;
    int64_t limit = weft_now_ns() + INT64_C(40000000000);
    while (atomic_load(&self->rang) == 0) {
        MUST(fib(15) == 610);
        MUST(weft_now_ns() < limit);
    }
}

static void others_go_on(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    ring_out r = {.timer = {.op = {.run = ring}}};
    assert_int_equal(weft_schedule_after(runtime, &r.timer, 20000000), WEFT_OK);
    on_worker(runtime, compute_until_it_rings, &r);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A stop waits for the op, and so for its forks. */
static void stop_in_the_middle(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        weft_runtime runtime = start_runtime(1 + (uint32_t)round % 3);
        long result = 0;
        call c = {{.run = make_call}, fib_of_22, &result, 0};
        assert_int_equal(weft_schedule(runtime, &c.op), WEFT_OK);
        if (round % 4) sleep_ms(round % 4);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&c.done), 1);
        assert_int_equal(result, 17711);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_there_is_no_worker),
        cmocka_unit_test(taken_back_by_the_only_worker),
        cmocka_unit_test(joined_by_another_thread),
        cmocka_unit_test(trees),
        cmocka_unit_test(a_lone_fork_begins_elsewhere),
        cmocka_unit_test(others_go_on),
        cmocka_unit_test(stop_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
