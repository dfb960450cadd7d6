/* SPDX-License-Identifier: MIT
 *
 * faults_support.h: what the tests of faults themselves share: the seed, and that there were some.
 */
#ifndef WEFT_TESTS_C_FAULTS_SUPPORT_H
#define WEFT_TESTS_C_FAULTS_SUPPORT_H

#include "faults.h"
#include "support.h"

static inline void faults_off(void)
{
    for (int i = 0; i < FAULT_COUNT; i++) atomic_store(&fault_one_in[i], 0);
}

/* Faults of these kinds happened, or the test has tested nothing. */
static inline void have_struck(const fault *kinds, size_t count)
{
    faults_off();
    for (size_t i = 0; i < count; i++) {
        printf("    %s: %ld\n", fault_names[kinds[i]], atomic_load(&fault_struck[kinds[i]]));
        assert_true(atomic_load(&fault_struck[kinds[i]]) > 0);
        atomic_store(&fault_struck[kinds[i]], 0);
    }
}

/* Takes the seed from WEFT_SEED or the clock, and prints it. */
static inline void faults_seed(void)
{
    const char *given = getenv("WEFT_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)weft_now_ns();
    printf("seed %llu\n", (unsigned long long)seed);
    atomic_store(&fault_seed, seed);
}

#endif
