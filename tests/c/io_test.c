/* SPDX-License-Identifier: MIT
 *
 * io_test.c: ops that move bytes: what they move, in which order they wait, and how they share a worker. io_end_test.c
 * has cancel, close and stop, socket_test.c the rest of io.h.
 */
#include "io_support.h"

#include <sys/resource.h>

static void receive_takes_what_is_there(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    char got[8];
    writes(peer, "abcde");
    readable(descriptor);
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, 3, 0), 1);
    assert_int_equal(c.io.count, 3);
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, 8, 0), 1);
    assert_int_equal(c.io.count, 2);
    assert_memory_equal(got, "de", 2);

    /* After a short receive the next one may wait without a call: what comes then must wake it, over and over. */
    for (int i = 0; i < 200; i++) {
        int rc = weft_recv(fresh(&c), descriptor, got, 8, 0);
        if (i % 3 == 0) sleep_ms(1);
        writes(peer, "x");
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        assert_int_equal(c.io.count, 1);
    }
    close(peer);
    closes(descriptor);
}

/* The end behind bytes: seen at once, later, or in one event with them while a receive waits. It must not be waited for, and
 * it stays. */
static void end_of_stream(void **state)
{
    (void)state;
    enum { TOGETHER, LATER, WAITING, WAYS };
    for (int way = 0; way < WAYS; way++) {
        int peer;
        weft_descriptor descriptor = connected_to(runtime, &peer);
        call c;
        char got[8];
        int rc = WEFT_OK;
        if (way == WAITING) starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, 8, 0));
        /* Held back, they leave in one segment with the end. */
        assert_int_equal(send(peer, "abc", 3, way == LATER ? 0 : MSG_MORE), 3);
        if (way == LATER) readable(descriptor);
        shutdown(peer, SHUT_WR);
        if (way != WAITING) rc = weft_recv(fresh(&c), descriptor, got, 8, 0);
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        assert_int_equal(c.io.count, 3);
        for (int i = 0; i < 3; i++) {
            rc = weft_recv(fresh(&c), descriptor, got, 8, 0);
            assert_int_equal(status_of(&c, rc), WEFT_OK);
            assert_int_equal(c.io.count, 0);
        }
        rc = weft_recv(fresh(&c), descriptor, got, 8, WEFT_IO_ALL);
        assert_int_equal(status_of(&c, rc), WEFT_EOF);
        close(peer);
        closes(descriptor);
    }
}

static void receive_all(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    char got[8];
    starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, 6, WEFT_IO_ALL));
    writes(peer, "ab");
    sleep_ms(5);
    assert_int_equal(atomic_load(&c.runs), 0);
    writes(peer, "cdef");
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    assert_int_equal(c.io.count, 6);
    assert_memory_equal(got, "abcdef", 6);

    starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, 6, WEFT_IO_ALL));
    writes(peer, "gh");
    shutdown(peer, SHUT_WR);
    assert_int_equal(status_of(&c, c.started), WEFT_EOF);
    assert_int_equal(c.io.count, 2);
    assert_memory_equal(got, "gh", 2);
    close(peer);
    closes(descriptor);
}

static void nothing_to_move(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    weft_buffer empty[2] = {{NULL, 0}, {NULL, 0}};
    for (uint32_t flags = 0; flags <= WEFT_IO_ALL; flags++) {
        assert_int_equal(weft_recv(fresh(&c), descriptor, NULL, 0, flags), 1);
        assert_int_equal(c.io.status, WEFT_OK);
        assert_int_equal(weft_send(fresh(&c), descriptor, NULL, 0, flags), 1);
        assert_int_equal(c.io.status, WEFT_OK);
        assert_int_equal(weft_recv_buffers(fresh(&c), descriptor, empty, 2, flags), 1);
        assert_int_equal(c.io.status, WEFT_OK);
        assert_int_equal(weft_send_buffers(fresh(&c), descriptor, empty, 2, flags), 1);
        assert_int_equal(c.io.status, WEFT_OK);
        assert_int_equal(c.io.count, 0);
    }
    close(peer);
    closes(descriptor);
}

