/* SPDX-License-Identifier: MIT
 *
 * socket_test.c: connections, descriptors of all kinds, and what bad input gets.
 */
#include "io_support.h"

#include <signal.h>
#include <sys/resource.h>

static void connects_and_moves(int family)
{
    weft_descriptor ends[2];
    connected(runtime, family, ends);

    weft_endpoint here, there, again;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft_local_endpoint(ends[i], &here), WEFT_OK);
        assert_int_equal(weft_remote_endpoint(ends[1 - i], &there), WEFT_OK);
        assert_memory_equal(&here, &there, sizeof here);
        assert_int_equal(here.family, family);
        char text[WEFT_ENDPOINT_TEXT_BYTES];
        assert_true(weft_endpoint_format(&here, text, sizeof text) > 0);
        assert_int_equal(weft_endpoint_parse(text, &again), WEFT_OK);
        assert_memory_equal(&here, &again, sizeof here);
    }
    for (int i = 0; i < 2; i++) {
        call receives, sends;
        char got[16] = {0};
        starts_waiting(&receives, weft_recv(fresh(&receives), ends[i], got, sizeof got, 0));
        int rc = weft_send(fresh(&sends), ends[1 - i], "message", 7, 0);
        assert_int_equal(status_of(&sends, rc), WEFT_OK);
        assert_int_equal(sends.io.count, 7);
        assert_int_equal(status_of(&receives, receives.started), WEFT_OK);
        assert_int_equal(receives.io.count, 7);
        assert_string_equal(got, "message");
    }
    closes(ends[0]);
    closes(ends[1]);
}

static void ipv4(void **state)
{
    (void)state;
    connects_and_moves(WEFT_IPV4);
}

static void ipv6(void **state)
{
    (void)state;
    connects_and_moves(WEFT_IPV6);
}

static void nagle_is_off(void **state)
{
    (void)state;
    weft_descriptor ends[2];
    connected(runtime, WEFT_IPV4, ends);
    for (int i = 0; i < 2; i++) {
        intptr_t system;
        int on = 0;
        socklen_t size = sizeof on;
        assert_int_equal(weft_descriptor_system(ends[i], &system), WEFT_OK);
        assert_int_equal(getsockopt((int)system, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, &size), 0);
        assert_int_not_equal(on, 0);
        assert_int_not_equal(fcntl((int)system, F_GETFL) & O_NONBLOCK, 0);
        assert_int_not_equal(fcntl((int)system, F_GETFD) & FD_CLOEXEC, 0);
        closes(ends[i]);
    }
}

static void half_close(void **state)
{
    (void)state;
    weft_descriptor ends[2];
    connected(runtime, WEFT_IPV4, ends);
    call c;
    char got[4];
    assert_int_equal(weft_shutdown(ends[0], 0), WEFT_EINVAL);
    assert_int_equal(weft_shutdown(ends[0], 4), WEFT_EINVAL);
    starts_waiting(&c, weft_recv(fresh(&c), ends[1], got, 4, 0));
    assert_int_equal(weft_shutdown(ends[0], WEFT_SHUTDOWN_SEND), WEFT_OK);
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    assert_int_equal(c.io.count, 0);
    /* The other way still works, and ours does not. */
    assert_int_equal(weft_send(fresh(&c), ends[1], "abc", 3, 0), 1);
    int rc = weft_recv(fresh(&c), ends[0], got, 3, WEFT_IO_ALL);
    assert_int_equal(status_of(&c, rc), WEFT_OK);
    assert_int_equal(weft_send(fresh(&c), ends[0], "abc", 3, 0), 1);
    assert_int_equal(c.io.status, WEFT_EPIPE);
    assert_int_equal(c.io.os_error, EPIPE);
    /* A receive that waits learns of a shutdown on this side. */
    starts_waiting(&c, weft_recv(fresh(&c), ends[0], got, 4, 0));
    assert_int_equal(weft_shutdown(ends[0], WEFT_SHUTDOWN_RECEIVE | WEFT_SHUTDOWN_SEND), WEFT_OK);
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    assert_int_equal(c.io.count, 0);
    closes(ends[0]);
    closes(ends[1]);
}

static void reset_by_peer(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    char got[4];
    struct linger linger = {1, 0};
    starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, 4, 0));
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    close(peer);
    assert_int_equal(status_of(&c, c.started), WEFT_ECONNRESET);
    assert_int_equal(c.io.os_error, ECONNRESET);
    closes(descriptor);
}

