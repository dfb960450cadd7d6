/* SPDX-License-Identifier: MIT
 *
 * datagram_test.c: datagrams with the address of the other end: both families, empty ones, those that are cut off or too long, nobody there, a connected
 * socket, and the ends of a receive that waits.
 */
#include "fixture.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct job {
    weft_datagram datagram;
    atomic_long done;
} job;

static void count_done(weft_op *op) { atomic_fetch_add(&((job *)op)->done, 1); }

static job new_job(void) { return (job){.datagram = {.io = {.op = {.run = count_done}}}}; }

/* A socket on the loopback address of a family, and where it is. */
typedef struct place {
    weft_descriptor socket;
    weft_endpoint endpoint;
} place;

static place open_place(const char *text)
{
    weft_endpoint wanted = parsed(text);
    place p;
    assert_int_equal(weft_udp_open(runtime, &wanted, &p.socket), WEFT_OK);
    assert_int_equal(weft_local_endpoint(p.socket, &p.endpoint), WEFT_OK);
    assert_int_not_equal(p.endpoint.port, 0);
    return p;
}

static void close_place(place p) { assert_int_equal(weft_descriptor_close(p.socket), WEFT_OK); }

static bool same(const weft_endpoint *a, const weft_endpoint *b)
{
    return a->family == b->family && a->port == b->port && memcmp(a->address, b->address, a->family == WEFT_IPV4 ? 4 : 16) == 0;
}

/* Waits for a start and returns the op's status. */
static int result(job *j, int started)
{
    assert_true(started == WEFT_OK || started == 1);
    if (started == WEFT_OK) wait_for(&j->done, 1);
    assert_int_equal(atomic_load(&j->done), started == WEFT_OK);
    atomic_store(&j->done, 0);
    return j->datagram.io.status;
}

static void sends(place from, const char *text, const weft_endpoint *to)
{
    job j = new_job();
    assert_int_equal(result(&j, weft_send_to(&j.datagram, from.socket, text, strlen(text), to)), WEFT_OK);
    assert_int_equal(j.datagram.io.count, strlen(text));
}

/* Receives a datagram that is on its way. */
static void receives(place at, const char *text, const weft_endpoint *from)
{
    job j = new_job();
    char got[64];
    assert_int_equal(result(&j, weft_recv_from(&j.datagram, at.socket, got, sizeof got)), WEFT_OK);
    assert_int_equal(j.datagram.io.count, strlen(text));
    assert_memory_equal(got, text, strlen(text));
    assert_true(same(&j.datagram.peer, from));
    assert_int_equal(j.datagram.truncated, 0);
}

static void bad_arguments(void **state)
{
    (void)state;
    place p = open_place("127.0.0.1:0");
    job j = new_job();
    char byte;
    weft_descriptor descriptor;
    weft_endpoint none = {0};
    assert_int_equal(weft_udp_open(runtime, NULL, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_udp_open(runtime, &none, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_udp_open(runtime, &p.endpoint, NULL), WEFT_EINVAL);
    assert_int_equal(weft_udp_open((weft_runtime){0}, &p.endpoint, &descriptor), WEFT_EBADHANDLE);
    assert_int_equal(weft_udp_open(runtime, &p.endpoint, &descriptor), WEFT_EADDRINUSE);
#if !defined(_WIN32) /* Wine takes any */
    weft_endpoint elsewhere = parsed("192.0.2.1:9");
    assert_int_equal(weft_udp_open(runtime, &elsewhere, &descriptor), WEFT_EADDRNOTAVAIL);
#endif
    assert_int_equal(weft_recv_from(NULL, p.socket, &byte, 1), WEFT_EINVAL);
    assert_int_equal(weft_recv_from(&j.datagram, p.socket, NULL, 1), WEFT_EINVAL);
    assert_int_equal(weft_recv_from(&j.datagram, (weft_descriptor){0}, &byte, 1), WEFT_EBADHANDLE);
    assert_int_equal(weft_send_to(&j.datagram, p.socket, NULL, 1, &p.endpoint), WEFT_EINVAL);
    assert_int_equal(weft_send_to(&j.datagram, p.socket, &byte, 1, NULL), WEFT_EINVAL);
    assert_int_equal(weft_send_to(&j.datagram, p.socket, &byte, 1, &none), WEFT_EINVAL);
    assert_int_equal(weft_udp_connect(p.socket, NULL), WEFT_EINVAL);
    assert_int_equal(weft_udp_connect((weft_descriptor){0}, &p.endpoint), WEFT_EBADHANDLE);
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &descriptor), WEFT_OK);
    assert_int_equal(weft_udp_connect(descriptor, &p.endpoint), WEFT_ENOTSUP);
    assert_int_equal(weft_descriptor_close(descriptor), WEFT_OK);
    close_place(p);
}

