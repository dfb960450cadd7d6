/* SPDX-License-Identifier: MIT
 *
 * fixture.h: a runtime for each test of I/O, which leaves no descriptor behind.
 */
#ifndef WEFT_TESTS_C_FIXTURE_H
#define WEFT_TESTS_C_FIXTURE_H

#include "support.h"

static weft_runtime runtime;

static inline int set_up(void **state)
{
    (void)state;
    runtime = start_runtime(2);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    assert_int_equal(stats_of(runtime).descriptors, 0);
    return weft_runtime_destroy(runtime);
}

#define IO_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static inline weft_endpoint parsed(const char *text)
{
    weft_endpoint endpoint;
    assert_int_equal(weft_endpoint_parse(text, &endpoint), WEFT_OK);
    return endpoint;
}

#endif
