/* SPDX-License-Identifier: MIT
 *
 * endpoint_test.c: addresses as text.
 */
#include "support.h"

typedef struct row {
    const char *text;
    const char *formatted; /* as weft writes it; NULL: not an address */
    uint16_t family, port;
    uint32_t scope;
} row;

static const row rows[] = {
    {"127.0.0.1:80", "127.0.0.1:80", WEFT_IPV4, 80, 0},
    {"0.0.0.0:0", "0.0.0.0:0", WEFT_IPV4, 0, 0},
    {"255.255.255.255:65535", "255.255.255.255:65535", WEFT_IPV4, 65535, 0},
    {"10.0.0.1:00080", "10.0.0.1:80", WEFT_IPV4, 80, 0},
    {"[::]:1", "[::]:1", WEFT_IPV6, 1, 0},
    {"[::1]:80", "[::1]:80", WEFT_IPV6, 80, 0},
    {"[0:0:0:0:0:0:0:1]:80", "[::1]:80", WEFT_IPV6, 80, 0},
    {"[fe80::1%2]:80", "[fe80::1%2]:80", WEFT_IPV6, 80, 2},
    {"[fe80::1%4294967295]:80", "[fe80::1%4294967295]:80", WEFT_IPV6, 80, UINT32_MAX},
    {"[::1%0]:80", "[::1]:80", WEFT_IPV6, 80, 0},
    {"[2001:DB8::A]:443", "[2001:db8::a]:443", WEFT_IPV6, 443, 0},
    {"[::ffff:192.0.2.1]:9", "[::ffff:192.0.2.1]:9", WEFT_IPV6, 9, 0},
    {"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535",
     WEFT_IPV6, 65535, UINT32_MAX},
    {"", NULL, 0, 0, 0},
    {":", NULL, 0, 0, 0},
    {":80", NULL, 0, 0, 0},
    {"127.0.0.1", NULL, 0, 0, 0},
    {"127.0.0.1:", NULL, 0, 0, 0},
    {"127.0.0.1:65536", NULL, 0, 0, 0},
    {"127.0.0.1:000080", NULL, 0, 0, 0},
    {"127.0.0.1:-1", NULL, 0, 0, 0},
    {"127.0.0.1:+1", NULL, 0, 0, 0},
    {"127.0.0.1: 1", NULL, 0, 0, 0},
    {"127.0.0.1:1 ", NULL, 0, 0, 0},
    {"127.0.0.1:0x50", NULL, 0, 0, 0},
    {" 127.0.0.1:1", NULL, 0, 0, 0},
    {"127.0.0:1", NULL, 0, 0, 0},
    {"127.0.0.1.2:1", NULL, 0, 0, 0},
    {"127.0.0.256:1", NULL, 0, 0, 0},
    {"127.0.0.01:1", NULL, 0, 0, 0},
    {"0127.0.0.1:1", NULL, 0, 0, 0},
    {"111.111.111.1111111111111:1", NULL, 0, 0, 0},
    {"localhost:80", NULL, 0, 0, 0},
    {"[127.0.0.1]:80", NULL, 0, 0, 0},
    {"::1:80", NULL, 0, 0, 0},
    {"[::1]", NULL, 0, 0, 0},
    {"[::1]80", NULL, 0, 0, 0},
    {"[::1:80", NULL, 0, 0, 0},
    {"[:80", NULL, 0, 0, 0},
    {"[]:80", NULL, 0, 0, 0},
    {"::1]:80", NULL, 0, 0, 0},
    {"[::1]]:80", NULL, 0, 0, 0},
    {"[[::1]:80", NULL, 0, 0, 0},
    {"[fe80::1%]:80", NULL, 0, 0, 0},
    {"[fe80::1%eth0]:80", NULL, 0, 0, 0},
    {"[fe80::1%1%2]:80", NULL, 0, 0, 0},
    {"[fe80::1%-1]:80", NULL, 0, 0, 0},
    {"[fe80::1%4294967296]:80", NULL, 0, 0, 0},
    {"[fe80::1%00000000001]:80", NULL, 0, 0, 0},
    {"[1:2:3:4:5:6:7:8:9]:80", NULL, 0, 0, 0},
    {"[::1::]:80", NULL, 0, 0, 0},
    {"[1111111111111111111111111111111111111111111111111111111111111111111111]:80", NULL, 0, 0, 0},
};

static void parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        weft_endpoint endpoint, untouched;
        memset(&endpoint, 0x5a, sizeof endpoint);
        untouched = endpoint;
        int rc = weft_endpoint_parse(r->text, &endpoint);
        if (r->formatted == NULL) {
            if (rc != WEFT_EINVAL) fail_msg("\"%s\" is taken for an address", r->text);
            assert_memory_equal(&endpoint, &untouched, sizeof endpoint);
            continue;
        }
        if (rc != WEFT_OK) fail_msg("\"%s\" is refused", r->text);
        assert_int_equal(endpoint.family, r->family);
        assert_int_equal(endpoint.port, r->port);
        assert_int_equal(endpoint.scope, r->scope);
    }
    assert_int_equal(weft_endpoint_parse(NULL, &(weft_endpoint){0}), WEFT_EINVAL);
    assert_int_equal(weft_endpoint_parse("127.0.0.1:80", NULL), WEFT_EINVAL);
}

static void bytes_are_in_network_order(void **state)
{
    (void)state;
    weft_endpoint endpoint;
    assert_int_equal(weft_endpoint_parse("1.2.3.4:258", &endpoint), WEFT_OK);
    assert_memory_equal(endpoint.address, ((uint8_t[16]){1, 2, 3, 4}), 16);
    assert_int_equal(weft_endpoint_parse("[102:304::f]:258", &endpoint), WEFT_OK);
    assert_memory_equal(endpoint.address, ((uint8_t[16]){1, 2, 3, 4, [15] = 15}), 16);
}

static void formats(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        if (r->formatted == NULL) continue;
        weft_endpoint endpoint, again;
        int length = (int)strlen(r->formatted);
        char text[WEFT_ENDPOINT_TEXT_BYTES];
        assert_int_equal(weft_endpoint_parse(r->text, &endpoint), WEFT_OK);
        assert_int_equal(weft_endpoint_format(&endpoint, text, sizeof text), length);
        assert_string_equal(text, r->formatted);
        assert_int_equal(weft_endpoint_parse(text, &again), WEFT_OK);
        assert_memory_equal(&endpoint, &again, sizeof endpoint);
        /* Just enough room, and one too little, where nothing is written. */
        assert_int_equal(weft_endpoint_format(&endpoint, text, (size_t)length + 1), length);
        text[0] = 'z';
        assert_int_equal(weft_endpoint_format(&endpoint, text, (size_t)length), WEFT_EINVAL);
        assert_int_equal(text[0], 'z');
    }
    weft_endpoint none = {0};
    char text[8];
    assert_int_equal(weft_endpoint_format(&none, text, sizeof text), WEFT_EINVAL);
    assert_int_equal(weft_endpoint_format(NULL, text, sizeof text), WEFT_EINVAL);
    none.family = WEFT_IPV4;
    assert_int_equal(weft_endpoint_format(&none, NULL, 64), WEFT_EINVAL);
    assert_int_equal(weft_endpoint_format(&none, text, 0), WEFT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),
        cmocka_unit_test(bytes_are_in_network_order),
        cmocka_unit_test(formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
