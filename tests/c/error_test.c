/* SPDX-License-Identifier: MIT
 *
 * error_test.c: versions, features and the error table.
 */
#include "support.h"

#include <errno.h>
#include <stdio.h>

static void versions_agree(void **state)
{
    (void)state;
    assert_int_equal(weft_version_number(), WEFT_VERSION_NUMBER);
    assert_int_equal(WEFT_VERSION_NUMBER,
                     WEFT_VERSION_MAJOR * 1000000 + WEFT_VERSION_MINOR * 1000 + WEFT_VERSION_PATCH);
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
    assert_string_equal(weft_version_text(), text);
    assert_int_equal(weft_abi_version(), WEFT_ABI_VERSION);
}

static void features_name_one_poller(void **state)
{
    (void)state;
    uint64_t pollers = weft_features() & (WEFT_FEATURE_EPOLL | WEFT_FEATURE_IOCP);
    assert_true(pollers == WEFT_FEATURE_EPOLL || pollers == WEFT_FEATURE_IOCP);
}

static void every_code_has_a_name_and_a_text(void **state)
{
    (void)state;
    static const struct {
        int code, number;
        const char *name, *text;
    } rows[] = {
#define ROW(name, number, text) {name, number, #name, text},
        WEFT_ERROR_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rows[i].code, rows[i].number);
        assert_true(rows[i].code < 0);
        assert_string_equal(weft_error_name(rows[i].code), rows[i].name);
        assert_string_equal(weft_error_text(rows[i].code), rows[i].text);
        for (size_t j = 0; j < i; j++) assert_int_not_equal(rows[i].code, rows[j].code);
    }
    assert_string_equal(weft_error_name(0), "WEFT_OK");
    assert_string_equal(weft_error_text(0), "success");
    for (int unknown = -1000; unknown < -100; unknown += 133) {
        assert_string_equal(weft_error_name(unknown), "WEFT_E?");
        assert_string_equal(weft_error_text(unknown), "unknown error");
    }
    assert_string_equal(weft_error_text(1), "unknown error");
}

static void system_errors_translate(void **state)
{
    (void)state;
    assert_int_equal(weft_error_from_os(0), WEFT_OK);
#if defined(_WIN32)
    assert_int_equal(weft_error_from_os(WSAECONNREFUSED), WEFT_ECONNREFUSED);
    assert_int_equal(weft_error_from_os(WSAECONNRESET), WEFT_ECONNRESET);
    assert_int_equal(weft_error_from_os(WSAENOTCONN), WEFT_ENOTCONN);
    assert_int_equal(weft_error_from_os(WSAEADDRINUSE), WEFT_EADDRINUSE);
    assert_int_equal(weft_error_from_os(WSAEMFILE), WEFT_ELIMIT);
    assert_int_equal(weft_error_from_os(WSAENETUNREACH), WEFT_EUNREACH);
    assert_int_equal(weft_error_from_os(WSAEACCES), WEFT_EACCES);
    assert_int_equal(weft_error_from_os(ERROR_FILE_NOT_FOUND), WEFT_ENOENT);
    assert_int_equal(weft_error_from_os(ERROR_OPERATION_ABORTED), WEFT_ECANCELED);
#else
    assert_int_equal(weft_error_from_os(ECONNREFUSED), WEFT_ECONNREFUSED);
    assert_int_equal(weft_error_from_os(ECONNRESET), WEFT_ECONNRESET);
    assert_int_equal(weft_error_from_os(EPIPE), WEFT_EPIPE);
    assert_int_equal(weft_error_from_os(ENOTCONN), WEFT_ENOTCONN);
    assert_int_equal(weft_error_from_os(EADDRINUSE), WEFT_EADDRINUSE);
    assert_int_equal(weft_error_from_os(ENOMEM), WEFT_ENOMEM);
    assert_int_equal(weft_error_from_os(EMFILE), WEFT_ELIMIT);
    assert_int_equal(weft_error_from_os(ENETUNREACH), WEFT_EUNREACH);
    assert_int_equal(weft_error_from_os(EACCES), WEFT_EACCES);
#endif
    assert_int_equal(weft_error_from_os(123456), WEFT_ESYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_agree),
        cmocka_unit_test(features_name_one_poller),
        cmocka_unit_test(every_code_has_a_name_and_a_text),
        cmocka_unit_test(system_errors_translate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
