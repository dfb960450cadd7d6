/* SPDX-License-Identifier: MIT
 *
 * stress_support.h: what the stress tests of the C interface share beside tests/stress.h. On Linux a coin of the seed decides
 * for each crowd whether the system is one that refuses now and then (faults.h), in ways of which a user sees next to nothing.
 */
#ifndef WEFT_TESTS_C_STRESS_SUPPORT_H
#define WEFT_TESTS_C_STRESS_SUPPORT_H

#include "support.h"

#if defined(__linux__)
#include "faults.h"
#define STRESS_FAULTS
static inline void stress_strike(int one_in, uint64_t seed) { faults_unseen(one_in, seed); }
#endif
#include "../stress.h"

/* A runtime for the watchdog to look at. A thread may be refused: then none is left behind, and we try again. */
static inline weft_runtime stressed_as(const weft_runtime_config *config)
{
    weft_runtime runtime = {0};
    int rc;
    do {
        rc = weft_runtime_create(config, &runtime);
    } while (rc == WEFT_ELIMIT);
    assert_int_equal(rc, WEFT_OK);
    stress_watch_runtime(runtime);
    return runtime;
}

static inline weft_runtime stressed(uint32_t workers)
{
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.workers = workers;
    return stressed_as(&config);
}

/* An op that counts how often it ran. */
typedef struct flagged {
    weft_op op;
    atomic_long ran;
} flagged;

static inline void flag(weft_op *op)
{
    atomic_fetch_add(&((flagged *)op)->ran, 1);
    stress_progress();
}

/* The same with a timer. */
typedef struct clocked {
    weft_timer timer;
    atomic_long ran;
} clocked;

static inline void strike(weft_op *op)
{
    atomic_fetch_add(&((clocked *)op)->ran, 1);
    stress_progress();
}

static inline void wait_until(atomic_long *counter, long value)
{
    for (uint32_t spins = 0; atomic_load(counter) < value;) stress_pause(&spins);
}

/* A thread beside the main one that does one thing per round, at a random distance. */
typedef struct rival {
    pthread_t thread;
    void (*act)(void *);
    void *context;
    uint64_t random, distance;
    atomic_long begun, ended; /* rounds; begun < 0 ends the thread */
} rival;

static inline void *rival_main(void *argument)
{
    rival *self = argument;
    for (long round = 1;; round++) {
        long begun;
        for (uint32_t spins = 0; (begun = atomic_load(&self->begun)) >= 0 && begun < round;) stress_pause(&spins);
        if (begun < 0) return NULL;
        stress_wait(&self->random, self->distance);
        self->act(self->context);
        atomic_store(&self->ended, round);
    }
}

static inline void rival_start_near(rival *self, void (*act)(void *), void *context, uint64_t *random, uint64_t distance)
{
    *self = (rival){.act = act, .context = context, .random = stress_random(random), .distance = distance};
    assert_int_equal(pthread_create(&self->thread, NULL, rival_main, self), 0);
}

static inline void rival_start(rival *self, void (*act)(void *), void *context, uint64_t *random)
{
    rival_start_near(self, act, context, random, 2000);
}

static inline void rival_end(rival *self)
{
    atomic_store(&self->begun, -1);
    pthread_join(self->thread, NULL);
}

#define STRESS(scenario)                                                                     \
    static void scenario##_everywhere(void **state)                                          \
    {                                                                                        \
        (void)state;                                                                         \
        assert_int_equal(stress_in_all_crowds(#scenario, scenario), 0);                      \
    }

#endif