/* 8 MiB out of many pieces of odd sizes into many others: the offsets are right wherever the system cuts. */
static void buffers_all(void **state)
{
    (void)state;
    weft_descriptor ends[2];
    connected(runtime, WEFT_IPV4, ends);
    enum { BYTES = 8 << 20 };
    unsigned char *out = malloc(BYTES), *in = calloc(1, BYTES);
    for (int i = 0; i < BYTES; i++) out[i] = (unsigned char)(i * 2654435761u >> 13);
    weft_buffer from[WEFT_BUFFERS_MAX], to[WEFT_BUFFERS_MAX - 1];
    size_t at = 0;
    for (int i = 0; i < WEFT_BUFFERS_MAX; i++) {
        size_t length = i == 7 ? 0 : i == WEFT_BUFFERS_MAX - 1 ? BYTES - at : 100003;
        from[i] = (weft_buffer){out + at, length};
        at += length;
    }
    at = 0;
    for (int i = 0; i < WEFT_BUFFERS_MAX - 1; i++) {
        size_t length = i == WEFT_BUFFERS_MAX - 2 ? BYTES - at : 77773;
        to[i] = (weft_buffer){in + at, length};
        at += length;
    }
    call sends, receives;
    int receive_rc = weft_recv_buffers(fresh(&receives), ends[1], to, WEFT_BUFFERS_MAX - 1, WEFT_IO_ALL);
    int send_rc = weft_send_buffers(fresh(&sends), ends[0], from, WEFT_BUFFERS_MAX, WEFT_IO_ALL);
    assert_int_equal(status_of(&sends, send_rc), WEFT_OK);
    assert_int_equal(status_of(&receives, receive_rc), WEFT_OK);
    assert_int_equal(sends.io.count, BYTES);
    assert_int_equal(receives.io.count, BYTES);
    assert_memory_equal(in, out, BYTES);
    free(in);
    free(out);
    closes(ends[0]);
    closes(ends[1]);
}

static void send_until_full_then_drain(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    static char block[65536];
    call c;
    uint64_t sent = 0;
    int rc;
    while ((rc = weft_send(fresh(&c), descriptor, block, sizeof block, 0)) == 1) {
        assert_int_equal(c.io.status, WEFT_OK);
        sent += c.io.count;
    }
    starts_waiting(&c, rc);
    sleep_ms(5);
    assert_int_equal(atomic_load(&c.runs), 0);
    uint64_t received = 0;
    while (received < sent) {
        ssize_t n = read(peer, block, sizeof block);
        assert_true(n > 0);
        received += (uint64_t)n;
    }
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    assert_true(c.io.count > 0);
    close(peer);
    closes(descriptor);
}

static void both_directions_at_once(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    static char block[1 << 20];
    call sends, receives;
    char got[4];
    starts_waiting(&receives, weft_recv(fresh(&receives), descriptor, got, 4, 0));
    int rc;
    while ((rc = weft_send(fresh(&sends), descriptor, block, sizeof block, 0)) == 1) {
    }
    starts_waiting(&sends, rc);
    writes(peer, "ping");
    assert_int_equal(status_of(&receives, WEFT_OK), WEFT_OK);
    assert_int_equal(atomic_load(&sends.runs), 0);
    while (atomic_load(&sends.runs) == 0)
        if (recv(peer, block, sizeof block, MSG_DONTWAIT) < 0) sleep_ms(1); /* empty: what the send has moved is still to come */
    assert_int_equal(sends.io.status, WEFT_OK);
    close(peer);
    closes(descriptor);
}

static void busy(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call first, second;
    char got[4];
    starts_waiting(&first, weft_recv(fresh(&first), descriptor, got, 4, 0));
    assert_int_equal(weft_recv(fresh(&second), descriptor, got, 4, 0), WEFT_EBUSY);
    assert_int_equal(weft_accept(&second.io, descriptor), WEFT_EBUSY);
    /* The op itself, too. */
    assert_int_equal(weft_recv(&first.io, descriptor, got, 4, 0), WEFT_EBUSY);
    assert_int_equal(weft_send(&first.io, descriptor, got, 4, 0), WEFT_EBUSY);
    /* The other direction is free, and what was refused can be started. */
    assert_int_equal(weft_send(&second.io, descriptor, "x", 1, 0), 1);
    writes(peer, "done");
    assert_int_equal(status_of(&first, first.started), WEFT_OK);
    writes(peer, "more");
    int rc = weft_recv(&first.io, descriptor, got, 4, 0); /* used again, without being zeroed */
    if (rc == 0) wait_for(&first.runs, 2);
    assert_int_equal(first.io.status, WEFT_OK);
    assert_int_equal(first.io.count, 4);
    close(peer);
    closes(descriptor);
}

static void many_descriptors(void **state)
{
    (void)state;
    enum { MANY = 1500 }; /* more than one chunk of records holds */
    static call calls[MANY];
    static weft_descriptor descriptors[MANY];
    static int peers[MANY];
    static char got[MANY];
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int many = limit.rlim_cur < 2 * MANY + 100 ? (int)(limit.rlim_cur - 100) / 2 : MANY;
    for (int i = 0; i < many; i++) {
        descriptors[i] = local_pair(runtime, SOCK_STREAM, &peers[i]);
        starts_waiting(&calls[i], weft_recv(fresh(&calls[i]), descriptors[i], &got[i], 1, 0));
    }
    assert_int_equal(stats_of(runtime).descriptors, many);
    for (int i = many; i-- > 0;) assert_int_equal(write(peers[i], &(char){(char)i}, 1), 1);
    for (int i = 0; i < many; i++) {
        assert_int_equal(status_of(&calls[i], WEFT_OK), WEFT_OK);
        assert_int_equal(got[i], (char)i);
        closes(descriptors[i]);
        close(peers[i]);
    }
}

