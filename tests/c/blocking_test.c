/* SPDX-License-Identifier: MIT
 *
 * blocking_test.c: the pool of blocking calls: where both functions run, shares, order, cancelling, stopping, retirement.
 */
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#if !defined(_WIN32)
#include <sys/wait.h>
#endif
#include <unistd.h>

typedef struct job {
    weft_blocking blocking;
    atomic_long *called;   /* calls that began */
    atomic_long *done;     /* ops that ran */
    atomic_long *gate;     /* a call waits until this is not 0; NULL: it does not */
    long order;            /* called, as this call found it */
    weft_runtime inside;   /* weft_runtime_current in the call */
    weft_runtime after;    /* and in the op */
    bool requested;        /* the call ended because it was asked to */
    int runs;
    char thread[16];
} job;

static void call(weft_blocking *blocking)
{
    job *self = (job *)blocking;
    self->inside = weft_runtime_current();
    pthread_getname_np(pthread_self(), self->thread, sizeof self->thread);
    self->order = atomic_fetch_add(self->called, 1);
    while (self->gate != NULL && atomic_load(self->gate) == 0 && !self->requested) {
        sleep_ms(1);
        self->requested = weft_blocking_requested(blocking);
    }
    errno = 123;
}

static void finished(weft_op *op)
{
    job *self = (job *)op;
    self->after = weft_runtime_current();
    self->runs++;
    atomic_fetch_add(self->done, 1);
}

static job new_job(atomic_long *called, atomic_long *done, atomic_long *gate)
{
    return (job){.blocking = {.op = {.run = finished}, .call = call}, .called = called, .done = done, .gate = gate};
}

static weft_runtime start_pool(uint32_t workers, uint32_t threads)
{
    return start_with((weft_runtime_config){.workers = workers, .blocking_threads = threads, .name = "pool"});
}

static void bad_submissions(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    atomic_long called = 0, done = 0;
    job good = new_job(&called, &done, NULL);
    weft_blocking without_run = {.call = call}, without_call = {.op = {.run = finished}};
    assert_int_equal(weft_blocking_submit(runtime, NULL, 0), WEFT_EINVAL);
    assert_int_equal(weft_blocking_submit(runtime, &without_run, 0), WEFT_EINVAL);
    assert_int_equal(weft_blocking_submit(runtime, &without_call, 0), WEFT_EINVAL);
    assert_int_equal(weft_blocking_submit(runtime, &good.blocking, WEFT_BLOCKING_KINDS), WEFT_EINVAL);
    assert_int_equal(weft_blocking_submit((weft_runtime){0}, &good.blocking, 0), WEFT_EBADHANDLE);
    assert_int_equal(weft_blocking_cancel(NULL), WEFT_EINVAL);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(weft_blocking_submit(runtime, &good.blocking, 0), WEFT_ESTOPPED);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_int_equal(weft_blocking_submit(runtime, &good.blocking, 0), WEFT_EBADHANDLE);
    assert_int_equal(atomic_load(&called), 0);
    assert_int_equal(good.runs, 0);

    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.blocking_threads = 1025;
    assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_EINVAL);
}