/* A receive stops at urgent data, so it is short although more is there. */
static void urgent_data(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        int peer;
        weft_descriptor descriptor = connected_to(runtime, &peer);
        call c;
        char got[16];
        memset(&c, 0, sizeof c);
        if (early) starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, 16, 0));
        writes(peer, "abc");
        assert_int_equal(send(peer, "!", 1, MSG_OOB), 1);
        writes(peer, "def");
        sleep_ms(5);
        int rc = early ? WEFT_OK : weft_recv(fresh(&c), descriptor, got, 16, 0);
        uint64_t count = 0;
        for (;;) {
            assert_int_equal(status_of(&c, rc), WEFT_OK);
            count += c.io.count;
            if (count == 6) break;
            rc = weft_recv(fresh(&c), descriptor, got, 16, 0);
        }
        close(peer);
        closes(descriptor);
    }
}

static void refused(void **state)
{
    (void)state;
    weft_endpoint endpoint;
    weft_descriptor listener = listen_at(runtime, parsed(APART), &endpoint), descriptor;
    closes(listener);
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &descriptor), WEFT_OK);
    call c;
    int rc = weft_connect(fresh(&c), descriptor, &endpoint);
    assert_int_equal(status_of(&c, rc), WEFT_ECONNREFUSED);
    assert_int_equal(c.io.os_error, ECONNREFUSED);
    closes(descriptor);
}

/* A receive that waits on the same socket takes the error that the connect would like to see. */
static void refused_with_a_receive(void **state)
{
    (void)state;
    weft_endpoint endpoint;
    weft_descriptor listener = listen_at(runtime, parsed(APART), &endpoint), descriptor;
    closes(listener);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &descriptor), WEFT_OK);
        call connects, receives;
        char got[4];
        int connect_rc = weft_connect(fresh(&connects), descriptor, &endpoint);
        int receive_rc = weft_recv(fresh(&receives), descriptor, got, 4, 0);
        assert_int_not_equal(status_of(&connects, connect_rc), WEFT_OK);
        assert_int_not_equal(status_of(&receives, receive_rc), WEFT_EINVAL); /* it ended */
        closes(descriptor);
    }
}

static void not_connected(void **state)
{
    (void)state;
    weft_descriptor descriptor;
    weft_endpoint endpoint;
    call c;
    char got[4];
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV6, &descriptor), WEFT_OK);
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, 4, 0), 1);
    assert_int_equal(c.io.status, WEFT_ENOTCONN);
    assert_int_equal(weft_send(fresh(&c), descriptor, got, 4, 0), 1);
    assert_true(c.io.status == WEFT_EPIPE || c.io.status == WEFT_ENOTCONN);
    assert_int_equal(weft_remote_endpoint(descriptor, &endpoint), WEFT_ENOTCONN);
    assert_int_equal(weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND), WEFT_ENOTCONN);
    assert_int_equal(weft_accept(fresh(&c), descriptor), 1); /* no listener */
    assert_int_equal(c.io.status, WEFT_EINVAL);
    closes(descriptor);
}

static void address_in_use(void **state)
{
    (void)state;
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(runtime, WEFT_IPV4, &endpoint), second = {5};
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, 0, &second), WEFT_EADDRINUSE);
    assert_int_equal(second.id, 5);
    weft_endpoint foreign;
    assert_int_equal(weft_endpoint_parse("192.0.2.1:0", &foreign), WEFT_OK);
    assert_int_equal(weft_tcp_listen(runtime, &foreign, 0, &second), WEFT_EADDRNOTAVAIL);
    closes(listener);
    /* After a restart the address is free at once. */
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, 1, &second), WEFT_OK);
    closes(second);
}

static void out_of_descriptors(void **state)
{
    (void)state;
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(runtime, WEFT_IPV4, &endpoint), client, more;
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &client), WEFT_OK);
    call c;
    int rc = weft_connect(fresh(&c), client, &endpoint);
    assert_int_equal(status_of(&c, rc), WEFT_OK);

    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 0; /* and not the next number: the monitor has a descriptor now and then, and one below it would be free after that */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < 3; i++) {
        rc = weft_accept(fresh(&c), listener);
        assert_int_equal(status_of(&c, rc), WEFT_ELIMIT);
        assert_int_equal(c.io.os_error, EMFILE);
        assert_int_equal(c.io.accepted.id, 0);
    }
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &more), WEFT_ELIMIT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

    /* The connection has waited. */
    assert_int_equal(weft_accept(fresh(&c), listener), 1);
    assert_int_equal(c.io.status, WEFT_OK);
    closes(c.io.accepted);
    closes(client);
    closes(listener);
}

