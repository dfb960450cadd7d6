/* SPDX-License-Identifier: MIT
 *
 * cmocka.h: as much of cmocka's interface as tests/c uses, for programs that are cross-compiled, for which Debian has no cmocka. A failed assertion, on any thread,
 * says where it stands and ends the program.
 */
#ifndef WEFT_TESTS_CROSS_CMOCKA_H
#define WEFT_TESTS_CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
    CMFixtureFunction set_up, tear_down;
};

#define cmocka_unit_test(f) {#f, f, NULL, NULL}
#define cmocka_unit_test_setup_teardown(f, set_up, tear_down) {#f, f, set_up, tear_down}

#define cm_fail_(...)                                                               \
    (fprintf(stderr, "[  ERROR   ] --- %s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), \
     fflush(NULL), _Exit(1))

#define print_message(...) fprintf(stderr, __VA_ARGS__)
#define fail_msg(...) cm_fail_(__VA_ARGS__)
#define cm_check_(truth, text) ((truth) ? (void)0 : cm_fail_("%s", text))
#define assert_true(a) cm_check_(a, #a)
#define assert_false(a) cm_check_(!(a), "not " #a)
#define assert_non_null(a) cm_check_((a) != NULL, #a " != NULL")
#define assert_null(a) cm_check_((a) == NULL, #a " == NULL")
#define assert_string_equal(a, b) cm_check_(strcmp(a, b) == 0, #a " equals " #b)
#define assert_memory_equal(a, b, size) cm_check_(memcmp(a, b, size) == 0, #a " equals " #b)
#define assert_int_equal(a, b) cm_equal_((unsigned long long)(a), (unsigned long long)(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) cm_equal_((unsigned long long)(a), (unsigned long long)(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_in_range(a, least, most) cm_check_((unsigned long long)(a) - (least) <= (unsigned long long)(most) - (least), #a " in " #least " to " #most)

static inline void cm_equal_(unsigned long long a, unsigned long long b, int equal, const char *text, const char *file, int line)
{
    if ((a == b) == equal) return;
    fprintf(stderr, "[  ERROR   ] --- %s:%d: %s; %lld and %lld\n", file, line, text, (long long)a, (long long)b);
    fflush(NULL);
    _Exit(1);
}

#define cmocka_run_group_tests(tests, set_up, tear_down) cm_run_(tests, sizeof(tests) / sizeof *(tests), set_up, tear_down)

static inline int cm_run_(const struct CMUnitTest *tests, size_t count, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    void *group = NULL;
    if (set_up != NULL && set_up(&group) != 0) cm_fail_("set-up of the group");
    for (size_t i = 0; i < count; i++) {
        void *state = group;
        fprintf(stderr, "[ RUN      ] %s\n", tests[i].name);
        if (tests[i].set_up != NULL && tests[i].set_up(&state) != 0) cm_fail_("set-up of %s", tests[i].name);
        tests[i].test(&state);
        if (tests[i].tear_down != NULL && tests[i].tear_down(&state) != 0) cm_fail_("tear-down of %s", tests[i].name);
        fprintf(stderr, "[       OK ] %s\n", tests[i].name);
    }
    if (tear_down != NULL && tear_down(&group) != 0) cm_fail_("tear-down of the group");
    fprintf(stderr, "[  PASSED  ] %u test(s).\n", (unsigned)count);
    return 0;
}

#endif
