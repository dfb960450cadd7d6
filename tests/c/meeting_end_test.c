/* SPDX-License-Identifier: MIT
 *
 * meeting_end_test.c: the end of a runtime meets threads that have an op, or a slot, in their hands: it waits for them. And it meets one that comes too
 * late, who finds what he needs although the runtime is gone. Arranged at the points of capi/delay.h, so only in builds with delays.
 */
#include <sys/socket.h>

#include "stress_support.h"

static struct {
    weft_runtime runtime;
    weft_descriptor descriptor;
    int peer;
    weft_io io;
    weft_timer timer;
    char byte;
    atomic_long ran, held, goes_on, returned, destroyed;
    const char *point;
    int (*call)(void);
    int rc;
} visit;

static _Thread_local bool is_visitor;

static void held_up(const char *point)
{
    if (!is_visitor || strcmp(point, visit.point) != 0) return;
    is_visitor = false;
    atomic_store(&visit.held, 1);
    wait_for(&visit.goes_on, 1);
}

static void count_run(weft_op *op)
{
    (void)op;
    atomic_fetch_add(&visit.ran, 1);
}

static void *visitor(void *unused)
{
    is_visitor = true;
    visit.rc = visit.call();
    atomic_store(&visit.returned, 1);
    return unused;
}

static void *ender(void *unused)
{
    if (weft_runtime_destroy(visit.runtime) != WEFT_OK) abort();
    atomic_store(&visit.destroyed, 1);
    return unused;
}

static int receive(void) { return weft_recv(&visit.io, visit.descriptor, &visit.byte, 1, 0); }
static int cancel_receive(void) { return weft_io_cancel(&visit.io); }
static int close_descriptor(void) { return weft_descriptor_close(visit.descriptor); }
static int start_timer(void) { return weft_schedule_after(visit.runtime, &visit.timer, INT64_C(3600000000000)); }
static int cancel_timer(void) { return weft_timer_cancel(&visit.timer); }

/* A runtime with a descriptor, and perhaps an op that waits; and a thread that makes a call and is held up at a point of it. */
static pthread_t held_in(int (*starts)(void), int (*call)(void), const char *point)
{
    int pair[2];
    pthread_t thread;
    memset(&visit, 0, sizeof visit);
    visit.runtime = start_runtime(2);
    visit.io.op.run = visit.timer.op.run = count_run;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(weft_descriptor_open(visit.runtime, pair[0], &visit.descriptor), WEFT_OK);
    visit.peer = pair[1];
    if (starts != NULL) assert_int_equal(starts(), WEFT_OK);
    visit.call = call;
    visit.point = point;
    weft_test_set_at_point(held_up);
    assert_int_equal(pthread_create(&thread, NULL, visitor, NULL), 0);
    wait_for(&visit.held, 1);
    return thread;
}

static void goes_on(pthread_t thread)
{
    atomic_store(&visit.goes_on, 1);
    pthread_join(thread, NULL);
    weft_test_set_at_point(NULL);
    close(visit.peer);
}

/* Returns what the call did. All of the runtime's ops have run when it has been destroyed. */
static int the_end_waits(int (*starts)(void), int (*call)(void), const char *point)
{
    pthread_t thread = held_in(starts, call, point), end;
    assert_int_equal(pthread_create(&end, NULL, ender, NULL), 0);
    sleep_ms(50);
    assert_int_equal(atomic_load(&visit.destroyed), 0);
    assert_int_equal(atomic_load(&visit.ran), 0);
    goes_on(thread);
    pthread_join(end, NULL);
    return visit.rc;
}

static void the_end_waits_for_a_canceller(void **state)
{
    (void)state;
    assert_int_equal(the_end_waits(receive, cancel_receive, "io_cancel_withdrawn"), WEFT_OK);
    assert_int_equal(atomic_load(&visit.ran), 1);
    assert_int_equal(visit.io.status, WEFT_ECANCELED);
    assert_int_equal(the_end_waits(start_timer, cancel_timer, "lane_timer_taken_out"), WEFT_OK);
    assert_int_equal(atomic_load(&visit.ran), 1);
    assert_int_equal(visit.timer.status, WEFT_ECANCELED);
}

static void the_end_waits_for_a_closer(void **state)
{
    (void)state;
    assert_int_equal(the_end_waits(receive, close_descriptor, "lane_finish"), WEFT_OK);
    assert_int_equal(atomic_load(&visit.ran), 1);
    assert_int_equal(visit.io.status, WEFT_ECLOSED);
}

static void the_end_waits_for_a_starter(void **state)
{
    (void)state;
    assert_int_equal(the_end_waits(NULL, receive, "io_start_claimed"), 1);
    assert_int_equal(visit.io.status, WEFT_ECANCELED);
    assert_int_equal(atomic_load(&visit.ran), 0);
}

/* Has found an op under way, and is held up until the op has completed and its runtime is gone. */
static void a_canceller_comes_too_late(void **state)
{
    (void)state;
    pthread_t thread = held_in(receive, cancel_receive, "io_cancel_found");
    assert_int_equal(send(visit.peer, "x", 1, 0), 1);
    wait_for(&visit.ran, 1);
    assert_int_equal(weft_runtime_destroy(visit.runtime), WEFT_OK);
    goes_on(thread);
    assert_int_equal(visit.rc, WEFT_OK);
    assert_int_equal(atomic_load(&visit.ran), 1);
    assert_int_equal(visit.io.status, WEFT_OK);
    assert_int_equal(visit.byte, 'x');
}

/* Has found the runtime, and is held up until it is gone and another is in its place, whose descriptor has the same number. */
static void a_starter_comes_too_late(void **state)
{
    (void)state;
    pthread_t thread = held_in(NULL, receive, "io_start_accepted");
    assert_int_equal(weft_runtime_destroy(visit.runtime), WEFT_OK);
    weft_descriptor stale = visit.descriptor, fresh;
    weft_runtime next = start_runtime(1);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(weft_descriptor_open(next, pair[0], &fresh), WEFT_OK);
    assert_int_equal(fresh.id & 0xffffffff, stale.id & 0xffffffff);
    assert_int_equal(send(pair[1], "x", 1, 0), 1);
    goes_on(thread);
    assert_int_equal(visit.rc, WEFT_EBADHANDLE);
    visit.descriptor = fresh;
    assert_int_equal(receive(), 1);
    assert_int_equal(visit.byte, 'x');
    assert_int_equal(weft_runtime_destroy(next), WEFT_OK);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_waits_for_a_canceller), cmocka_unit_test(the_end_waits_for_a_closer),
        cmocka_unit_test(the_end_waits_for_a_starter),   cmocka_unit_test(a_canceller_comes_too_late),
        cmocka_unit_test(a_starter_comes_too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
