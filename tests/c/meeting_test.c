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
    atomic_long begun;          /* 1 + parks when the receive began */
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
    atomic_store(&meeting.begun, 1 + (long)stats_of(meeting.runtime).parks);
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

/* A runtime whose worker sleeps in the poller until a byte comes. */
static void begin_meeting(void (*at_point)(const char *))
{
    int pair[2];
    memset(&meeting, 0, sizeof meeting);
    stress_unwatch(1);
    weft_test_set_at_point(at_point);
    meeting.runtime = start_runtime(1);
    meeting.first.op.run = meeting.second.op.run = flag;
    meeting.io.op.run = received;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    meeting.byte_to = pair[1];
    assert_int_equal(weft_descriptor_open(meeting.runtime, pair[0], &meeting.from), WEFT_OK);
    weft_op begin = {.run = receive};
    assert_int_equal(weft_schedule(meeting.runtime, &begin), WEFT_OK);
    wait_for(&meeting.begun, 1);
    while (stats_of(meeting.runtime).parks < (uint64_t)atomic_load(&meeting.begun)) sleep_ms(1);
}

static void a_waker_who_finds_nobody_looks_again(void **state)
{
    (void)state;
    begin_meeting(wakes_by_itself);
    is_waker = true;
    assert_int_equal(weft_schedule(meeting.runtime, &meeting.first.op), WEFT_OK);
    assert_false(is_waker); /* both points were passed */
    wait_for(&meeting.first.ran, 1);
    wait_for(&meeting.second.ran, 1);
    assert_int_equal(weft_runtime_destroy(meeting.runtime), WEFT_OK);
    stress_unwatch(0);
    close(meeting.byte_to);
}

/* A waker has taken the worker's idle bit and is held up before he writes to what ends the wait in the poller. Meanwhile the worker wakes by itself, runs the op,
 * and that is the end of the runtime: which waits for the waker, whose write would else go to whatever has that descriptor's number by then. */
static atomic_long waker_held, waker_goes_on;

static void is_held_up(const char *point)
{
    stress_at_point(point);
    if (!is_waker || strcmp(point, "lane_notify_exchanged") != 0) return;
    atomic_store(&waker_held, 1);
    wait_for(&waker_goes_on, 1);
}

static void *submit_first(void *unused)
{
    is_waker = true;
    if (weft_schedule(meeting.runtime, &meeting.first.op) != WEFT_OK) abort();
    return unused;
}

static atomic_long destroyed;

static void *destroy(void *unused)
{
    if (weft_runtime_destroy(meeting.runtime) != WEFT_OK) abort();
    atomic_store(&destroyed, 1);
    return unused;
}

static void the_end_waits_for_a_waker(void **state)
{
    (void)state;
    pthread_t waker, ender;
    begin_meeting(is_held_up);
    atomic_store(&meeting.may_end, 1);
    assert_int_equal(pthread_create(&waker, NULL, submit_first, NULL), 0);
    wait_for(&waker_held, 1);
    assert_int_equal(send(meeting.byte_to, "x", 1, 0), 1);
    wait_for(&meeting.first.ran, 1);
    assert_int_equal(pthread_create(&ender, NULL, destroy, NULL), 0);
    sleep_ms(100);
    assert_int_equal(atomic_load(&destroyed), 0);
    atomic_store(&waker_goes_on, 1);
    wait_for(&destroyed, 1);
    pthread_join(waker, NULL);
    pthread_join(ender, NULL);
    stress_unwatch(0);
    close(meeting.byte_to);
}

/* A worker that has found nothing and is about to announce that it sleeps waits for what is to come meanwhile. */
enum { GOES_ON, TO_WAIT, WAITS };
static atomic_int sleeper;

static void falls_asleep(const char *point)
{
    stress_at_point(point);
    int to_wait = TO_WAIT;
    if (strcmp(point, "lane_park_begins") != 0 || !atomic_compare_exchange_strong(&sleeper, &to_wait, WAITS)) return;
    while (atomic_load(&sleeper) == WAITS) sleep_ms(1);
}

static void until_it_waits(void)
{
    for (int i = 0; atomic_load(&sleeper) != WAITS; i++) {
        if (i > 20000) fail_msg("nobody falls asleep");
        sleep_ms(1);
    }
}

/* A runtime, and one of its workers that has run an op and is about to sleep. */
static weft_runtime runtime_with_a_sleeper(uint32_t workers)
{
    static flagged last;
    last = (flagged){.op = {.run = flag}};
    stress_unwatch(1);
    weft_test_set_at_point(falls_asleep);
    weft_runtime runtime = start_runtime(workers);
    while (stats_of(runtime).parked != workers) sleep_ms(1);
    atomic_store(&sleeper, TO_WAIT);
    assert_int_equal(weft_schedule(runtime, &last.op), WEFT_OK);
    until_it_waits();
    assert_int_equal(atomic_load(&last.ran), 1);
    return runtime;
}

