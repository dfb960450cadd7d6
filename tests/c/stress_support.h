/* SPDX-License-Identifier: MIT
 *
 * stress_support.h: what the stress tests of the C interface share beside tests/stress.h.
 */
#ifndef WEFT_TESTS_C_STRESS_SUPPORT_H
#define WEFT_TESTS_C_STRESS_SUPPORT_H

#include "../stress.h"
#include "support.h"

static inline weft_runtime stressed(uint32_t workers)
{
    weft_runtime runtime = start_runtime(workers);
    stress_watch_runtime(runtime);
    return runtime;
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

#define STRESS(scenario)                                                                     \
    static void scenario##_everywhere(void **state)                                          \
    {                                                                                        \
        (void)state;                                                                         \
        assert_int_equal(stress_in_all_crowds(#scenario, scenario), 0);                      \
    }

#endif
