/* SPDX-License-Identifier: MIT
 *
 * op_test.c: queues: order, fairness, batches, runnables, and the crossing budget: what may cost a call between C and Go.
 */
#include "support.h"

#include <pthread.h>

typedef struct counted {
    weft_op op;
    weft_runtime runtime;
    long left;
    atomic_long *done;
    long *order; /* where to leave a mark */
    long mark;
} counted;

static void count(weft_op *op)
{
    counted *self = (counted *)op;
    atomic_fetch_add(self->done, 1);
}

static void hop(weft_op *op)
{
    counted *self = (counted *)op;
    if (--self->left == 0)
        atomic_fetch_add(self->done, 1);
    else if (weft_schedule(self->runtime, op) != WEFT_OK)
        abort();
}

static void yield_hop(weft_op *op)
{
    counted *self = (counted *)op;
    if (--self->left == 0)
        atomic_fetch_add(self->done, 1);
    else if (weft_yield(self->runtime, op) != WEFT_OK)
        abort();
}

static void bad_ops(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    weft_op without_run = {0}, fine = {.run = count};
    weft_op *batch[] = {&fine, NULL};
    assert_int_equal(weft_schedule(runtime, NULL), WEFT_EINVAL);
    assert_int_equal(weft_schedule(runtime, &without_run), WEFT_EINVAL);
    assert_int_equal(weft_yield(runtime, NULL), WEFT_EINVAL);
    assert_int_equal(weft_resume(runtime, &without_run), WEFT_EINVAL);
    assert_int_equal(weft_schedule_batch(runtime, batch, 2), WEFT_EINVAL); /* and none of them runs */
    assert_int_equal(weft_schedule_batch(runtime, NULL, 1), WEFT_EINVAL);
    assert_int_equal(weft_schedule_batch(runtime, NULL, 0), WEFT_OK);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(stats_of(runtime).ops_run, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void note_order(weft_op *op)
{
    counted *self = (counted *)op; /* on the only worker, so nobody else counts */
    self->order[atomic_load(self->done)] = self->mark;
    atomic_fetch_add(self->done, 1);
}

static void batch_runs_in_order(void **state)
{
    (void)state;
    enum { N = 500 };
    static counted ops[N];
    static weft_op *pointers[N];
    static long order[N];
    weft_runtime runtime = start_alone();
    atomic_long done = 0;
    for (int i = 0; i < N; i++) {
        ops[i] = (counted){.op = {.run = note_order}, .done = &done, .order = order, .mark = i};
        pointers[i] = &ops[i].op;
    }
    assert_int_equal(weft_schedule_batch(runtime, pointers, N), WEFT_OK);
    wait_for(&done, N);
    for (int i = 0; i < N; i++) assert_int_equal(order[i], i);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* What a worker does on its own worker: newest first; those who yield behind everything, in order. */
typedef struct family {
    counted parent;
    counted children[6];
} family;

static void spawn_children(weft_op *op)
{
    family *self = (family *)op;
    for (int i = 0; i < 6; i++) {
        counted *child = &self->children[i];
        *child = self->parent;
        child->op = (weft_op){.run = note_order};
        child->mark = i;
        int rc = i < 3 ? weft_yield(self->parent.runtime, &child->op) : weft_schedule(self->parent.runtime, &child->op);
        if (rc != WEFT_OK) abort();
    }
}

static void newest_first_and_yielders_behind(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    atomic_long done = 0;
    long order[6] = {0};
    family self = {.parent = {.op = {.run = spawn_children}, .runtime = runtime, .done = &done, .order = order}};
    assert_int_equal(weft_schedule(runtime, &self.parent.op), WEFT_OK);
    wait_for(&done, 6);
    const long expected[6] = {5, 4, 3, 0, 1, 2};
    assert_memory_equal(order, expected, sizeof order);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A parent takes its children back, newest first, unless thieves or the lane's own order are before it; none is lost, none runs twice. */
enum { FORKED = 3000 };

typedef struct forking {
    weft_op op;
    weft_runtime runtime, other;
    counted children[FORKED];
    atomic_long done;
    long taken;
    int wrong; /* calls that should have been refused, and were not */
} forking;

static void count_child(weft_op *op) { atomic_fetch_add(((counted *)op)->done, 1); }

static void fork_and_take_back(weft_op *op)
{
    forking *self = (forking *)op;
    for (int i = 0; i < FORKED; i++) {
        counted *child = &self->children[i];
        *child = (counted){.op = {.run = count_child}, .done = &self->done};
        if (weft_resume_local(self->runtime, child) != WEFT_OK) abort();
    }
    self->wrong += weft_take_local(self->runtime, &self->children[0]);            /* not the newest */
    self->wrong += weft_take_local(self->other, &self->children[FORKED - 1]);     /* not its runtime */
    self->wrong += weft_take_local((weft_runtime){0}, &self->children[FORKED - 1]);
    for (int i = FORKED; i-- > 0;) {
        if (!weft_take_local(self->runtime, &self->children[i])) break;
        self->taken++;
        count_child(&self->children[i].op);
    }
    self->wrong += self->taken > 0 && weft_take_local(self->runtime, &self->children[FORKED - 1]); /* taken already */
    atomic_fetch_add(&self->done, 1);
}

static void children_are_taken_back(void **state)
{
    (void)state;
    static forking self;
    for (uint32_t workers = 1; workers <= 4; workers += 3) {
        weft_runtime runtime = start_runtime(workers), other = start_runtime(1);
        long taken = 0;
        for (int round = 0; round < 50; round++) {
            self = (forking){.op = {.run = fork_and_take_back}, .runtime = runtime, .other = other};
            assert_int_equal(weft_take_local(runtime, &self), 0); /* no worker's thread */
            assert_int_equal(weft_schedule(runtime, &self.op), WEFT_OK);
            wait_for(&self.done, FORKED + 1);
            assert_int_equal(self.wrong, 0);
            assert_true(self.taken <= 61); /* then others have their turn */
            taken += self.taken;
        }
        if (workers == 1) assert_true(taken > 50);
        assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&self.done), FORKED + 1);
        assert_int_equal(stats_of(runtime).ops_run, 50 * (FORKED + 1)); /* those that were taken count */
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        assert_int_equal(weft_runtime_destroy(other), WEFT_OK);
    }
}

/* A loop of ops that queue themselves must not keep others from running. */
typedef struct hog {
    weft_op op;
    weft_runtime runtime;
    atomic_long *released;
    atomic_long hops;      /* so far */
    atomic_long ended;
    long hops_at_release;  /* when the other op ran */
} hog;

static void hog_on(weft_op *op)
{
    hog *self = (hog *)op;
    atomic_fetch_add(&self->hops, 1);
    if (atomic_load(self->released) != 0)
        atomic_store(&self->ended, 1); /* the last touch */
    else if (weft_schedule(self->runtime, op) != WEFT_OK)
        abort();
}

typedef struct release {
    weft_op op;
    hog *hog;
    long hops_before;
} release;

static void let_go(weft_op *op)
{
    release *self = (release *)op;
    self->hog->hops_at_release = atomic_load(&self->hog->hops);
    atomic_store(self->hog->released, 1);
}

static void injected_op_starts_within_61_ops(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    for (int round = 0; round < 200; round++) {
        atomic_long released = 0;
        hog self = {.op = {.run = hog_on}, .runtime = runtime, .released = &released};
        assert_int_equal(weft_schedule(runtime, &self.op), WEFT_OK);
        while (atomic_load(&self.hops) < 10) {}
        release other = {.op = {.run = let_go}, .hog = &self};
        assert_int_equal(weft_schedule(runtime, &other.op), WEFT_OK);
        other.hops_before = atomic_load(&self.hops); /* it may have run by now */
        wait_for(&self.ended, 1);
        assert_true(self.hops_at_release - other.hops_before <= 61);
    }
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void yielders_share_a_worker(void **state)
{
    (void)state;
    weft_runtime runtime = start_alone();
    atomic_long done = 0;
    counted two[2];
    for (int i = 0; i < 2; i++) two[i] = (counted){.op = {.run = yield_hop}, .runtime = runtime, .left = 1000000, .done = &done};
    weft_op *both[2] = {&two[0].op, &two[1].op};
    assert_int_equal(weft_schedule_batch(runtime, both, 2), WEFT_OK);
    wait_for(&done, 1); /* when the first is through, the other is nearly so */
    wait_for(&done, 2);
    assert_int_equal(stats_of(runtime).ops_run, 2000000);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void runnable_of_another_shape(weft_op *op)
{
    /* A runnable is anything whose first word is its function; this one carries its data behind it. */
    struct shape {
        void (*run)(void *);
        atomic_long *done;
    } *self = (void *)op;
    atomic_fetch_add(self->done, 1);
}

typedef struct queuer {
    weft_op op;
    weft_runtime runtime;
    void *runnables[3];
    int results[3];
} queuer;

static void queue_runnables(weft_op *op)
{
    queuer *self = (queuer *)op;
    self->results[0] = weft_schedule_local(self->runtime, self->runnables[0], 0);
    self->results[1] = weft_schedule_local(self->runtime, self->runnables[1], 1);
    self->results[2] = weft_resume_local(self->runtime, self->runnables[2]);
}

static void runnables_queue_on_the_own_worker_only(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2), other = start_runtime(1);
    atomic_long done = 0;
    struct {
        weft_op_fn run;
        atomic_long *done;
    } shapes[3];
    queuer self = {.op = {.run = queue_runnables}, .runtime = runtime};
    for (int i = 0; i < 3; i++) {
        shapes[i].run = runnable_of_another_shape;
        shapes[i].done = &done;
        self.runnables[i] = &shapes[i];
    }
    assert_int_equal(weft_schedule_local(runtime, &shapes[0], 0), WEFT_ENOTWORKER);
    assert_int_equal(weft_schedule(runtime, &self.op), WEFT_OK);
    wait_for(&done, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(self.results[i], WEFT_OK);

    assert_int_equal(weft_schedule(other, &self.op), WEFT_OK); /* a worker, but of another runtime */
    assert_int_equal(weft_runtime_stop(other), WEFT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(self.results[i], WEFT_ENOTWORKER);
    assert_int_equal(weft_runtime_destroy(other), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* The crossing budget. A crossing is allowed per turn of timers and poller, never per op, steal or sleep. A few thousandths of the ops would already
 * be a worker that crosses again and again for leave that it does not get. */
static void assert_crossings(weft_stats before, weft_stats after, uint64_t ops)
{
    assert_true(after.ops_run - before.ops_run >= ops);
    uint64_t crossings = after.crossings - before.crossings;
    if (crossings > 64 + ops / 4000)
        fail_msg("%llu ops, %llu crossings, %llu steals, %llu parks", (unsigned long long)ops, (unsigned long long)crossings,
                 (unsigned long long)(after.steals - before.steals), (unsigned long long)(after.parks - before.parks));
}

static void chain_and_yields_cross_nothing(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        weft_runtime runtime = start_runtime(workers);
        atomic_long done = 0;
        counted chain = {.op = {.run = hop}, .runtime = runtime, .left = 100000, .done = &done};
        weft_stats before = stats_of(runtime);
        assert_int_equal(weft_schedule(runtime, &chain.op), WEFT_OK);
        wait_for(&done, 1);
        assert_crossings(before, stats_of(runtime), 100000);

        counted two[2];
        for (int i = 0; i < 2; i++) two[i] = (counted){.op = {.run = yield_hop}, .runtime = runtime, .left = 500000, .done = &done};
        before = stats_of(runtime);
        for (int i = 0; i < 2; i++) assert_int_equal(weft_schedule(runtime, &two[i].op), WEFT_OK);
        wait_for(&done, 3);
        assert_crossings(before, stats_of(runtime), 1000000);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    }
}

typedef struct spawner {
    weft_op op;
    weft_runtime runtime;
    counted *children;
    long count;
} spawner;

static void spawn_all(weft_op *op)
{
    spawner *self = (spawner *)op;
    for (long i = 0; i < self->count; i++)
        if (weft_schedule(self->runtime, &self->children[i].op) != WEFT_OK) abort();
}

static void spawns_cross_nothing(void **state)
{
    (void)state;
    enum { N = 1000000 };
    counted *children = calloc(N, sizeof *children);
    assert_non_null(children);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        weft_runtime runtime = start_runtime(workers);
        atomic_long done = 0;
        for (long i = 0; i < N; i++) children[i] = (counted){.op = {.run = count}, .done = &done};
        weft_stats before = stats_of(runtime);
        spawner inside = {.op = {.run = spawn_all}, .runtime = runtime, .children = children, .count = N};
        assert_int_equal(weft_schedule(runtime, &inside.op), WEFT_OK);
        wait_for(&done, N);
        assert_crossings(before, stats_of(runtime), N);

        before = stats_of(runtime);
        for (long i = 0; i < N; i++) assert_int_equal(weft_schedule(runtime, &children[i].op), WEFT_OK);
        wait_for(&done, 2L * N);
        assert_crossings(before, stats_of(runtime), N);
        assert_true(stats_of(runtime).injected >= N);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    }
    free(children);
}

typedef struct producer {
    weft_runtime runtime;
    counted *ops;
    long count;
} producer;

static void *produce(void *argument)
{
    producer *self = argument;
    for (long i = 0; i < self->count; i++)
        if (weft_schedule(self->runtime, &self->ops[i].op) != WEFT_OK) abort();
    return NULL;
}

static void many_producers_lose_nothing(void **state)
{
    (void)state;
    enum { PRODUCERS = 4, EACH = 50000 };
    counted *ops = calloc((size_t)PRODUCERS * EACH, sizeof *ops);
    assert_non_null(ops);
    for (uint32_t workers = 1; workers <= 4; workers += 3) {
        weft_runtime runtime = start_runtime(workers);
        atomic_long done = 0;
        pthread_t threads[PRODUCERS];
        producer producers[PRODUCERS];
        for (int p = 0; p < PRODUCERS; p++) {
            producers[p] = (producer){runtime, ops + (long)p * EACH, EACH};
            for (long i = 0; i < EACH; i++) producers[p].ops[i] = (counted){.op = {.run = count}, .done = &done};
            assert_int_equal(pthread_create(&threads[p], NULL, produce, &producers[p]), 0);
        }
        for (int p = 0; p < PRODUCERS; p++) pthread_join(threads[p], NULL);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK); /* drains */
        assert_int_equal(atomic_load(&done), (long)PRODUCERS * EACH);
    }
    free(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_ops),
        cmocka_unit_test(batch_runs_in_order),
        cmocka_unit_test(newest_first_and_yielders_behind),
        cmocka_unit_test(children_are_taken_back),
        cmocka_unit_test(injected_op_starts_within_61_ops),
        cmocka_unit_test(yielders_share_a_worker),
        cmocka_unit_test(runnables_queue_on_the_own_worker_only),
        cmocka_unit_test(chain_and_yields_cross_nothing),
        cmocka_unit_test(spawns_cross_nothing),
        cmocka_unit_test(many_producers_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
