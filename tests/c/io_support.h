/* SPDX-License-Identifier: MIT
 *
 * io_support.h: what the tests of I/O in C share: an op that can be waited for, and pairs of connected sockets with the test's
 * own hand at one end.
 */
#ifndef WEFT_TESTS_C_IO_SUPPORT_H
#define WEFT_TESTS_C_IO_SUPPORT_H

#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

static inline void closes(weft_descriptor descriptor) { assert_int_equal(weft_descriptor_close(descriptor), WEFT_OK); }

/* An op, and how often its run was called. */
typedef struct call {
    weft_io io;
    atomic_long runs;
    int started; /* what the start returned */
} call;

static inline void call_run(weft_op *op) { atomic_fetch_add(&((call *)op)->runs, 1); }

/* A fresh op, to be given to a start. */
static inline weft_io *fresh(call *c)
{
    memset(c, 0, sizeof *c);
    c->io.op.run = call_run;
    return &c->io;
}

/* Waits for the result of an op whose start has returned rc, and tells its status. */
static inline int status_of(call *c, int rc)
{
    if (rc == 1) {
        assert_int_equal(atomic_load(&c->runs), 0);
    } else {
        assert_int_equal(rc, WEFT_OK);
        wait_for(&c->runs, 1);
        assert_int_equal(atomic_load(&c->runs), 1);
    }
    return c->io.status;
}

/* Starts an op that has to wait. */
static inline void starts_waiting(call *c, int rc)
{
    c->started = rc;
    assert_int_equal(rc, WEFT_OK);
    assert_int_equal(atomic_load(&c->runs), 0);
}

static inline weft_endpoint loopback(int family) { return parsed(family == WEFT_IPV4 ? "127.0.0.1:0" : "[::1]:0"); }

/* For listeners that are closed, to be refused. At 127.0.0.1 the port could be the next listener's of another process, or that of the very socket that connects,
 * which then meets itself. */
#define APART "127.0.0.2:0"

/* A listener and the address it got. */
static inline weft_descriptor listen_at(weft_runtime runtime, weft_endpoint at, weft_endpoint *endpoint)
{
    weft_descriptor listener = {0};
    *endpoint = at;
    assert_int_equal(weft_tcp_listen(runtime, endpoint, 0, &listener), WEFT_OK);
    assert_int_equal(weft_local_endpoint(listener, endpoint), WEFT_OK);
    assert_int_not_equal(endpoint->port, 0);
    return listener;
}

static inline weft_descriptor listen_on(weft_runtime runtime, int family, weft_endpoint *endpoint)
{
    return listen_at(runtime, loopback(family), endpoint);
}

/* Two connected TCP descriptors of weft's. */
static inline void connected(weft_runtime runtime, int family, weft_descriptor ends[2])
{
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(runtime, family, &endpoint);
    assert_int_equal(weft_tcp_open(runtime, family, &ends[0]), WEFT_OK);
    call accepts, connects;
    int accept_rc = weft_accept(fresh(&accepts), listener);
    int connect_rc = weft_connect(fresh(&connects), ends[0], &endpoint);
    assert_int_equal(status_of(&connects, connect_rc), WEFT_OK);
    assert_int_equal(status_of(&accepts, accept_rc), WEFT_OK);
    ends[1] = accepts.io.accepted;
    assert_int_equal(weft_descriptor_close(listener), WEFT_OK);
}

/* A TCP descriptor of weft's, connected to a blocking socket of the test's. */
static inline weft_descriptor connected_to(weft_runtime runtime, int *peer)
{
    weft_descriptor ends[2];
    intptr_t system;
    connected(runtime, WEFT_IPV4, ends);
    assert_int_equal(weft_descriptor_system(ends[1], &system), WEFT_OK);
    *peer = dup((int)system);
    assert_true(*peer >= 0);
    assert_int_equal(weft_descriptor_close(ends[1]), WEFT_OK);
    assert_int_equal(fcntl(*peer, F_SETFL, 0), 0);
    return ends[0];
}

/* A descriptor of weft's on one end of a pair of local sockets; the other is the test's. */
static inline weft_descriptor local_pair(weft_runtime runtime, int type, int *peer)
{
    int ends[2];
    weft_descriptor descriptor = {0};
    assert_int_equal(socketpair(AF_UNIX, type, 0, ends), 0);
    assert_int_equal(weft_descriptor_open(runtime, ends[0], &descriptor), WEFT_OK);
    *peer = ends[1];
    return descriptor;
}

static inline void writes(int peer, const char *text)
{
    assert_int_equal(write(peer, text, strlen(text)), strlen(text));
}

/* Waits until a descriptor has something to read, so that the next receive finds it. */
static inline void readable(weft_descriptor descriptor)
{
    intptr_t system;
    assert_int_equal(weft_descriptor_system(descriptor, &system), WEFT_OK);
    struct pollfd watch = {.fd = (int)system, .events = POLLIN};
    assert_int_equal(poll(&watch, 1, 10000), 1);
}

#endif
