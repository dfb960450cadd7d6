/* SPDX-License-Identifier: MIT
 *
 * fork_join_test.c: what a joiner does until its fork is done, and what it does not.
 */
#include "fork_support.h"

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

/* A joiner who never runs out of ops of his own, while the only other worker is in the fork: those from outside, and timers, have their turn. */
typedef struct busy_join {
    meeting m;
    again busy;
} busy_join;

static void join_on_top_of(void *argument)
{
    busy_join *self = argument;
    weft_fork_start(&self->m.fork);
    spin_until(&self->m.begun);
    MUST(weft_schedule(self->busy.runtime, &self->busy.op) == WEFT_OK);
    weft_fork_join(&self->m.fork);
    atomic_store(&self->busy.enough, 1);
}

typedef struct late_ending {
    weft_timer timer;
    meeting *meets;
} late_ending;

static void let_it_go_late(weft_op *op) { atomic_store(&((late_ending *)op)->meets->go, 1); }

static void a_busy_joiner_lets_others_have_turns(void **state)
{
    (void)state;
    weft_runtime runtime = start_with((weft_runtime_config){.workers = 2, .max_workers = 2});
    for (int round = 0; round < 20; round++) {
        busy_join b = {.m = {.fork = {.call = meet}}, .busy = {.op = {.run = run_again}, .runtime = runtime}};
        ending last = {{.run = let_it_go}, &b.m};
        late_ending late = {{.op = {.run = let_it_go_late}}, &b.m};
        call c = {{.run = make_call}, join_on_top_of, &b, 0};
        assert_int_equal(weft_schedule(runtime, &c.op), WEFT_OK);
        wait_for(&b.m.begun, 1);
        if (round % 2 == 0)
            assert_int_equal(weft_schedule(runtime, &last.op), WEFT_OK);
        else
            assert_int_equal(weft_schedule_after(runtime, &late.timer, 1000000), WEFT_OK);
        wait_for(&b.m.go, 1);
        wait_for(&c.done, 1);
        wait_for(&b.busy.ended, 1);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_joiner_runs_what_is_queued),
        cmocka_unit_test(what_is_injected_is_run),
        cmocka_unit_test(stacks_have_an_end),
        cmocka_unit_test(a_joiner_is_not_kept),
        cmocka_unit_test(a_busy_joiner_lets_others_have_turns),
        cmocka_unit_test(a_joiner_needs_no_help),
        cmocka_unit_test(a_joiner_with_nothing_to_do_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