static void an_op_comes_before_the_sleep(void **state)
{
    (void)state;
    weft_runtime runtime = runtime_with_a_sleeper(1);
    flagged one = {.op = {.run = flag}};
    assert_int_equal(weft_schedule(runtime, &one.op), WEFT_OK);
    atomic_store(&sleeper, GOES_ON);
    wait_for(&one.ran, 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    stress_unwatch(0);
}

static void a_timer_comes_before_the_sleep(void **state)
{
    (void)state;
    weft_runtime runtime = runtime_with_a_sleeper(1);
    clocked one = {.timer = {.op = {.run = strike}}};
    assert_int_equal(weft_schedule_after(runtime, &one.timer, 1000000), WEFT_OK);
    atomic_store(&sleeper, GOES_ON);
    wait_for(&one.ran, 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    stress_unwatch(0);
}

typedef struct stopper {
    weft_runtime runtime;
    atomic_long stopped;
} stopper;

static void *stop(void *argument)
{
    stopper *self = argument;
    if (weft_runtime_stop(self->runtime) != WEFT_OK) abort();
    atomic_store(&self->stopped, 1);
    return NULL;
}

static void a_stop_comes_before_the_sleep(void **state)
{
    (void)state;
    stopper all = {.runtime = runtime_with_a_sleeper(1)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop, &all), 0);
    while (weft_runtime_status(all.runtime) == WEFT_OK) sleep_ms(1);
    sleep_ms(50); /* it has told all who sleep */
    atomic_store(&sleeper, GOES_ON);
    wait_for(&all.stopped, 1);
    pthread_join(thread, NULL);
    assert_int_equal(weft_runtime_destroy(all.runtime), WEFT_OK);
    stress_unwatch(0);
}

/* An op that queues two others while the second worker is about to sleep, and waits for one of them. */
typedef struct queuing {
    weft_op op;
    weft_runtime runtime;
    flagged others[2];
    atomic_long ran;
} queuing;

static void queue_two_and_wait(weft_op *op)
{
    queuing *self = (queuing *)op;
    until_it_waits();
    for (int i = 0; i < 2; i++)
        if (weft_schedule(self->runtime, &self->others[i].op) != WEFT_OK) abort();
    atomic_store(&sleeper, GOES_ON);
    for (int i = 0; atomic_load(&self->others[0].ran) + atomic_load(&self->others[1].ran) == 0; i++) {
        if (i > 10000) return;
        sleep_ms(1);
    }
    atomic_store(&self->ran, 1);
}

static void a_backlog_comes_before_the_sleep(void **state)
{
    (void)state;
    queuing all = {.op = {.run = queue_two_and_wait}, .others = {{.op = {.run = flag}}, {.op = {.run = flag}}}};
    all.runtime = runtime_with_a_sleeper(2);
    assert_int_equal(weft_schedule(all.runtime, &all.op), WEFT_OK);
    wait_for(&all.ran, 1);
    for (int i = 0; i < 2; i++) wait_for(&all.others[i].ran, 1);
    assert_int_equal(weft_runtime_destroy(all.runtime), WEFT_OK);
    stress_unwatch(0);
}

/* A replacement that nobody needs any more is about to sleep when the monitor asks it to leave. */
static void replacement_falls_asleep(const char *point)
{
    if (weft_worker_index() == 1) falls_asleep(point);
}

static void queue_one_and_be_replaced(weft_op *op)
{
    queuing *self = (queuing *)op;
    if (weft_schedule(self->runtime, &self->others[0].op) != WEFT_OK) abort();
    wait_for(&self->others[0].ran, 1);
    atomic_store(&self->ran, 1);
}

static void a_replacement_is_asked_before_its_sleep(void **state)
{
    (void)state;
    queuing all = {.op = {.run = queue_one_and_be_replaced}, .others = {{.op = {.run = flag}}}};
    atomic_store(&sleeper, TO_WAIT);
    weft_test_set_at_point(replacement_falls_asleep);
    all.runtime = start_runtime(1);
    assert_int_equal(weft_schedule(all.runtime, &all.op), WEFT_OK);
    wait_for(&all.ran, 1);
    until_it_waits();
    sleep_ms(200); /* long after it was asked */
    assert_int_equal(stats_of(all.runtime).workers, 2);
    atomic_store(&sleeper, GOES_ON);
    for (int i = 0; stats_of(all.runtime).workers != 1; i++) {
        if (i > 20000) fail_msg("the replacement stays");
        sleep_ms(1);
    }
    assert_int_equal(weft_runtime_destroy(all.runtime), WEFT_OK);
    stress_unwatch(0);
}

/* The monitor has seen that all sleep, and is about to do so, too, when a worker is woken for an op that needs it. */
static atomic_int monitor;

static void monitor_rests(const char *point)
{
    int to_wait = TO_WAIT;
    if (strcmp(point, "lane_watch_quiet") != 0 || !atomic_compare_exchange_strong(&monitor, &to_wait, WAITS)) return;
    while (atomic_load(&monitor) == WAITS) sleep_ms(1);
}

static void queue_one_and_wait(weft_op *op)
{
    queuing *self = (queuing *)op;
    if (weft_schedule(self->runtime, &self->others[0].op) != WEFT_OK) abort();
    atomic_store(&monitor, GOES_ON);
    for (int i = 0; atomic_load(&self->others[0].ran) == 0; i++) {
        if (i > 10000) return;
        sleep_ms(1);
    }
    atomic_store(&self->ran, 1);
}

static void a_stall_comes_before_the_monitor_sleeps(void **state)
{
    (void)state;
    queuing all = {.op = {.run = queue_one_and_wait}, .others = {{.op = {.run = flag}}}, .runtime = start_runtime(2)};
    atomic_store(&monitor, TO_WAIT);
    weft_test_set_at_point(monitor_rests);
    for (int i = 0; atomic_load(&monitor) != WAITS; i++) {
        if (i > 20000) fail_msg("the monitor does not rest");
        sleep_ms(1);
    }
    assert_int_equal(weft_schedule(all.runtime, &all.op), WEFT_OK);
    wait_for(&all.ran, 1);
    assert_int_equal(weft_runtime_destroy(all.runtime), WEFT_OK);
    stress_unwatch(0);
}

/* What comes between a start's look at its handle and its claim of the slot. */
static struct {
    weft_runtime runtime;
    weft_descriptor descriptor;
    weft_io io;
    int others[2]; /* the other ends */
    enum { NOTHING, A_CANCEL, A_CLOSE } comes;
} between;

static weft_descriptor open_between(int n)
{
    int pair[2];
    weft_descriptor descriptor;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(weft_descriptor_open(between.runtime, pair[0], &descriptor), WEFT_OK);
    between.others[n] = pair[1];
    return descriptor;
}

static void something_comes(const char *point)
{
    if (strcmp(point, "io_start_published") != 0) return;
    if (between.comes == A_CANCEL) assert_int_equal(weft_io_cancel(&between.io), WEFT_OK);
    if (between.comes == A_CLOSE) {
        assert_int_equal(weft_descriptor_close(between.descriptor), WEFT_OK);
        between.descriptor = open_between(1);
    }
    between.comes = NOTHING;
}

static void ignored(weft_op *op) { (void)op; }

static weft_io *fresh_between(int comes)
{
    between.comes = comes;
    between.io = (weft_io){.op.run = ignored};
    return &between.io;
}

static void a_cancel_comes_before_a_refusal(void **state)
{
    (void)state;
    char byte;
    weft_io waits = {.op.run = ignored};
    between.runtime = start_runtime(1);
    between.descriptor = open_between(0);
    assert_int_equal(weft_recv(&waits, between.descriptor, &byte, 1, 0), WEFT_OK);
    weft_test_set_at_point(something_comes);
    assert_int_equal(weft_recv(fresh_between(A_CANCEL), between.descriptor, &byte, 1, 0), WEFT_EBUSY);
    assert_int_equal(weft_send(&between.io, between.descriptor, "x", 1, 0), 1); /* the request was noted */
    assert_int_equal(between.io.status, WEFT_ECANCELED);
    assert_int_equal(weft_runtime_destroy(between.runtime), WEFT_OK);
    stress_unwatch(0);
    close(between.others[0]);
}

static void a_close_comes_before_the_claim(void **state)
{
    (void)state;
    char byte = 0;
    between.runtime = start_runtime(1);
    weft_descriptor old = between.descriptor = open_between(0);
    weft_test_set_at_point(something_comes);
    assert_int_equal(weft_recv(fresh_between(A_CLOSE), old, &byte, 1, 0), WEFT_EBADHANDLE);
    assert_int_equal(between.descriptor.id & 0xffffffff, old.id & 0xffffffff); /* the same record, another's now */
    assert_int_equal(send(between.others[1], "x", 1, 0), 1);
    assert_int_equal(weft_recv(fresh_between(NOTHING), between.descriptor, &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
    assert_int_equal(weft_runtime_destroy(between.runtime), WEFT_OK);
    stress_unwatch(0);
    close(between.others[0]);
    close(between.others[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waker_who_finds_nobody_looks_again),
        cmocka_unit_test(the_end_waits_for_a_waker),
        cmocka_unit_test(an_op_comes_before_the_sleep),
        cmocka_unit_test(a_timer_comes_before_the_sleep),
        cmocka_unit_test(a_stop_comes_before_the_sleep),
        cmocka_unit_test(a_backlog_comes_before_the_sleep),
        cmocka_unit_test(a_stall_comes_before_the_monitor_sleeps),
        cmocka_unit_test(a_replacement_is_asked_before_its_sleep),
        cmocka_unit_test(a_cancel_comes_before_a_refusal),
        cmocka_unit_test(a_close_comes_before_the_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