static void call_on_the_pool_and_run_on_a_worker(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(1, 0);
    atomic_long called = 0, done = 0;
    job one = new_job(&called, &done, NULL);
    for (int again = 1; again <= 3; again++) {
        assert_int_equal(weft_blocking_submit(runtime, &one.blocking, WEFT_BLOCKING_CALL), WEFT_OK);
        wait_for(&done, again);
        assert_int_equal(one.blocking.status, WEFT_OK);
        assert_int_equal(one.inside.id, 0);
        assert_int_equal(one.after.id, runtime.id);
        assert_memory_equal(one.thread, "pool-b", 6);
    }
    assert_int_equal(stats_of(runtime).blocking_calls, 3);
    assert_in_range(stats_of(runtime).blocking_threads, 0, 3);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

enum { HANGING = 100, LIMIT = 4 };

/* However many calls of one kind hang, another kind goes on; what is over the limit waits. */
static void kinds_have_shares_of_their_own(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(1, LIMIT);
    atomic_long hung = 0, hung_done = 0, gate = 0, read = 0, read_done = 0;
    static job hanging[HANGING];
    for (int i = 0; i < HANGING; i++) {
        hanging[i] = new_job(&hung, &hung_done, &gate);
        assert_int_equal(weft_blocking_submit(runtime, &hanging[i].blocking, WEFT_BLOCKING_CALL), WEFT_OK);
    }
    wait_for(&hung, LIMIT);
    for (uint32_t kind = WEFT_BLOCKING_FILE; kind < WEFT_BLOCKING_KINDS; kind++) {
        job quick = new_job(&read, &read_done, NULL);
        assert_int_equal(weft_blocking_submit(runtime, &quick.blocking, kind), WEFT_OK);
        wait_for(&read_done, (long)kind);
    }
    assert_int_equal(atomic_load(&hung), LIMIT);
    assert_int_equal(stats_of(runtime).blocking_waiting, HANGING - LIMIT);
    assert_true(stats_of(runtime).blocking_threads <= LIMIT + 2);
    atomic_store(&gate, 1);
    wait_for(&hung_done, HANGING);
    for (int i = 0; i < HANGING; i++) assert_int_equal(hanging[i].runs, 1);
    assert_int_equal(stats_of(runtime).blocking_waiting, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void one_thread_keeps_the_order(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(1, 1);
    atomic_long called = 0, done = 0;
    static job jobs[50];
    for (int i = 0; i < 50; i++) {
        jobs[i] = new_job(&called, &done, NULL);
        assert_int_equal(weft_blocking_submit(runtime, &jobs[i].blocking, WEFT_BLOCKING_OTHER), WEFT_OK);
    }
    wait_for(&done, 50);
    for (int i = 0; i < 50; i++) assert_int_equal(jobs[i].order, i);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void cancel_before_during_and_after(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(1, 1);
    atomic_long called = 0, done = 0, gate = 0;
    job early = new_job(&called, &done, NULL);
    assert_int_equal(weft_blocking_cancel(&early.blocking), WEFT_OK);
    assert_int_equal(weft_blocking_cancel(&early.blocking), 1);
    assert_int_equal(weft_blocking_submit(runtime, &early.blocking, 0), 1);
    assert_int_equal(early.blocking.status, WEFT_ECANCELED);
    assert_int_equal(weft_blocking_submit(runtime, &early.blocking, 0), WEFT_OK); /* the request was used up */
    wait_for(&done, 1);
    assert_int_equal(early.blocking.status, WEFT_OK);
    assert_int_equal(weft_blocking_cancel(&early.blocking), 1);

    job running = new_job(&called, &done, &gate);
    job waiting[3] = {new_job(&called, &done, &gate), new_job(&called, &done, &gate), new_job(&called, &done, &gate)};
    assert_int_equal(weft_blocking_submit(runtime, &running.blocking, 0), WEFT_OK);
    wait_for(&called, 2);
    for (int i = 0; i < 3; i++) assert_int_equal(weft_blocking_submit(runtime, &waiting[i].blocking, 0), WEFT_OK);
    assert_int_equal(weft_blocking_submit(runtime, &waiting[1].blocking, 0), WEFT_EBUSY);
    assert_int_equal(weft_blocking_submit(runtime, &running.blocking, 0), WEFT_EBUSY);
    assert_int_equal(weft_blocking_cancel(&waiting[1].blocking), WEFT_OK);
    wait_for(&done, 2);
    assert_int_equal(waiting[1].runs, 1);
    assert_int_equal(waiting[1].blocking.status, WEFT_ECANCELED);
    assert_int_equal(weft_blocking_cancel(&waiting[1].blocking), 1);
    assert_int_equal(weft_blocking_cancel(&running.blocking), 1); /* which it notices */
    wait_for(&done, 3);
    assert_true(running.requested);
    assert_int_equal(running.blocking.status, WEFT_OK);
    atomic_store(&gate, 1);
    wait_for(&done, 5);
    assert_int_equal(waiting[0].order + 1, waiting[2].order);
    assert_int_equal(atomic_load(&called), 4);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* Stop cancels what waits, and waits for what runs; its op still runs on a worker. */
static void stop_waits_for_what_runs(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(2, 1);
    atomic_long called = 0, done = 0;
    job running = new_job(&called, &done, NULL);
    atomic_long gate = 0; /* opened by nobody: stop is seen through weft_blocking_requested */
    running.gate = &gate;
    job waiting[2] = {new_job(&called, &done, NULL), new_job(&called, &done, NULL)};
    assert_int_equal(weft_blocking_submit(runtime, &running.blocking, 0), WEFT_OK);
    wait_for(&called, 1);
    for (int i = 0; i < 2; i++) assert_int_equal(weft_blocking_submit(runtime, &waiting[i].blocking, 0), WEFT_OK);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(atomic_load(&done), 3);
    assert_true(running.requested);
    assert_int_equal(running.blocking.status, WEFT_OK);
    assert_int_equal(running.after.id, runtime.id);
    for (int i = 0; i < 2; i++) assert_int_equal(waiting[i].blocking.status, WEFT_ECANCELED);
    assert_int_equal(atomic_load(&called), 1);
    assert_int_equal(stats_of(runtime).blocking_threads, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A call that stops or destroys its own runtime does not wait for itself. */
static atomic_long destroyed;

static void destroy_call(weft_blocking *blocking)
{
    weft_runtime runtime = {(uint64_t)(uintptr_t)blocking->op.context};
    if (weft_runtime_stop(runtime) == WEFT_OK && weft_runtime_destroy(runtime) == WEFT_OK) atomic_fetch_add(&destroyed, 1);
}

static void destroy_done(weft_op *op)
{
    (void)op;
    atomic_fetch_add(&destroyed, 1);
}

static void a_call_may_destroy_its_runtime(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(1, 1);
    static weft_blocking blocking;
    blocking = (weft_blocking){.op = {.run = destroy_done, .context = (void *)(uintptr_t)runtime.id}, .call = destroy_call};
    assert_int_equal(weft_blocking_submit(runtime, &blocking, 0), WEFT_OK);
    wait_for(&destroyed, 2);
    while (weft_runtime_status(runtime) != WEFT_EBADHANDLE) sleep_ms(1);
}

static void idle_threads_end(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(1, 0);
    atomic_long called = 0, done = 0, gate = 0;
    job jobs[8];
    for (int i = 0; i < 8; i++) {
        jobs[i] = new_job(&called, &done, &gate);
        assert_int_equal(weft_blocking_submit(runtime, &jobs[i].blocking, (uint32_t)i % WEFT_BLOCKING_KINDS), WEFT_OK);
    }
    wait_for(&called, 8);
    assert_int_equal(stats_of(runtime).blocking_threads, 8);
    atomic_store(&gate, 1);
    wait_for(&done, 8);
    for (int i = 0; stats_of(runtime).blocking_threads != 0; i++) {
        if (i == 20000) fail_msg("idle threads stay");
        sleep_ms(1);
    }
    job again = new_job(&called, &done, NULL);
    assert_int_equal(weft_blocking_submit(runtime, &again.blocking, 0), WEFT_OK);
    wait_for(&done, 9);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

#if !defined(_WIN32)
/* Signals of the host do not run on the pool's threads. */
static void mask_call(weft_blocking *blocking)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    blocking->op.context = (void *)(uintptr_t)(sigismember(&mask, SIGALRM) && sigismember(&mask, SIGTERM) &&
                                               !sigismember(&mask, SIGSEGV));
}

static void signals_are_blocked(void **state)
{
    (void)state;
    weft_runtime runtime = start_pool(1, 0);
    atomic_long called = 0, done = 0;
    job one = new_job(&called, &done, NULL);
    one.blocking.call = mask_call;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    errno = 77;
    assert_int_equal(weft_blocking_submit(runtime, &one.blocking, 0), WEFT_OK);
    assert_int_equal(errno, 77);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < 32; signal++) assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
    wait_for(&done, 1);
    assert_true(one.blocking.op.context != NULL);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void a_forked_child_is_told(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    atomic_long called = 0, done = 0;
    job one = new_job(&called, &done, NULL);
    pid_t child = fork();
    if (child == 0) _exit(weft_blocking_submit(runtime, &one.blocking, 0) == WEFT_EFORKED &&
                                  weft_blocking_cancel(&one.blocking) == WEFT_EFORKED
                              ? 0
                              : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

#endif

/* Submitters, cancellers and a stop at once: each accepted op runs once, and its call at most once. */
enum { SUBMITTERS = 3, PER_SUBMITTER = 400, STRESS_MAX = SUBMITTERS * PER_SUBMITTER };

typedef struct stress_job {
    weft_blocking blocking;
    atomic_int calls, runs;
    int accepted; /* the submission's result */
} stress_job;

static stress_job stress_jobs[STRESS_MAX];
static weft_runtime stress_runtime;
static atomic_long stress_submitted;

static void stress_call(weft_blocking *blocking)
{
    atomic_fetch_add(&((stress_job *)blocking)->calls, 1);
    if (((uintptr_t)blocking / sizeof(stress_job)) % 7 == 0) sched_yield();
}

static void stress_run(weft_op *op) { atomic_fetch_add(&((stress_job *)op)->runs, 1); }

static void *stress_submit(void *argument)
{
    long first = (long)(intptr_t)argument * PER_SUBMITTER;
    for (long i = first; i < first + PER_SUBMITTER; i++) {
        stress_job *self = &stress_jobs[i];
        self->accepted = weft_blocking_submit(stress_runtime, &self->blocking, (uint32_t)(i % WEFT_BLOCKING_KINDS));
        atomic_fetch_add(&stress_submitted, 1);
    }
    return NULL;
}

static void *stress_cancel(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    while (atomic_load(&stress_submitted) < STRESS_MAX) weft_blocking_cancel(&stress_jobs[rand_r(&seed) % STRESS_MAX].blocking);
    return NULL;
}

static void submit_cancel_and_stop_at_once(void **state)
{
    (void)state;
    const char *scale = getenv("WEFT_TEST_SCALE");
    int rounds = 30 * (scale != NULL ? atoi(scale) : 1);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < STRESS_MAX; i++)
            stress_jobs[i] = (stress_job){.blocking = {.op = {.run = stress_run}, .call = stress_call}};
        atomic_store(&stress_submitted, 0);
        stress_runtime = start_pool(2, 1 + (uint32_t)round % 3);
        pthread_t threads[SUBMITTERS + 1];
        for (long i = 0; i < SUBMITTERS; i++) pthread_create(&threads[i], NULL, stress_submit, (void *)(intptr_t)i);
        pthread_create(&threads[SUBMITTERS], NULL, stress_cancel, (void *)(uintptr_t)(round + 1));
        if (round % 2 == 0) wait_for(&stress_submitted, round * 37 % STRESS_MAX);
        else wait_for(&stress_submitted, STRESS_MAX);
        assert_int_equal(weft_runtime_stop(stress_runtime), WEFT_OK);
        for (int i = 0; i <= SUBMITTERS; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < STRESS_MAX; i++) {
            stress_job *self = &stress_jobs[i];
            int runs = atomic_load(&self->runs), calls = atomic_load(&self->calls);
            if (self->accepted == WEFT_OK) {
                assert_int_equal(runs, 1);
                assert_int_equal(calls, self->blocking.status == WEFT_OK ? 1 : 0);
            } else {
                assert_true(self->accepted == WEFT_ESTOPPED || self->accepted == 1);
                assert_int_equal(runs, 0);
                assert_int_equal(calls, 0);
            }
        }
        assert_int_equal(stats_of(stress_runtime).blocking_threads, 0);
        assert_int_equal(stats_of(stress_runtime).blocking_waiting, 0);
        assert_int_equal(weft_runtime_destroy(stress_runtime), WEFT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_submissions),
        cmocka_unit_test(call_on_the_pool_and_run_on_a_worker),
        cmocka_unit_test(kinds_have_shares_of_their_own),
        cmocka_unit_test(one_thread_keeps_the_order),
        cmocka_unit_test(cancel_before_during_and_after),
        cmocka_unit_test(stop_waits_for_what_runs),
        cmocka_unit_test(a_call_may_destroy_its_runtime),
        cmocka_unit_test(idle_threads_end),
#if !defined(_WIN32)
        cmocka_unit_test(signals_are_blocked),
        cmocka_unit_test(a_forked_child_is_told),
#endif
        cmocka_unit_test(submit_cancel_and_stop_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