static void there_and_back(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++) {
        place a = open_place(v6 ? "[::1]:0" : "127.0.0.1:0"), b = open_place(v6 ? "[::1]:0" : "127.0.0.1:0");
        for (int i = 0; i < 200; i++) {
            job waits = new_job();
            char got[8];
            assert_int_equal(weft_recv_from(&waits.datagram, b.socket, got, sizeof got), WEFT_OK); /* before it comes */
            assert_int_equal(weft_recv_from(&(job){.datagram.io.op.run = count_done}.datagram, b.socket, got, 1), WEFT_EBUSY);
            sends(a, "there", &b.endpoint);
            assert_int_equal(result(&waits, WEFT_OK), WEFT_OK);
            assert_int_equal(waits.datagram.io.count, 5);
            assert_memory_equal(got, "there", 5);
            assert_true(same(&waits.datagram.peer, &a.endpoint));
            sends(b, "and back", &waits.datagram.peer);
            receives(a, "and back", &b.endpoint);
        }
        close_place(a);
        close_place(b);
    }
}

/* A datagram may be empty, or longer than the buffer; neither is an end, and the next one comes whole. */
static void boundaries(void **state)
{
    (void)state;
    place a = open_place("127.0.0.1:0"), b = open_place("127.0.0.1:0");
    char got[4];
    for (int early = 0; early < 2; early++) { /* the receive comes first, or the datagram */
        job j = new_job();
        if (!early) sends(a, "too long", &b.endpoint);
        int started = weft_recv_from(&j.datagram, b.socket, got, sizeof got);
        if (early) sends(a, "too long", &b.endpoint);
        assert_int_equal(result(&j, started), WEFT_OK);
        assert_int_equal(j.datagram.io.count, 4);
        assert_memory_equal(got, "too ", 4);
        assert_int_equal(j.datagram.truncated, 1);
        assert_true(same(&j.datagram.peer, &a.endpoint));
        sends(a, "", &b.endpoint);
        receives(b, "", &a.endpoint);
        sends(a, "", &b.endpoint);
        job none = new_job();
        assert_int_equal(result(&none, weft_recv_from(&none.datagram, b.socket, NULL, 0)), WEFT_OK);
        assert_int_equal(none.datagram.truncated, 0);
        sends(a, "whole", &b.endpoint);
        receives(b, "whole", &a.endpoint);
    }
    static char huge[70000];
    job j = new_job();
    for (int i = 0; i < 50; i++) { /* nothing is still to come when it has failed */
        assert_int_equal(result(&j, weft_send_to(&j.datagram, a.socket, huge, sizeof huge, &b.endpoint)), WEFT_EINVAL);
        assert_int_equal(j.datagram.io.count, 0);
        memset(&j.datagram, 0, sizeof j.datagram);
        j.datagram.io.op.run = count_done;
    }
    weft_endpoint other = parsed("[::1]:9");
    int status = result(&j, weft_send_to(&j.datagram, a.socket, huge, 1, &other));
    assert_true(status == WEFT_EINVAL || status == WEFT_ENOTSUP);
    sends(a, "still there", &b.endpoint);
    receives(b, "still there", &a.endpoint);
    close_place(a);
    close_place(b);
}

