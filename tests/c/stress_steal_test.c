/* SPDX-License-Identifier: MIT
 *
 * stress_steal_test.c: an owner and its thieves take each op once. The queues are short, so that they meet at the same ops: at the last of a
 * ring, and at the newest, which stands in a word of its own.
 */
#include "stress_support.h"

enum { FORKS = 3 };

/* Queues a few and ends; the last of them to run does it again. */
typedef struct forking {
    weft_op op;
    weft_runtime runtime;
    uint64_t random;
    long round, rounds;
    struct forked {
        weft_op op;
        struct forking *from;
        atomic_int queued;
    } forks[FORKS];
    atomic_long left;
    atomic_long *over;
} forking;

static void fork_few(weft_op *op)
{
    forking *self = (forking *)op;
    long forks = 1 + (long)stress_below(&self->random, FORKS);
    if (self->round++ == self->rounds) {
        atomic_fetch_add(self->over, 1);
        return;
    }
    stress_progress();
    atomic_store(&self->left, forks);
    for (long i = 0; i < forks; i++) {
        atomic_store(&self->forks[i].queued, 1);
        if ((stress_below(&self->random, 4) == 0 ? weft_yield : weft_schedule)(self->runtime, &self->forks[i].op) != WEFT_OK) abort();
    }
}

static void run_fork(weft_op *op)
{
    struct forked *self = (struct forked *)op;
    if (atomic_exchange(&self->queued, 0) != 1) {
        fprintf(stderr, "run twice\n");
        abort();
    }
    forking *from = self->from;
    uint64_t random = (uint64_t)weft_now_ns() | 1;
    stress_wait(&random, UINT64_C(64) << stress_below(&random, 11)); /* the queue is there to be robbed meanwhile */
    if (atomic_fetch_sub(&from->left, 1) == 1) fork_few(&from->op);
}

static void short_queues(uint32_t workers, uint64_t *random)
{
    enum { FAMILIES = 2 };
    static forking families[FAMILIES];
    weft_runtime runtime = stressed(workers);
    atomic_long over = 0;
    for (int i = 0; i < FAMILIES; i++) {
        forking *f = &families[i];
        memset(f, 0, sizeof *f);
        f->op.run = fork_few;
        f->runtime = runtime;
        f->random = stress_random(random) | 1;
        f->rounds = 15000 * stress_scale();
        f->over = &over;
        for (int k = 0; k < FORKS; k++) {
            f->forks[k].op.run = run_fork;
            f->forks[k].from = f;
        }
        if (weft_schedule(runtime, &f->op) != WEFT_OK) abort();
    }
    wait_until(&over, FAMILIES);
    weft_stats stats = stats_of(runtime);
    printf("    %llu ops, %llu stolen\n", (unsigned long long)stats.ops_run, (unsigned long long)stats.ops_stolen);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

STRESS(short_queues)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_queues_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
