/* SPDX-License-Identifier: MIT
 *
 * fork_test.c: fork and join of functions: where they run, what a joiner does meanwhile, and that everybody else goes on.
 */
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

static void note_run(weft_fork *fork)
{
    noted *self = (noted *)fork;
    self->where = weft_worker_index();
    self->thread = pthread_self();
    atomic_fetch_add(&self->ran, 1);
}

static noted new_noted(void) { return (noted){.fork = {.call = note_run}}; }

/* Runs a function on a worker, and waits for it. */
typedef struct call {
    weft_op op;
    void (*function)(void *);
    void *argument;
    atomic_long done;
} call;

static void make_call(weft_op *op)
{
    call *self = (call *)op;
    locals[LOCALS - 1] = 1;
    self->function(self->argument);
    atomic_store(&self->done, 1);
}

static void on_worker(weft_runtime runtime, void (*function)(void *), void *argument)
{
    call c = {{.run = make_call}, function, argument, 0};
    assert_int_equal(weft_schedule(runtime, &c.op), WEFT_OK);
    wait_for(&c.done, 1);
}

#define MUST(condition) ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), abort()))

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
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 1, .max_workers = 1});
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
    weft_runtime runtime = start_runtime(1);
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

/* A fork that begins elsewhere while its parent goes on. */
typedef struct meeting {
    weft_fork fork;
    weft_runtime runtime;
    atomic_long begun, go, over;
    int where;
    int64_t slept_ns, cpu_ns;
} meeting;

static void spin_until(atomic_long *what)
{
    int64_t limit = weft_now_ns() + INT64_C(40000000000);
    while (atomic_load(what) == 0) MUST(weft_now_ns() < limit);
}

static void meet(weft_fork *fork)
{
    meeting *self = (meeting *)fork;
    self->where = weft_worker_index();
    atomic_store(&self->begun, 1);
    spin_until(&self->go);
    atomic_store(&self->over, 1);
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

/* Only the joiner can run what ends the fork: the other worker is in it, and there is no third. */
typedef struct ending {
    weft_op op;
    meeting *meets;
} ending;

static void let_it_go(weft_op *op) { atomic_store(&((ending *)op)->meets->go, 1); }

static void help_meanwhile(void *argument)
{
    meeting *self = argument;
    ending last = {{.run = let_it_go}, self};
    weft_fork_start(&self->fork);
    spin_until(&self->begun);
    MUST(weft_schedule(self->runtime, &last.op) == WEFT_OK);
    weft_fork_join(&self->fork);
    MUST(atomic_load(&self->go) == 1 && atomic_load(&self->over) == 1);
}

static void a_joiner_runs_what_is_queued(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2, .max_workers = 2});
    for (int round = 0; round < 50; round++) {
        meeting m = {.fork = {.call = meet}, .runtime = runtime};
        on_worker(runtime, help_meanwhile, &m);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* The same when it comes from outside. */
static void join_meanwhile(void *argument)
{
    meeting *self = argument;
    weft_fork_start(&self->fork);
    spin_until(&self->begun);
    weft_fork_join(&self->fork);
    MUST(atomic_load(&self->over) == 1);
}

static void what_is_injected_is_run(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2, .max_workers = 2});
    for (int round = 0; round < 50; round++) {
        meeting m = {.fork = {.call = meet}};
        ending last = {{.run = let_it_go}, &m};
        call c = {{.run = make_call}, join_meanwhile, &m, 0};
        assert_int_equal(weft_schedule(runtime, &c.op), WEFT_OK);
        wait_for(&m.begun, 1);
        assert_int_equal(weft_schedule(runtime, &last.op), WEFT_OK);
        wait_for(&c.done, 1);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* Joins that wait, each on top of the one before: more of them than the stack has room for. */
enum { STEPS = 7, STEP_BYTES = 10000 };
typedef struct stairs {
    weft_runtime runtime;
    atomic_long begun, over;
    struct step {
        weft_op op;
        struct stairs *of;
        meeting m;
    } steps[STEPS];
} stairs;

static void stand_on(struct step *self)
{
    stairs *s = self->of;
    volatile char room[STEP_BYTES];
    room[0] = room[STEP_BYTES - 1] = 1;
    weft_fork_start(&self->m.fork);
    spin_until(&self->m.begun);
    struct step *next = self + 1;
    if (next < s->steps + STEPS) MUST(weft_schedule(s->runtime, &next->op) == WEFT_OK);
    atomic_fetch_add(&s->begun, 1);
    weft_fork_join(&self->m.fork);
    MUST(room[0] + room[STEP_BYTES - 1] == 2);
    atomic_fetch_add(&s->over, 1);
}

static void step(weft_op *op) { stand_on((struct step *)op); }

static void stacks_have_an_end(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = STEPS + 1, .max_workers = STEPS + 1, .stack_bytes = STACK_BYTES});
    stairs *s = calloc(1, sizeof *s);
    s->runtime = runtime;
    for (int i = 0; i < STEPS; i++) s->steps[i] = (struct step){{.run = step}, s, {.fork = {.call = meet}}};
    assert_int_equal(weft_schedule(runtime, &s->steps[0].op), WEFT_OK);
    wait_for(&s->begun, 2);
    sleep_ms(300);
    assert_int_equal(atomic_load(&s->over), 0);
    printf("    %ld of %d stand on each other\n", atomic_load(&s->begun), STEPS);
    for (int i = 0; i < STEPS; i++) atomic_store(&s->steps[i].m.go, 1);
    wait_for(&s->over, STEPS);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    free(s);
}

