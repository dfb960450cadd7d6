/* SPDX-License-Identifier: MIT
 *
 * http.h: the little HTTP that the servers share. Requests and answers are 64 bytes each. A request for /slow makes its handler
 * block its thread for 50 ms, as a careless one does; all others are answered at once.
 */
#ifndef WEFT_BENCH_HTTP_H
#define WEFT_BENCH_HTTP_H

#include <stddef.h>
#include <string.h>

#include "bench.h"

enum { bench_http_bytes = 64, bench_http_slow_ns = 50000000 };

#define BENCH_HTTP_HEAD "HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n"
static const char bench_http_fast[] = "GET / " BENCH_HTTP_HEAD "X: 0123456789a\r\n\r\n";
static const char bench_http_slow[] = "GET /slow " BENCH_HTTP_HEAD "X: 0123456\r\n\r\n";
static const char bench_http_answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\nan answer of 25 bytes....";

#ifdef __cplusplus
#define BENCH_STATIC_ASSERT static_assert
#else
#define BENCH_STATIC_ASSERT _Static_assert
#endif
BENCH_STATIC_ASSERT(sizeof bench_http_fast == bench_http_bytes + 1 && sizeof bench_http_slow == bench_http_bytes + 1 &&
                        sizeof bench_http_answer == bench_http_bytes + 1,
                    "64 bytes each");

/* Handles a request that is complete: 64 bytes that end with an empty line. */
static inline void bench_http_handle(const char *request) {
    if (memcmp(request + bench_http_bytes - 4, "\r\n\r\n", 4) != 0) bench_fail("no request");
    if (memcmp(request, "GET /slow ", 10) == 0)
        bench_sleep_ns(bench_http_slow_ns);
    else if (memcmp(request, "GET / ", 6) != 0)
        bench_fail("no such page");
}

#endif