static void bad_open(void **state)
{
    (void)state;
    weft_descriptor descriptor = {9};
    weft_runtime none = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(weft_descriptor_open(runtime, ends[0], NULL), WEFT_EINVAL);
    assert_int_equal(weft_descriptor_open(runtime, -1, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_descriptor_open(runtime, (intptr_t)1 << 40, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_descriptor_open(runtime, 1 << 28, &descriptor), WEFT_EINVAL); /* not open */
    assert_int_equal(weft_descriptor_open(none, ends[0], &descriptor), WEFT_EBADHANDLE);

    int file = open("/proc/self/exe", O_RDONLY), directory = open("/", O_RDONLY | O_DIRECTORY);
    assert_int_equal(weft_descriptor_open(runtime, file, &descriptor), WEFT_ENOTSUP);
    assert_int_equal(weft_descriptor_open(runtime, directory, &descriptor), WEFT_ENOTSUP);
    assert_int_equal(fcntl(file, F_GETFL) & O_NONBLOCK, 0); /* left as it was */
    close(file);
    close(directory);
    assert_int_equal(descriptor.id, 9);
    assert_int_equal(stats_of(runtime).descriptors, 0);

    assert_int_equal(weft_descriptor_open(runtime, ends[0], &descriptor), WEFT_OK);
    weft_descriptor second = {9};
    assert_int_equal(weft_descriptor_open(runtime, ends[0], &second), WEFT_EEXIST);
    assert_int_equal(second.id, 9);
    assert_int_equal(stats_of(runtime).descriptors, 1);
    closes(descriptor);
    close(ends[1]);

    assert_int_equal(weft_tcp_open(runtime, 5, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, NULL), WEFT_EINVAL);
    weft_endpoint endpoint = loopback(WEFT_IPV4);
    assert_int_equal(weft_tcp_listen(runtime, NULL, 0, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, -1, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, 0, NULL), WEFT_EINVAL);
    endpoint.family = 0;
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, 0, &descriptor), WEFT_EINVAL);
}

static void bad_arguments(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    char got[4];
    weft_buffer one = {got, 4};
    weft_buffer huge[2] = {{got, SIZE_MAX / 2}, {got, SIZE_MAX / 2}};
    weft_buffer null_piece = {NULL, 4};
    assert_int_equal(weft_recv(NULL, descriptor, got, 4, 0), WEFT_EINVAL);
    assert_int_equal(weft_recv(fresh(&c), descriptor, NULL, 4, 0), WEFT_EINVAL);
    assert_int_equal(weft_recv(&c.io, descriptor, got, 4, 2), WEFT_EINVAL);
    assert_int_equal(weft_send(&c.io, descriptor, NULL, 4, 0), WEFT_EINVAL);
    assert_int_equal(weft_recv_buffers(&c.io, descriptor, NULL, 1, 0), WEFT_EINVAL);
    assert_int_equal(weft_recv_buffers(&c.io, descriptor, &one, 0, 0), WEFT_EINVAL);
    assert_int_equal(weft_recv_buffers(&c.io, descriptor, &one, WEFT_BUFFERS_MAX + 1, 0), WEFT_EINVAL);
    assert_int_equal(weft_send_buffers(&c.io, descriptor, huge, 2, 0), WEFT_EINVAL);
    assert_int_equal(weft_send_buffers(&c.io, descriptor, &null_piece, 1, 0), WEFT_EINVAL);
    assert_int_equal(weft_connect(&c.io, descriptor, NULL), WEFT_EINVAL);
    weft_endpoint endpoint = {.family = 7};
    assert_int_equal(weft_connect(&c.io, descriptor, &endpoint), WEFT_EINVAL);
    c.io.op.run = NULL;
    assert_int_equal(weft_recv(&c.io, descriptor, got, 4, 0), WEFT_EINVAL);
    assert_int_equal(weft_io_cancel(NULL), WEFT_EINVAL);
    assert_int_equal(weft_descriptor_system(descriptor, NULL), WEFT_EINVAL);
    assert_int_equal(weft_local_endpoint(descriptor, NULL), WEFT_EINVAL);
    assert_int_equal(weft_remote_endpoint(descriptor, NULL), WEFT_EINVAL);
    close(peer);
    closes(descriptor);
}

static void refuses(weft_descriptor descriptor)
{
    call c;
    char got[4];
    weft_endpoint endpoint = loopback(WEFT_IPV4);
    intptr_t system = -5;
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, 4, 0), WEFT_EBADHANDLE);
    assert_int_equal(weft_send(&c.io, descriptor, got, 4, 0), WEFT_EBADHANDLE);
    assert_int_equal(weft_accept(&c.io, descriptor), WEFT_EBADHANDLE);
    assert_int_equal(weft_connect(&c.io, descriptor, &endpoint), WEFT_EBADHANDLE);
    assert_int_equal(weft_descriptor_system(descriptor, &system), WEFT_EBADHANDLE);
    assert_int_equal(system, -5);
    assert_int_equal(weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND), WEFT_EBADHANDLE);
    assert_int_equal(weft_local_endpoint(descriptor, &endpoint), WEFT_EBADHANDLE);
    assert_int_equal(weft_remote_endpoint(descriptor, &endpoint), WEFT_EBADHANDLE);
    if (descriptor.id != 0) assert_int_equal(weft_descriptor_close(descriptor), WEFT_EBADHANDLE);
}

