/* SPDX-License-Identifier: MIT
 *
 * stress_stall_test.c: ops that hold up their workers at random: they sleep, compute, or wait for an op that they have queued behind themselves; with timers
 * that are cancelled by others, and a stop in the middle. Each op ends once, and the threads go back to the base. Some 800 stalls in each crowd; WEFT_TEST_SCALE=40
 * makes 10^5 in all.
 */
#include <semaphore.h>

#include "stress_support.h"
#include "threads.h"

enum { JOBS = 60 };

/* An op that lets somebody go on. He is blocked meanwhile: one who looked again and again would be taken for one that computes, and
 * those get one worker more, not all that they need. */
typedef struct gate {
    weft_op op; /* the op comes first */
    sem_t open;
} gate;

static void gate_run(weft_op *op)
{
    sem_post(&((gate *)op)->open);
    stress_progress();
}

typedef struct job {
    weft_timer timer; /* the op comes first */
    struct crowd *crowd;
    gate behind;
    uint64_t random;
    long left;
    atomic_int under_way;
} job;

typedef struct crowd {
    weft_runtime runtime;
    job jobs[JOBS];
    atomic_long over, stalls;
    atomic_bool ends;
} crowd;

static void sleep_us(uint64_t us) { nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL); }

static void hold_up(job *j)
{
    atomic_fetch_add_explicit(&j->crowd->stalls, 1, memory_order_relaxed);
    uint64_t *random = &j->random;
    uint64_t dice = stress_below(random, 30);
    if (dice == 0) {
        int64_t until = weft_now_ns() + (int64_t)stress_below(random, 3000000);
        while (weft_now_ns() < until) continue;
    } else if (dice < 10) { /* only another worker ends this */
        if (weft_schedule(j->crowd->runtime, &j->behind.op) != WEFT_OK) return;
        while (sem_wait(&j->behind.open) != 0) continue; /* a signal's fault */
    } else {
        sleep_us(stress_below(random, 4000));
    }
}

static void go_on(job *j)
{
    int before = atomic_exchange(&j->under_way, 1);
    if (before != 0) {
        fprintf(stderr, "started twice\n");
        abort();
    }
    int rc = WEFT_ESTOPPED;
    if (j->left-- > 0) {
        rc = stress_below(&j->random, 4) == 0
                 ? weft_schedule_after(j->crowd->runtime, &j->timer, (int64_t)stress_below(&j->random, 2000000))
                 : weft_schedule(j->crowd->runtime, &j->timer.op);
    }
    if (rc != WEFT_OK) {
        if (rc != WEFT_ESTOPPED) {
            fprintf(stderr, "start: %d\n", rc);
            abort();
        }
        atomic_store(&j->under_way, 0);
        atomic_fetch_add(&j->crowd->over, 1);
    }
}

static void run(weft_op *op)
{
    job *j = (job *)op;
    if (atomic_exchange(&j->under_way, 0) != 1) {
        fprintf(stderr, "run twice\n");
        abort();
    }
    stress_progress();
    if (stress_below(&j->random, 3) == 0) hold_up(j);
    go_on(j);
}

static void *cancels(void *argument)
{
    crowd *c = argument;
    uint64_t random = stress.seed | 1;
    while (!atomic_load(&c->ends)) {
        weft_timer_cancel(&c->jobs[stress_below(&random, JOBS)].timer);
        sleep_us(stress_below(&random, 200));
    }
    return NULL;
}

/* All but the base end after a while. Go may have made a few of its own meanwhile, which stay: fewer than there were replacements. */
enum { OF_GO = 16 };

static void until_threads_are(long most)
{
    for (int i = 0; threads_now() > most; i++) {
        if (i > 30000) fail_msg("%ld threads are left, of at most %ld", threads_now(), most);
        sleep_us(1000);
    }
}

static crowd *begin(uint32_t workers, uint64_t *random, long runs)
{
    crowd *c = calloc(1, sizeof *c);
    assert_non_null(c);
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.workers = workers;
    config.name = "stall";
    config.keep_ns = 20000000;
    c->runtime = stressed_as(&config);
    for (int i = 0; i < JOBS; i++) {
        c->jobs[i] = (job){.timer.op.run = run, .crowd = c, .behind.op.run = gate_run, .random = stress_random(random), .left = runs};
        assert_int_equal(sem_init(&c->jobs[i].behind.open, 0, 0), 0);
    }
    return c;
}

static void end(crowd *c)
{
    for (int i = 0; i < JOBS; i++) sem_destroy(&c->jobs[i].behind.open);
    free(c);
}

static void storms(uint32_t workers, uint64_t *random)
{
    stress_unwatch(0);
    long before = threads_now();
    crowd *c = begin(workers, random, 40 * stress_scale());
    pthread_t canceller;
    assert_int_equal(pthread_create(&canceller, NULL, cancels, c), 0);
    for (int i = 0; i < JOBS; i++) go_on(&c->jobs[i]);
    wait_until(&c->over, JOBS);
    atomic_store(&c->ends, true);
    pthread_join(canceller, NULL);
    for (int i = 0; stats_of(c->runtime).workers != workers; i++) {
        if (i > 30000) fail_msg("the replacements stay");
        sleep_us(1000);
    }
    until_threads_are(before + workers + 1 + OF_GO); /* and the monitor */
    weft_stats stats = stats_of(c->runtime);
    printf("    %ld times held up, %llu stalls seen, %llu replacements\n", atomic_load(&c->stalls), (unsigned long long)stats.stalls,
           (unsigned long long)stats.replacements);
    assert_true(stats.stalls > 0 && stats.replacements > 0);
    assert_int_equal(weft_runtime_destroy(c->runtime), WEFT_OK);
    until_threads_are(before + OF_GO);
    end(c);
}

static void stops(uint32_t workers, uint64_t *random)
{
    stress_unwatch(0);
    long before = threads_now();
    for (long round = 0; round < 15 * stress_scale(); round++) {
        crowd *c = begin(workers, random, INT32_MAX);
        pthread_t canceller;
        assert_int_equal(pthread_create(&canceller, NULL, cancels, c), 0);
        for (int i = 0; i < JOBS; i++) go_on(&c->jobs[i]);
        sleep_us(stress_below(random, 40000));
        assert_int_equal(weft_runtime_destroy(c->runtime), WEFT_OK);
        assert_int_equal(atomic_load(&c->over), JOBS);
        atomic_store(&c->ends, true);
        pthread_join(canceller, NULL);
        end(c);
        stress_progress();
    }
    until_threads_are(before + OF_GO);
}

STRESS(storms)
STRESS(stops)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storms_everywhere),
        cmocka_unit_test(stops_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
