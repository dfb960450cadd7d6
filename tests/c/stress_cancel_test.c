/* SPDX-License-Identifier: MIT
 *
 * stress_cancel_test.c: cancellation against everything that goes on beside it: callbacks that deregister each other,
 * registration and deregistration against the request, and the cancel of an I/O op against its result.
 */
#include <errno.h>
#include <sys/socket.h>

#include "stress_support.h"

/* Pairs whose callbacks deregister each other: of each pair exactly one is called, the one that the requester comes to first. */
enum { PAIRS = 4 };

typedef struct mutual {
    weft_cancel_source source;
    struct half {
        weft_cancel_registration registration;
        struct half *other;
        atomic_long called;
        int told; /* what deregistering the other returned */
    } halves[2 * PAIRS];
} mutual;

static void deregister_the_other(void *context)
{
    struct half *self = context;
    atomic_fetch_add(&self->called, 1);
    self->told = weft_cancel_deregister(&self->other->registration);
}

static void request(void *source) { weft_cancel_request(source); }

static void callbacks_that_deregister_each_other(uint32_t workers, uint64_t *random)
{
    (void)workers;
    mutual all;
    rival other;
    rival_start(&other, request, &all.source, random);
    for (long round = 1; round <= 2500 * stress_scale(); round++) {
        memset(&all, 0, sizeof all);
        for (int i = 0; i < 2 * PAIRS; i++) {
            all.halves[i].other = &all.halves[i ^ 1];
            assert_int_equal(weft_cancel_register(&all.source, &all.halves[i].registration, deregister_the_other, &all.halves[i]),
                             WEFT_OK);
        }
        atomic_store(&other.begun, round);
        stress_wait(random, 2000);
        weft_cancel_request(&all.source); /* two requests: one calls back, and the other may return before that is over */
        wait_until(&other.ended, round);
        for (int i = 0; i < 2 * PAIRS; i++) weft_cancel_deregister(&all.halves[i].registration);
        for (int i = 0; i < 2 * PAIRS; i += 2) {
            struct half *first = &all.halves[i], *second = &all.halves[i + 1];
            if (atomic_load(&first->called) + atomic_load(&second->called) != 1) abort();
            struct half *called = atomic_load(&first->called) ? first : second;
            if (called->told != WEFT_OK) abort(); /* the other one had not been called */
        }
        stress_progress();
    }
    rival_end(&other);
}

/* Registers and deregisters while the request comes: the callback is called or not, never afterwards, and never twice. */
typedef struct late_registration {
    weft_cancel_source source;
    weft_cancel_registration registration;
    atomic_long called, returned;
} late_registration;

static void called(void *context)
{
    late_registration *self = context;
    long calls = atomic_fetch_add(&self->called, 1);
    for (int n = 0; n < 300; n++) __asm__ volatile("");
    atomic_store(&self->returned, calls + 1);
}

static void registration_against_request(uint32_t workers, uint64_t *random)
{
    (void)workers;
    late_registration all;
    rival other;
    rival_start(&other, request, &all.source, random);
    for (long round = 1; round <= 2500 * stress_scale(); round++) {
        memset(&all, 0, sizeof all);
        atomic_store(&other.begun, round);
        stress_wait(random, 2000);
        int registered = weft_cancel_register(&all.source, &all.registration, called, &all);
        if (registered == 1 && atomic_load(&all.returned) != 1) abort();
        bool waits = stress_below(random, 2) == 0;
        if (waits) wait_until(&other.ended, round); /* then the request is over, and has called what was there */
        stress_wait(random, 500);
        int told = weft_cancel_deregister(&all.registration);
        long calls = atomic_load(&all.called);
        if (calls > 1 || (told == 1) != (calls == 1) || atomic_load(&all.returned) != calls || (waits && calls != 1)) abort();
        memset(&all.registration, 0xff, sizeof all.registration); /* it is ours */
        wait_until(&other.ended, round);
        if (atomic_load(&all.called) != calls) abort();
        stress_progress();
    }
    rival_end(&other);
}