/* An op that receives byte by byte until it is told to wait. */
typedef struct hot {
    weft_op op;
    weft_descriptor descriptor;
    call c;
    char got;
    long at_once;
    atomic_long finished;
} hot;

static void hot_run(weft_op *op)
{
    hot *h = (hot *)op;
    while (weft_recv(fresh(&h->c), h->descriptor, &h->got, 1, 0) == 1) h->at_once++;
    atomic_fetch_add(&h->finished, 1);
}

static void hot_socket_gives_way(void **state)
{
    (void)state;
    int peer;
    hot h = {.op.run = hot_run, .descriptor = local_pair(runtime, SOCK_STREAM, &peer)};
    char bytes[1000] = {0};
    assert_int_equal(write(peer, bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(weft_schedule(runtime, &h.op), WEFT_OK);
    wait_for(&h.finished, 1);
    assert_int_equal(h.at_once, 64);
    assert_int_equal(status_of(&h.c, WEFT_OK), WEFT_OK); /* the 65th came through the queue */
    assert_int_equal(h.c.io.count, 1);
    close(peer);
    closes(h.descriptor);
}

static void errno_is_kept(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    weft_endpoint endpoint = loopback(WEFT_IPV4);
    weft_descriptor other;
    call c;
    char got[4];
    char text[WEFT_ENDPOINT_TEXT_BYTES];
    intptr_t system;
    errno = 4711;
    weft_recv(fresh(&c), descriptor, got, 4, 0); /* EAGAIN inside */
    weft_io_cancel(&c.io);
    weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND);
    weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND);
    weft_remote_endpoint(descriptor, &endpoint);
    weft_descriptor_system(descriptor, &system);
    weft_descriptor_open(runtime, 1 << 28, &other);
    weft_endpoint_parse("nonsense", &endpoint);
    weft_endpoint_format(&endpoint, text, sizeof text);
    weft_descriptor_close(descriptor);
    assert_int_equal(errno, 4711);
    wait_for(&c.runs, 1);
    close(peer);
}

/* The other end of a dialogue: answers each message, on a worker. */
typedef struct echo {
    weft_io io;
    weft_descriptor descriptor;
    char bytes[64];
    bool receives;
    atomic_long finished;
} echo;

static void echo_run(weft_op *op)
{
    echo *e = (echo *)op;
    for (;;) {
        if (e->receives) {
            if (e->io.status != WEFT_OK || e->io.count == 0) break;
            e->receives = false;
            if (weft_send(&e->io, e->descriptor, e->bytes, e->io.count, WEFT_IO_ALL) == 0) return;
        } else {
            e->receives = true;
            if (weft_recv(&e->io, e->descriptor, e->bytes, sizeof e->bytes, 0) == 0) return;
        }
    }
    atomic_fetch_add(&e->finished, 1);
}

static void dialogue_crosses_no_border(void **state)
{
    (void)state;
#if defined(_WIN32)
    enum { MESSAGES = 2000 }; /* each takes Wine some trips to its server */
#else
    enum { MESSAGES = 10000 };
#endif
    int peer;
    static echo e;
    memset(&e, 0, sizeof e);
    e.io.op.run = echo_run;
    e.descriptor = connected_to(runtime, &peer);
    assert_int_equal(weft_schedule(runtime, &e.io.op), WEFT_OK);
    char bytes[64] = {1};
    for (int i = 0; i < MESSAGES / 10; i++) { /* until everybody is warm */
        assert_int_equal(write(peer, bytes, 64), 64);
        assert_int_equal(recv(peer, bytes, 64, MSG_WAITALL), 64);
    }
    weft_stats before = stats_of(runtime);
    for (int i = 0; i < MESSAGES; i++) {
        assert_int_equal(write(peer, bytes, 64), 64);
        assert_int_equal(recv(peer, bytes, 64, MSG_WAITALL), 64);
    }
    weft_stats after = stats_of(runtime);
    close(peer);
    wait_for(&e.finished, 1);
    closes(e.descriptor);
    /* The last answer is here before its worker has started the next receive: so one more or less. */
    assert_in_range(after.io_started - before.io_started, 2 * MESSAGES - 1, 2 * MESSAGES + 1);
    assert_true(after.io_events - before.io_events <= MESSAGES + 10);
    assert_true(after.io_immediate - before.io_immediate >= MESSAGES - 1); /* the sends */
    /* Ends of batches and the like, not one for a message. */
    assert_true(after.crossings - before.crossings < MESSAGES / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IO_TEST(receive_takes_what_is_there),
        IO_TEST(end_of_stream),
        IO_TEST(receive_all),
        IO_TEST(nothing_to_move),
        IO_TEST(buffers_all),
        IO_TEST(send_until_full_then_drain),
        IO_TEST(both_directions_at_once),
        IO_TEST(busy),
        IO_TEST(many_descriptors),
        IO_TEST(hot_socket_gives_way),
        IO_TEST(errno_is_kept),
        IO_TEST(dialogue_crosses_no_border),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
