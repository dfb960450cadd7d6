/* SPDX-License-Identifier: MIT
 *
 * support.h: what the tests of the C interface share: cmocka, a runtime for the length of a test, and waiting.
 */
#ifndef WEFT_TESTS_C_SUPPORT_H
#define WEFT_TESTS_C_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <weft.h>

static inline weft_runtime start_with(weft_runtime_config config)
{
    config.size = sizeof config;
    weft_runtime runtime = {0};
    assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_OK);
    return runtime;
}

static inline weft_runtime start_runtime(uint32_t workers) { return start_with((weft_runtime_config){.workers = workers}); }

/* One op after the other, whatever holds the worker up: for tests that expect an order. */
static inline weft_runtime start_alone(void) { return start_with((weft_runtime_config){.workers = 1, .max_workers = 1}); }

static inline weft_stats stats_of(weft_runtime runtime)
{
    weft_stats stats = {.size = sizeof stats};
    assert_int_equal(weft_runtime_stats(runtime, &stats), WEFT_OK);
    return stats;
}

static inline void sleep_ms(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&span, NULL);
}

/* As much work as WEFT_TEST_SCALE says, times n. */
static inline long scaled(long n)
{
    const char *scale = getenv("WEFT_TEST_SCALE");
    return n * (scale != NULL && atol(scale) > 0 ? atol(scale) : 1);
}

/* Waits until counter has reached value. The bound is only there to end a test that has failed. */
static inline void wait_for(atomic_long *counter, long value)
{
    for (time_t began = time(NULL); atomic_load(counter) < value;) {
        if (time(NULL) - began > 50) fail_msg("waited in vain for %ld, have %ld", value, atomic_load(counter));
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
}

#endif
