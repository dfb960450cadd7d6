/* SPDX-License-Identifier: MIT
 *
 * stress_fork_test.c: trees of forks of random shape, whose parents and children take random times, so that joins meet their forks in every state: queued,
 * stolen, running, just over. Ops of other kinds come in between, stacks are as small as they may be,
 * and sometimes nobody comes to help.
 */
#include "stress_support.h"

enum { CHILDREN = 3, DEPTH = 7, TREES = 4, ROOM_BYTES = 1500 };

typedef struct tree {
    weft_op op;
    weft_runtime runtime;
    uint64_t random;
    atomic_long nodes, others;
    atomic_long *over;
} tree;

typedef struct node {
    weft_fork fork;
    tree *of;
    uint64_t random;
    int depth;
    long size; /* of the tree below, with it: written by its function, read after the join */
    atomic_int ran;
} node;

typedef struct other {
    weft_op op;
    tree *of;
} other;

static void run_other(weft_op *op)
{
    other *self = (other *)op;
    atomic_fetch_add(&self->of->others, 1);
    free(self);
}

static void wait_a_little(uint64_t *random)
{
    if (stress_below(random, 4) == 0) stress_wait(random, UINT64_C(16) << stress_below(random, 12));
}

static long below(tree *t, uint64_t *random, int depth);

static void run_node(weft_fork *fork)
{
    node *self = (node *)fork;
    if (atomic_exchange(&self->ran, 1) != 0) {
        fprintf(stderr, "a fork has run twice\n");
        abort();
    }
    wait_a_little(&self->random);
    self->size = below(self->of, &self->random, self->depth);
    stress_progress();
}

/* One node. Returns how many there are. */
static long below(tree *t, uint64_t *random, int depth)
{
    node children[CHILDREN];
    volatile char room[ROOM_BYTES]; /* so that joins wait where little stack is left */
    room[0] = room[ROOM_BYTES - 1] = 1;
    uint64_t count = depth == 0 ? 0 : stress_below(random, CHILDREN + 1);
    if (depth == DEPTH) count = CHILDREN;
    long size = 1;
    atomic_fetch_add(&t->nodes, 1);
    for (uint64_t i = 0; i < count; i++) {
        children[i] = (node){.fork = {.call = run_node}, .of = t, .random = stress_random(random) | 1, .depth = depth - 1};
        weft_fork_start(&children[i].fork);
    }
    if (stress_below(random, 8) == 0) {
        other *o = malloc(sizeof *o);
        *o = (other){{.run = run_other}, t};
        if (weft_schedule(t->runtime, &o->op) != WEFT_OK) abort();
        atomic_fetch_sub(&t->others, 1);
    }
    wait_a_little(random);
    if (count == CHILDREN && depth > 1) size += below(t, random, depth - 1);
    bool oldest_first = stress_below(random, 4) == 0;
    for (uint64_t i = 0; i < count; i++) {
        node *child = &children[oldest_first ? i : count - 1 - i];
        weft_fork_join(&child->fork);
        if (atomic_load(&child->ran) != 1) {
            fprintf(stderr, "a join has returned before its fork has run\n");
            abort();
        }
        size += child->size;
    }
    if (room[0] + room[ROOM_BYTES - 1] != 2) abort();
    return size;
}

static void run_tree(weft_op *op)
{
    tree *t = (tree *)op;
    long size = below(t, &t->random, DEPTH);
    if (size != atomic_load(&t->nodes)) {
        fprintf(stderr, "%ld nodes counted, %ld have run\n", size, atomic_load(&t->nodes));
        abort();
    }
    atomic_fetch_add(t->over, 1);
}

static void trees(uint32_t workers, uint64_t *random)
{
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.workers = workers;
    if (stress_below(random, 2) == 0) config.stack_bytes = 65536;
    if (stress_below(random, 2) == 0) config.max_workers = workers;
    weft_runtime runtime = stressed_as(&config);
    static tree all[TREES];
    for (long round = 0; round < 500 * stress_scale(); round++) {
        atomic_long over = 0;
        for (int i = 0; i < TREES; i++) {
            all[i] = (tree){{.run = run_tree}, runtime, stress_random(random) | 1, 0, 0, &over};
            if (weft_schedule(runtime, &all[i].op) != WEFT_OK) abort();
        }
        wait_until(&over, TREES);
        for (int i = 0; i < TREES; i++) wait_until(&all[i].others, 0); /* each was counted down when it was queued */
    }
    weft_stats stats = stats_of(runtime);
    printf("    %llu stolen, %llu replacements\n", (unsigned long long)stats.ops_stolen, (unsigned long long)stats.replacements);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* One fork at a time: owner and thief want the same. */
static void lone_forks_of(weft_op *op)
{
    tree *t = (tree *)op;
    for (long i = 0; i < 20000 * stress_scale(); i++) {
        node child = {.fork = {.call = run_node}, .of = t, .random = stress_random(&t->random) | 1, .depth = 0};
        weft_fork_start(&child.fork);
        stress_wait(&t->random, UINT64_C(16) << stress_below(&t->random, 9));
        weft_fork_join(&child.fork);
        if (atomic_load(&child.ran) != 1 || child.size != 1) {
            fprintf(stderr, "a join has returned before its fork has run\n");
            abort();
        }
    }
    atomic_fetch_add(t->over, 1);
}

static void lone_forks(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    atomic_long over = 0;
    static tree all[2];
    for (int i = 0; i < 2; i++) {
        all[i] = (tree){{.run = lone_forks_of}, runtime, stress_random(random) | 1, 0, 0, &over};
        if (weft_schedule(runtime, &all[i].op) != WEFT_OK) abort();
    }
    wait_until(&over, 2);
    for (int i = 0; i < 2; i++) wait_until(&all[i].others, 0);
    printf("    %llu stolen\n", (unsigned long long)stats_of(runtime).ops_stolen);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

STRESS(trees)
STRESS(lone_forks)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_everywhere),
        cmocka_unit_test(lone_forks_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