static void bad_handles(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = local_pair(runtime, SOCK_STREAM, &peer);
    refuses((weft_descriptor){0});
    assert_int_equal(weft_descriptor_close((weft_descriptor){0}), WEFT_OK);
    refuses((weft_descriptor){UINT64_MAX});
    refuses((weft_descriptor){runtime.id});
    refuses((weft_descriptor){descriptor.id + 1});                    /* a record that was never used */
    refuses((weft_descriptor){descriptor.id | 0xffffff});             /* beyond the table */
    refuses((weft_descriptor){descriptor.id + (UINT64_C(1) << 32)});  /* other generations */
    refuses((weft_descriptor){descriptor.id + (UINT64_C(2) << 32)});
    refuses((weft_descriptor){descriptor.id ^ UINT64_C(0x3f000000)}); /* another runtime's slot */
    closes(descriptor);
    close(peer);
    refuses(descriptor);
    /* The record is used again: the old handle does not mean the new descriptor. */
    for (int i = 0; i < 10; i++) {
        weft_descriptor next = local_pair(runtime, SOCK_STREAM, &peer);
        refuses(descriptor);
        closes(next);
        close(peer);
        refuses(next);
    }
    weft_runtime other = start_runtime(1);
    weft_descriptor foreign = local_pair(other, SOCK_STREAM, &peer);
    assert_int_equal(weft_runtime_destroy(other), WEFT_OK);
    refuses(foreign);
    /* And its runtime's slot, too. */
    other = start_runtime(1);
    int second;
    weft_descriptor again = local_pair(other, SOCK_STREAM, &second);
    refuses(foreign);
    closes(again);
    close(peer);
    close(second);
    assert_int_equal(weft_runtime_destroy(other), WEFT_OK);
}

static void pipes(void **state)
{
    (void)state;
    int ends[2];
    weft_descriptor in, out;
    weft_endpoint endpoint;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(weft_descriptor_open(runtime, ends[0], &in), WEFT_OK);
    assert_int_equal(weft_descriptor_open(runtime, ends[1], &out), WEFT_OK);
    call c;
    char got[8];
    starts_waiting(&c, weft_recv(fresh(&c), in, got, 8, 0));
    call sends;
    assert_int_equal(weft_send(fresh(&sends), out, "pipe", 4, 0), 1);
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    assert_int_equal(c.io.count, 4);
    assert_int_equal(weft_local_endpoint(in, &endpoint), WEFT_ENOTSUP);
    assert_int_equal(weft_shutdown(in, WEFT_SHUTDOWN_SEND), WEFT_ENOTSUP);
    starts_waiting(&c, weft_recv(fresh(&c), in, got, 8, 0));
    closes(out);
    assert_int_equal(status_of(&c, c.started), WEFT_OK); /* hangup without EPOLLRDHUP */
    assert_int_equal(c.io.count, 0);
    closes(in);
}

/* The default disposition of SIGPIPE would end this program. */
static void broken_pipe(void **state)
{
    (void)state;
    int ends[2];
    weft_descriptor out;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(weft_descriptor_open(runtime, ends[1], &out), WEFT_OK);
    close(ends[0]);
    call c;
    void (*before)(int) = signal(SIGPIPE, SIG_DFL);
    assert_int_equal(weft_send(fresh(&c), out, "pipe", 4, 0), 1);
    assert_int_equal(c.io.status, WEFT_EPIPE);
    sigset_t pending;
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    signal(SIGPIPE, before);
    closes(out);
}

/* Short receives on sockets that keep boundaries leave something behind. */
static void datagrams(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = local_pair(runtime, SOCK_DGRAM, &peer);
    call c;
    char got[16];
    starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, 16, 0));
    writes(peer, "a");
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    for (int i = 0; i < 3; i++) writes(peer, "bc");
    for (int i = 0; i < 3; i++) {
        int rc = weft_recv(fresh(&c), descriptor, got, 16, 0);
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        assert_int_equal(c.io.count, 2);
    }
    close(peer);
    closes(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IO_TEST(ipv4),
        IO_TEST(ipv6),
        IO_TEST(nagle_is_off),
        IO_TEST(half_close),
        IO_TEST(reset_by_peer),
        IO_TEST(urgent_data),
        IO_TEST(refused),
        IO_TEST(refused_with_a_receive),
        IO_TEST(not_connected),
        IO_TEST(address_in_use),
        IO_TEST(out_of_descriptors),
        IO_TEST(bad_open),
        IO_TEST(bad_arguments),
        IO_TEST(bad_handles),
        IO_TEST(pipes),
        IO_TEST(broken_pipe),
        IO_TEST(datagrams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
