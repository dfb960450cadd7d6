/* SPDX-License-Identifier: MIT
 *
 * meeting_test.c: certain meetings of threads, arranged at the points of capi/delay.h, which random delays hardly ever bring
 * about. The monitor stands still meanwhile: it would mend what is lost. Only in builds with delays.
 */
#include <sys/socket.h>

#include "stress_support.h"

static struct {
    weft_runtime runtime;
    int byte_to;
    weft_descriptor from;
    weft_io io;
    char byte;
    atomic_long in_op, may_end; /* the op that receives the byte */
    flagged first, second;
} meeting;

static _Thread_local bool is_waker;

static void received(weft_op *op)
{
    (void)op;
    atomic_store(&meeting.in_op, 1);
    wait_for(&meeting.may_end, 1);
}

static void receive(weft_op *op)
{
    (void)op;
    if (weft_recv(&meeting.io, meeting.from, &meeting.byte, 1, 0) != WEFT_OK) abort();
}

static void *submit_second(void *unused)
{
    if (weft_schedule(meeting.runtime, &meeting.second.op) != WEFT_OK) abort();
    return unused;
}

/* The waker has seen the idle worker, and now the worker wakes by itself. When the waker has found nobody, the worker goes to
 * sleep again, and a second producer comes, who relies on the waker. */
static void wakes_by_itself(const char *point)
{
    stress_at_point(point);
    if (!is_waker) return;
    if (strcmp(point, "lane_wake_one_waking") == 0) {
        if (send(meeting.byte_to, "x", 1, 0) != 1) abort();
        wait_for(&meeting.in_op, 1);
    } else if (strcmp(point, "lane_wake_one_nobody") == 0) {
        is_waker = false;
        uint64_t parks = stats_of(meeting.runtime).parks;
        atomic_store(&meeting.may_end, 1);
        while (stats_of(meeting.runtime).parks == parks) sleep_ms(1);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, submit_second, NULL), 0);
        pthread_join(thread, NULL);
    }
}

static void a_waker_who_finds_nobody_looks_again(void **state)
{
    (void)state;
    int pair[2];
    stress_unwatch(1);
    weft_test_set_at_point(wakes_by_itself);
    meeting.runtime = start_runtime(1);
    meeting.first.op.run = meeting.second.op.run = flag;
    meeting.io.op.run = received;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    meeting.byte_to = pair[1];
    assert_int_equal(weft_descriptor_open(meeting.runtime, pair[0], &meeting.from), WEFT_OK);
    weft_op begin = {.run = receive};
    assert_int_equal(weft_schedule(meeting.runtime, &begin), WEFT_OK);
    for (uint64_t parks = 0; parks < 2; sleep_ms(1)) parks = stats_of(meeting.runtime).parks; /* first, and with the receive */
    is_waker = true;
    assert_int_equal(weft_schedule(meeting.runtime, &meeting.first.op), WEFT_OK);
    assert_false(is_waker); /* both points were passed */
    wait_for(&meeting.first.ran, 1);
    wait_for(&meeting.second.ran, 1);
    assert_int_equal(weft_runtime_destroy(meeting.runtime), WEFT_OK);
    stress_unwatch(0);
    close(meeting.byte_to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waker_who_finds_nobody_looks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