/* One receive at a time, with a byte and a cancel on the way to it. What was not received with it comes with a later one. */
typedef struct single {
    weft_io io;
    atomic_long ran;
    int system;
} single;

static void single_ran(weft_op *op) { atomic_fetch_add(&((single *)op)->ran, 1); }

static void send_byte(void *context)
{
    if (send(((single *)context)->system, "x", 1, 0) != 1) abort();
}

static void cancel_against_receive(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    int pair[2];
    weft_descriptor descriptor;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(weft_descriptor_open(runtime, pair[0], &descriptor), WEFT_OK);
    single receive = {.io = {.op = {.run = single_ran}}, .system = pair[1]};
    rival sender;
    rival_start(&sender, send_byte, &receive, random);
    long sent = 0, received = 0, cancelled = 0;
    for (long round = 1; round <= 2000 * stress_scale(); round++) {
        char bytes[8];
        memset(&receive.io, 0, sizeof receive.io);
        receive.io.op.run = single_ran;
        atomic_store(&receive.ran, 0);
        atomic_store(&sender.begun, round);
        sent++;
        if (stress_below(random, 8) == 0) weft_io_cancel(&receive.io); /* before the start */
        int rc = weft_recv(&receive.io, descriptor, bytes, sizeof bytes, 0);
        if (rc == WEFT_OK) {
            stress_wait(random, 6000);
            weft_io_cancel(&receive.io);
            wait_until(&receive.ran, 1);
        } else if (rc != 1) {
            abort();
        }
        if (receive.io.status == WEFT_OK)
            received += (long)receive.io.count;
        else if (receive.io.status == WEFT_ECANCELED && receive.io.count == 0)
            cancelled++;
        else
            abort();
        wait_until(&sender.ended, round);
        if (atomic_load(&receive.ran) != (rc == WEFT_OK)) abort();
        stress_progress();
    }
    rival_end(&sender);
    assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
    for (;;) { /* what is left */
        char bytes[64];
        memset(&receive.io, 0, sizeof receive.io);
        receive.io.op.run = single_ran;
        atomic_store(&receive.ran, 0);
        if (weft_recv(&receive.io, descriptor, bytes, sizeof bytes, 0) == WEFT_OK) wait_until(&receive.ran, 1);
        assert_int_equal(receive.io.status, WEFT_OK);
        if (receive.io.count == 0) break;
        received += (long)receive.io.count;
    }
    assert_int_equal(received, sent);
    assert_true(cancelled > 0);
    close(pair[1]);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* The same with datagrams: they come in their order, and none is missing. */
typedef struct parcel {
    weft_datagram datagram;
    atomic_long ran;
    weft_descriptor socket;
    weft_endpoint endpoint; /* of the receiver */
    long number;            /* of the datagram */
} parcel;

static void parcel_ran(weft_op *op) { atomic_fetch_add(&((parcel *)op)->ran, 1); }

static weft_io *fresh(parcel *p)
{
    memset(&p->datagram, 0, sizeof p->datagram);
    p->datagram.io.op.run = parcel_ran;
    atomic_store(&p->ran, 0);
    return &p->datagram.io;
}

static void open_parcel(parcel *p, weft_runtime runtime, weft_endpoint *endpoint)
{
    assert_int_equal(weft_endpoint_parse("127.0.0.1:0", endpoint), WEFT_OK);
    assert_int_equal(weft_udp_open(runtime, endpoint, &p->socket), WEFT_OK);
    assert_int_equal(weft_local_endpoint(p->socket, endpoint), WEFT_OK);
}

static void send_number(void *context)
{
    parcel *p = context;
    weft_io *io = fresh(p);
    int rc = weft_send_to(&p->datagram, p->socket, &p->number, sizeof p->number, &p->endpoint);
    if (rc == WEFT_OK) wait_until(&p->ran, 1);
    if (rc < 0 || io->status != WEFT_OK) abort();
    p->number++;
}

static void cancel_against_datagram(uint32_t workers, uint64_t *random)
{
    enum { QUEUED = 16 }; /* then it is the receiver's turn alone: no queue overflows */
    weft_runtime runtime = stressed(workers);
    parcel receive = {0}, send = {0};
    weft_endpoint from;
    open_parcel(&receive, runtime, &send.endpoint);
    open_parcel(&send, runtime, &from);
    rival sender;
    rival_start(&sender, send_number, &send, random);
    long rounds = 2000 * stress_scale(), sent = 0, received = 0, cancelled = 0, got;
    while (received < rounds) {
        bool quiet = sent == rounds || sent - received == QUEUED;
        weft_io *io = fresh(&receive);
        if (!quiet) {
            atomic_store(&sender.begun, ++sent);
            if (stress_below(random, 8) == 0) weft_io_cancel(io); /* before the start */
        }
        int rc = weft_recv_from(&receive.datagram, receive.socket, &got, sizeof got);
        if (rc == WEFT_OK) {
            if (!quiet) {
                stress_wait(random, 6000);
                weft_io_cancel(io);
            }
            wait_until(&receive.ran, 1);
        } else if (rc != 1) {
            abort();
        }
        if (io->status == WEFT_OK) {
            if (io->count != sizeof got || got != received || receive.datagram.peer.port != from.port) abort();
            received++;
            stress_progress();
        } else if (quiet || io->status != WEFT_ECANCELED || io->count != 0) {
            abort();
        } else {
            cancelled++;
        }
        wait_until(&sender.ended, sent);
        if (atomic_load(&receive.ran) != (rc == WEFT_OK)) abort();
    }
    rival_end(&sender);
    assert_true(cancelled > 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* The cancel comes just when the op is started, and nothing else would ever end it. */
static void cancel_it(void *context) { weft_io_cancel(&((single *)context)->io); }

static void cancel_against_start(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    int pair[2];
    char byte;
    weft_descriptor descriptor;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(weft_descriptor_open(runtime, pair[0], &descriptor), WEFT_OK);
    single receive;
    memset(&receive, 0, sizeof receive);
    rival canceller;
    rival_start(&canceller, cancel_it, &receive, random);
    for (long round = 1; round <= 2000 * stress_scale(); round++) {
        memset(&receive.io, 0, sizeof receive.io);
        receive.io.op.run = single_ran;
        atomic_store(&receive.ran, 0);
        atomic_store(&canceller.begun, round);
        stress_wait(random, 2000);
        int rc = weft_recv(&receive.io, descriptor, &byte, 1, 0);
        if (rc == WEFT_OK)
            wait_until(&receive.ran, 1);
        else if (rc != 1)
            abort();
        if (receive.io.status != WEFT_ECANCELED) abort();
        wait_until(&canceller.ended, round);
        if (atomic_load(&receive.ran) != (rc == WEFT_OK)) abort();
        stress_progress();
    }
    rival_end(&canceller);
    close(pair[1]);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* The same on a worker, and where a start makes no system call: on a TCP socket whose last receive was short. There nothing keeps the steps of
 * the start apart but their own order. */
#if defined(_WIN32)
enum { STARTS = 2000 }; /* which all make a call there */
#else
enum { STARTS = 6000 };
#endif
enum { TURNS = 50 }; /* of an empty loop: few, since one that overtakes another does so for as long as a line of memory travels */

typedef struct starting {
    single receive;
    weft_descriptor descriptor;
    rival canceller;
    uint64_t random;
    long round, rounds;
    char byte;
    atomic_long ended;
} starting;

static void start_again(weft_op *op)
{
    starting *self = op->context;
    for (;;) {
        if (self->round > 0) {
            if (self->receive.io.status != WEFT_ECANCELED) abort();
            wait_until(&self->canceller.ended, self->round);
            stress_progress();
        }
        if (self->round++ == self->rounds) break;
        memset(&self->receive.io, 0, sizeof self->receive.io);
        self->receive.io.op = (weft_op){.run = start_again, .context = self};
        atomic_store(&self->canceller.begun, self->round);
        stress_wait(&self->random, TURNS);
        int rc = weft_recv(&self->receive.io, self->descriptor, &self->byte, 1, 0);
        if (rc == WEFT_OK) return;
        if (rc != 1) abort();
    }
    atomic_store(&self->ended, 1);
}

/* Waits for an op that has a start of its own, and for its success. */
static void must_succeed(single *s, int rc)
{
    if (rc == WEFT_OK) wait_until(&s->ran, 1);
    if (rc < 0 || s->io.status != WEFT_OK) abort();
}

static void cancel_against_start_without_a_call(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    weft_descriptor listener, client;
    weft_endpoint endpoint;
    single connects = {.io.op.run = single_ran}, accepts = {.io.op.run = single_ran};
    single sends = {.io.op.run = single_ran}, receives = {.io.op.run = single_ran};
    char bytes[2];
    assert_int_equal(weft_endpoint_parse("127.0.0.1:0", &endpoint), WEFT_OK);
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, 0, &listener), WEFT_OK);
    assert_int_equal(weft_local_endpoint(listener, &endpoint), WEFT_OK);
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &client), WEFT_OK);
    must_succeed(&connects, weft_connect(&connects.io, client, &endpoint));
    must_succeed(&accepts, weft_accept(&accepts.io, listener));
    must_succeed(&sends, weft_send(&sends.io, client, "x", 1, 0));
    must_succeed(&receives, weft_recv(&receives.io, accepts.io.accepted, bytes, sizeof bytes, 0));
    starting all = {.descriptor = accepts.io.accepted, .random = stress_random(random), .rounds = STARTS * stress_scale()};
    weft_op begins = {.run = start_again, .context = &all};
    rival_start_near(&all.canceller, cancel_it, &all.receive, random, TURNS);
    assert_int_equal(weft_schedule(runtime, &begins), WEFT_OK);
    wait_until(&all.ended, 1);
    rival_end(&all.canceller);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* Close against an op that waits, is being cancelled, and has a byte on its way. */
typedef struct closing {
    single receive;
    weft_descriptor descriptor;
} closing;

static void close_it(void *context) { weft_descriptor_close(((closing *)context)->descriptor); }

static void cancel_against_close(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    closing all;
    memset(&all, 0, sizeof all);
    rival closer;
    rival_start(&closer, close_it, &all, random);
    for (long round = 1; round <= 800 * stress_scale(); round++) {
        int pair[2];
        char byte;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_int_equal(weft_descriptor_open(runtime, pair[0], &all.descriptor), WEFT_OK);
        memset(&all.receive.io, 0, sizeof all.receive.io);
        all.receive.io.op.run = single_ran;
        atomic_store(&all.receive.ran, 0);
        atomic_store(&closer.begun, round);
        stress_wait(random, 2000);
        int rc = weft_recv(&all.receive.io, all.descriptor, &byte, 1, 0);
        if (rc == WEFT_OK) {
            if (stress_below(random, 2) == 0 && send(pair[1], "x", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE) abort();
            stress_wait(random, 3000);
            weft_io_cancel(&all.receive.io);
            wait_until(&all.receive.ran, 1);
            int status = all.receive.io.status;
            if (status != WEFT_OK && status != WEFT_ECANCELED && status != WEFT_ECLOSED) abort();
        } else if (rc != WEFT_EBADHANDLE && !(rc == 1 && all.receive.io.status == WEFT_ECLOSED)) {
            abort();
        }
        wait_until(&closer.ended, round);
        if (atomic_load(&all.receive.ran) != (rc == WEFT_OK)) abort();
        close(pair[1]);
        stress_progress();
    }
    rival_end(&closer);
    assert_int_equal(stats_of(runtime).descriptors, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

STRESS(callbacks_that_deregister_each_other)
STRESS(registration_against_request)
STRESS(cancel_against_receive)
STRESS(cancel_against_datagram)
STRESS(cancel_against_start)
STRESS(cancel_against_start_without_a_call)
STRESS(cancel_against_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_that_deregister_each_other_everywhere),
        cmocka_unit_test(registration_against_request_everywhere),
        cmocka_unit_test(cancel_against_receive_everywhere),
        cmocka_unit_test(cancel_against_datagram_everywhere),
        cmocka_unit_test(cancel_against_start_everywhere),
        cmocka_unit_test(cancel_against_start_without_a_call_everywhere),
        cmocka_unit_test(cancel_against_close_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