/* Where the stack is nearly used up, and there is nobody else: a joiner still runs its fork, wherever in the queue it is. */
typedef struct deep {
    weft_runtime runtime;
    bool foreign; /* an op of another kind stands on the forks */
} deep;

static void run_nothing(weft_op *op) { (void)op; }

static void use_stack(uintptr_t above, deep *d)
{
    volatile char room[1024];
    room[0] = 1;
    if (above - (uintptr_t)room < 53000) {
        use_stack(above, d);
    } else {
        static weft_op op;
        op = (weft_op){.run = run_nothing};
        noted forks[3] = {new_noted(), new_noted(), new_noted()};
        for (int i = 0; i < 3; i++) weft_fork_start(&forks[i].fork);
        if (d->foreign) MUST(weft_schedule(d->runtime, &op) == WEFT_OK);
        for (int i = 0; i < 3; i++) weft_fork_join(&forks[i].fork);
        for (int i = 0; i < 3; i++) MUST(atomic_load(&forks[i].ran) == 1);
    }
    MUST(room[0] == 1);
}

static void at_the_end_of_the_stack(void *argument)
{
    use_stack((uintptr_t)__builtin_frame_address(0), argument);
}

static void a_joiner_needs_no_help(void **state)
{
    (void)state;
    deep d = {start_with((weft_runtime_config){.workers = 1, .max_workers = 1, .stack_bytes = STACK_BYTES}), false};
    on_worker(d.runtime, at_the_end_of_the_stack, &d);
    d.foreign = true;
    on_worker(d.runtime, at_the_end_of_the_stack, &d);
    assert_int_equal(weft_runtime_destroy(d.runtime), WEFT_OK);
}

/* An op that queues itself anew for as long as the join takes. */
typedef struct again {
    weft_op op;
    weft_runtime runtime;
    atomic_long enough, ended;
} again;

static void run_again(weft_op *op)
{
    again *self = (again *)op;
    if (atomic_load(&self->enough) != 0)
        atomic_store(&self->ended, 1);
    else
        MUST(weft_schedule(self->runtime, op) == WEFT_OK);
}

static void join_below(void *argument)
{
    again *self = argument;
    noted one = new_noted();
    weft_fork_start(&one.fork);
    MUST(weft_schedule(self->runtime, &self->op) == WEFT_OK);
    weft_fork_join(&one.fork);
    MUST(atomic_load(&one.ran) == 1);
    atomic_store(&self->enough, 1);
}

static void a_joiner_is_not_kept(void **state)
{
    (void)state;
    again a = {.op = {.run = run_again}, .runtime = start_with((weft_runtime_config){.workers = 1, .max_workers = 1})};
    on_worker(a.runtime, join_below, &a);
    wait_for(&a.ended, 1);
    assert_int_equal(weft_runtime_destroy(a.runtime), WEFT_OK);
}

static int64_t cpu_ns(void)
{
    struct timespec now;
    MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void sleep_long(weft_fork *fork)
{
    atomic_store(&((meeting *)fork)->begun, 1);
    sleep_ms(300);
}

static void wait_long(void *argument)
{
    meeting *self = argument;
    int64_t began = weft_now_ns();
    weft_fork_start(&self->fork);
    spin_until(&self->begun);
    int64_t cpu = cpu_ns();
    weft_fork_join(&self->fork);
    self->slept_ns = weft_now_ns() - began;
    self->cpu_ns = cpu_ns() - cpu;
}

static void a_joiner_with_nothing_to_do_sleeps(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2);
    meeting m = {.fork = {.call = sleep_long}};
    on_worker(runtime, wait_long, &m);
    assert_true(m.slept_ns >= INT64_C(300000000));
    assert_true(m.cpu_ns < m.slept_ns / 2);
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
        cmocka_unit_test(a_joiner_runs_what_is_queued),
        cmocka_unit_test(what_is_injected_is_run),
        cmocka_unit_test(stacks_have_an_end),
        cmocka_unit_test(a_joiner_is_not_kept),
        cmocka_unit_test(a_joiner_needs_no_help),
        cmocka_unit_test(a_joiner_with_nothing_to_do_sleeps),
        cmocka_unit_test(others_go_on),
        cmocka_unit_test(stop_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