/* That a datagram has come to nobody is not told to a socket that is not connected. */
static void nobody_there(void **state)
{
    (void)state;
    place a = open_place("127.0.0.1:0"), gone = open_place("127.0.0.1:0"), b = open_place("127.0.0.1:0");
    close_place(gone);
    for (int i = 0; i < 20; i++) {
        job waits = new_job();
        char got[8];
        int started = weft_recv_from(&waits.datagram, a.socket, got, sizeof got);
        assert_int_equal(started, WEFT_OK);
        for (int k = 0; k < 3; k++) sends(a, "lost", &gone.endpoint);
        sends(b, "found", &a.endpoint);
        assert_int_equal(result(&waits, started), WEFT_OK);
        assert_memory_equal(got, "found", 5);
        assert_true(same(&waits.datagram.peer, &b.endpoint));
    }
    close_place(a);
    close_place(b);
}

static void connected(void **state)
{
    (void)state;
    place a = open_place("127.0.0.1:0"), b = open_place("127.0.0.1:0"), stranger = open_place("127.0.0.1:0");
    weft_endpoint peer;
    assert_int_equal(weft_remote_endpoint(a.socket, &peer), WEFT_ENOTCONN);
    assert_int_equal(weft_udp_connect(a.socket, &b.endpoint), WEFT_OK);
    assert_int_equal(weft_remote_endpoint(a.socket, &peer), WEFT_OK);
    assert_true(same(&peer, &b.endpoint));
    job j = new_job();
    assert_int_equal(result(&j, weft_send(&j.datagram.io, a.socket, "hello", 5, 0)), WEFT_OK);
    receives(b, "hello", &a.endpoint);
    sends(stranger, "not heard", &a.endpoint);
    sends(b, "heard", &a.endpoint);
    receives(a, "heard", &b.endpoint);
    char got[8];
    sends(b, "by recv", &a.endpoint);
    assert_int_equal(result(&j, weft_recv(&j.datagram.io, a.socket, got, sizeof got, 0)), WEFT_OK);
    assert_memory_equal(got, "by recv", 7);
    close_place(a);
    close_place(b);
    close_place(stranger);
}

static void cancel_and_close(void **state)
{
    (void)state;
    place a = open_place("127.0.0.1:0"), b = open_place("127.0.0.1:0");
    char got[8];
    job early = new_job();
    assert_int_equal(weft_io_cancel(&early.datagram.io), WEFT_OK);
    assert_int_equal(weft_recv_from(&early.datagram, a.socket, got, sizeof got), 1);
    assert_int_equal(early.datagram.io.status, WEFT_ECANCELED);
    for (int i = 0; i < 100; i++) {
        job j = new_job();
        assert_int_equal(weft_recv_from(&j.datagram, a.socket, got, sizeof got), WEFT_OK);
        if (i % 3 == 0) sends(b, "racing", &a.endpoint);
        weft_io_cancel(&j.datagram.io);
        int status = result(&j, WEFT_OK);
        assert_true(status == WEFT_ECANCELED || (i % 3 == 0 && status == WEFT_OK && j.datagram.io.count == 6));
        if (i % 3 == 0 && status == WEFT_ECANCELED) receives(a, "racing", &b.endpoint); /* never lost */
    }
    job j = new_job();
    assert_int_equal(weft_recv_from(&j.datagram, a.socket, got, sizeof got), WEFT_OK);
    close_place(a);
    assert_int_equal(result(&j, WEFT_OK), WEFT_ECLOSED);
    close_place(b);
}

static void stop(void **state)
{
    (void)state;
    weft_runtime kept = runtime;
    for (int i = 0; i < 20; i++) {
        runtime = start_runtime(1 + (uint32_t)i % 3);
        place p = open_place("127.0.0.1:0");
        job j = new_job();
        char got[8];
        assert_int_equal(weft_recv_from(&j.datagram, p.socket, got, sizeof got), WEFT_OK);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&j.done), 1);
        assert_int_equal(j.datagram.io.status, WEFT_ECANCELED);
    }
    runtime = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IO_TEST(bad_arguments), IO_TEST(there_and_back), IO_TEST(boundaries), IO_TEST(nobody_there), IO_TEST(connected), IO_TEST(cancel_and_close), IO_TEST(stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
