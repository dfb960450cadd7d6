/* SPDX-License-Identifier: MIT
 *
 * io_end_test.c: how ops end early: cancel before, while and after they wait, close, stop; and all of these at once with
 * what they wait for.
 */
#include "io_support.h"

#include <pthread.h>
#include <sys/resource.h>
#if !defined(_WIN32)
#include <dirent.h>
#include <sys/wait.h>
#endif

/* How often what races is tried: each of a round's calls is some trips to Wine's server there. */
static long rounds(long count)
{
#if defined(_WIN32)
    count /= 20;
#endif
    return scaled(count);
}

static void cancel_before(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    char got[4];
    fresh(&c);
    assert_int_equal(weft_io_cancel(&c.io), WEFT_OK);
    assert_int_equal(weft_io_cancel(&c.io), 1);
    /* A start that is refused keeps the request. */
    assert_int_equal(weft_recv(&c.io, (weft_descriptor){0}, got, 4, 0), WEFT_EBADHANDLE);
    writes(peer, "data");
    readable(descriptor);
    assert_int_equal(weft_recv(&c.io, descriptor, got, 4, 0), 1);
    assert_int_equal(c.io.status, WEFT_ECANCELED);
    assert_int_equal(c.io.count, 0);
    /* It ended that start alone, and took nothing. */
    assert_int_equal(weft_recv(&c.io, descriptor, got, 4, 0), 1);
    assert_int_equal(c.io.status, WEFT_OK);
    assert_int_equal(c.io.count, 4);
    close(peer);
    closes(descriptor);
}

static void cancel_while_waiting(void **state)
{
    (void)state;
    weft_descriptor ends[2];
    connected(runtime, WEFT_IPV4, ends);
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(runtime, WEFT_IPV4, &endpoint);
    call c;
    char got[4];
    for (int i = 0; i < 3; i++) { /* recv after recv: the direction is free again */
        starts_waiting(&c, weft_recv(fresh(&c), ends[0], got, 4, 0));
        assert_int_equal(weft_io_cancel(&c.io), WEFT_OK);
        assert_int_equal(status_of(&c, c.started), WEFT_ECANCELED);
        assert_int_equal(weft_io_cancel(&c.io), 1);
    }
    starts_waiting(&c, weft_accept(fresh(&c), listener));
    assert_int_equal(weft_io_cancel(&c.io), WEFT_OK);
    assert_int_equal(status_of(&c, c.started), WEFT_ECANCELED);
    static char block[1 << 20];
    int rc;
    while ((rc = weft_send(fresh(&c), ends[0], block, sizeof block, 0)) == 1) {
    }
    starts_waiting(&c, rc);
    assert_int_equal(weft_io_cancel(&c.io), WEFT_OK);
    assert_int_equal(status_of(&c, c.started), WEFT_ECANCELED);

    /* What came before is counted. */
    starts_waiting(&c, weft_recv(fresh(&c), ends[0], got, 4, WEFT_IO_ALL));
    uint64_t events = stats_of(runtime).io_events;
    call sends;
    rc = weft_send(fresh(&sends), ends[1], "ab", 2, 0);
    assert_int_equal(status_of(&sends, rc), WEFT_OK);
    intptr_t system;
    assert_int_equal(weft_descriptor_system(ends[0], &system), WEFT_OK);
    while (stats_of(runtime).io_events == events) sleep_ms(1);
    while (recv((int)system, block, 1, MSG_PEEK | MSG_DONTWAIT) > 0) sleep_ms(1);
    assert_int_equal(weft_io_cancel(&c.io), WEFT_OK);
    assert_int_equal(status_of(&c, c.started), WEFT_ECANCELED);
    assert_int_equal(c.io.count, 2);
    assert_memory_equal(got, "ab", 2);
    closes(ends[0]);
    closes(ends[1]);
    closes(listener);
}

static void cancel_after(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    char got[4];
    writes(peer, "data");
    readable(descriptor);
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, 4, 0), 1);
    assert_int_equal(weft_io_cancel(&c.io), 1);
    assert_int_equal(c.io.status, WEFT_OK);
    assert_int_equal(c.io.count, 4);
    /* A request that came too late is no request for the next start. */
    starts_waiting(&c, weft_recv(&c.io, descriptor, got, 4, 0));
    writes(peer, "more");
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    close(peer);
    closes(descriptor);
}

/* An address that nobody answers from: the connect hangs until somebody gives up. The network may say at once that there is
 * no way; then there is nothing to cancel. */
static void cancel_connect(void **state)
{
    (void)state;
    weft_endpoint endpoint;
    weft_descriptor listener = {0}, fillers[8], descriptor;
    call calls[8], c;
    /* A listener whose queue is full drops what comes: a connect to it waits. */
    endpoint = loopback(WEFT_IPV4);
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, 1, &listener), WEFT_OK);
    assert_int_equal(weft_local_endpoint(listener, &endpoint), WEFT_OK);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &fillers[i]), WEFT_OK);
        calls[i].started = weft_connect(fresh(&calls[i]), fillers[i], &endpoint);
    }
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &descriptor), WEFT_OK);
    starts_waiting(&c, weft_connect(fresh(&c), descriptor, &endpoint));
    sleep_ms(20);
    assert_int_equal(atomic_load(&c.runs), 0);
    assert_int_equal(weft_io_cancel(&c.io), WEFT_OK);
    assert_int_equal(status_of(&c, c.started), WEFT_ECANCELED);
    closes(descriptor);
    for (int i = 0; i < 8; i++) {
        weft_io_cancel(&calls[i].io);
        status_of(&calls[i], calls[i].started);
        closes(fillers[i]);
    }
    closes(listener);
}

static void close_while_waiting(void **state)
{
    (void)state;
    weft_descriptor ends[2];
    connected(runtime, WEFT_IPV4, ends);
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(runtime, WEFT_IPV6, &endpoint);
    call receives, sends, accepts;
    static char block[1 << 20];
    char got[4];
    starts_waiting(&receives, weft_recv(fresh(&receives), ends[0], got, 4, WEFT_IO_ALL));
    int rc;
    while ((rc = weft_send(fresh(&sends), ends[0], block, sizeof block, 0)) == 1) {
    }
    starts_waiting(&sends, rc);
    closes(ends[0]);
    assert_int_equal(status_of(&receives, receives.started), WEFT_ECLOSED);
    assert_int_equal(status_of(&sends, sends.started), WEFT_ECLOSED);
    assert_int_equal(weft_descriptor_close(ends[0]), WEFT_EBADHANDLE);
    assert_int_equal(weft_recv(fresh(&receives), ends[0], got, 4, 0), WEFT_EBADHANDLE);
    closes(ends[1]);

    starts_waiting(&accepts, weft_accept(fresh(&accepts), listener));
    closes(listener);
    assert_int_equal(status_of(&accepts, accepts.started), WEFT_ECLOSED);
}

#if !defined(_WIN32)
/* epoll watches what is behind a descriptor, for as long as a duplicate of it lives. */
static void close_with_a_duplicate(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = local_pair(runtime, SOCK_STREAM, &peer);
    intptr_t system;
    assert_int_equal(weft_descriptor_system(descriptor, &system), WEFT_OK);
    int duplicate = dup((int)system);
    closes(descriptor);
    weft_stats before;
    do { /* an event that a worker had taken before the close may be counted after it */
        before = stats_of(runtime);
        sleep_ms(5);
    } while (stats_of(runtime).io_events != before.io_events);
    for (int i = 0; i < 100; i++) writes(peer, "x");
    sleep_ms(5);
    assert_int_equal(stats_of(runtime).io_events, before.io_events);
    /* What was behind the number is free to be registered again. */
    assert_int_equal(weft_descriptor_open(runtime, duplicate, &descriptor), WEFT_OK);
    call c;
    char got[128];
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, sizeof got, 0), 1);
    assert_int_equal(c.io.count, 100);
    close(peer);
    closes(descriptor);
}

#endif

/* The number of a closed descriptor is used again at once: what is still on its way for the old one wakes nobody wrongly. */
static void numbers_used_again(void **state)
{
    (void)state;
    for (long i = 0; i < rounds(2000); i++) {
        int peer;
        weft_descriptor descriptor = local_pair(runtime, SOCK_STREAM, &peer);
        call c;
        char got[8];
        int rc = weft_recv(fresh(&c), descriptor, got, sizeof got, 0);
        writes(peer, "old");
        if (i % 2 == 0) status_of(&c, rc);
        closes(descriptor);
        status_of(&c, rc);
        assert_true(c.io.status == WEFT_OK || c.io.status == WEFT_ECLOSED);
        close(peer);

        descriptor = local_pair(runtime, SOCK_STREAM, &peer);
        starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, sizeof got, 0));
        writes(peer, "new");
        assert_int_equal(status_of(&c, c.started), WEFT_OK);
        assert_int_equal(c.io.count, 3);
        assert_memory_equal(got, "new", 3);
        closes(descriptor);
        close(peer);
    }
}

static int open_files(void)
{
#if defined(_WIN32)
    DWORD count;
    assert_true(GetProcessHandleCount(GetCurrentProcess(), &count));
    return (int)count;
#else
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory) != NULL) count++;
    closedir(directory);
    return count;
#endif
}

static void stop_while_waiting(void **state)
{
    (void)state;
    int before = open_files();
    weft_runtime other = start_runtime(2);
    int peer;
    weft_descriptor descriptor = local_pair(other, SOCK_STREAM, &peer);
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(other, WEFT_IPV4, &endpoint), late;
    call receives, accepts, c;
    char got[4];
    starts_waiting(&receives, weft_recv(fresh(&receives), descriptor, got, 4, 0));
    starts_waiting(&accepts, weft_accept(fresh(&accepts), listener));
    assert_int_equal(weft_runtime_stop(other), WEFT_OK);
    assert_int_equal(status_of(&receives, receives.started), WEFT_ECANCELED);
    assert_int_equal(status_of(&accepts, accepts.started), WEFT_ECANCELED);
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, 4, 0), WEFT_ESTOPPED);
    assert_int_equal(weft_tcp_open(other, WEFT_IPV4, &late), WEFT_ESTOPPED);
    assert_int_equal(weft_tcp_listen(other, &endpoint, 0, &late), WEFT_ESTOPPED);
    assert_int_equal(weft_descriptor_open(other, peer, &late), WEFT_ESTOPPED);
    closes(listener);
    /* The other descriptor goes with the runtime. */
    assert_int_equal(weft_runtime_destroy(other), WEFT_OK);
    assert_int_equal(read(peer, got, 1), 0);
    close(peer);
    assert_int_equal(open_files(), before);
    assert_int_equal(weft_recv(fresh(&c), descriptor, got, 4, 0), WEFT_EBADHANDLE);
}

static void ended_peers_cost_nothing(void **state)
{
    (void)state;
    enum { MANY = 20 };
    weft_descriptor descriptors[MANY], listener;
    weft_endpoint endpoint;
    call calls[MANY];
    char got[4];
    for (int i = 0; i < MANY; i++) {
        int peer;
        descriptors[i] = connected_to(runtime, &peer);
        writes(peer, "unread");
        close(peer);
        if (i % 2 == 0) { /* half of them were asked to wait before */
            int rc = weft_recv(fresh(&calls[i]), descriptors[i], got, 4, 0);
            status_of(&calls[i], rc);
        }
    }
    listener = listen_on(runtime, WEFT_IPV4, &endpoint);
    sleep_ms(60);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    sleep_ms(300);
    getrusage(RUSAGE_SELF, &after);
    long used_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
                   after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    assert_true(used_us < 30000); /* a tenth of one processor: something that spins uses all of it */
    for (int i = 0; i < MANY; i++) closes(descriptors[i]);
    closes(listener);
}

#if !defined(_WIN32)
static void forked_child(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = local_pair(runtime, SOCK_STREAM, &peer), other;
    pid_t child = fork();
    if (child == 0) {
        call c;
        char got[4];
        fresh(&c);
        bool good = weft_recv(&c.io, descriptor, got, 4, 0) == WEFT_EFORKED && weft_send(&c.io, descriptor, got, 4, 0) == WEFT_EFORKED &&
                    weft_descriptor_close(descriptor) == WEFT_EFORKED && weft_tcp_open(runtime, WEFT_IPV4, &other) == WEFT_EFORKED &&
                    weft_descriptor_open(runtime, peer, &other) == WEFT_EFORKED &&
                    weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND) == WEFT_EFORKED;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(peer);
    closes(descriptor);
}

#endif

/* Everything at once. */

typedef struct race {
    pthread_barrier_t gate;
    call c;
    weft_descriptor descriptor;
    int peer;
    int cancelled;
    bool over;
} race;

static void *canceller(void *argument)
{
    race *r = argument;
    for (;;) {
        pthread_barrier_wait(&r->gate);
        if (r->over) return NULL;
        r->cancelled = weft_io_cancel(&r->c.io);
        pthread_barrier_wait(&r->gate);
    }
}

/* Start, data and cancel from three threads: it completes once, and no byte is lost. */
static void start_data_and_cancel(void **state)
{
    (void)state;
    race r = {.over = false};
    r.descriptor = connected_to(runtime, &r.peer);
    pthread_barrier_init(&r.gate, NULL, 2);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, canceller, &r), 0);
    long statuses[2] = {0};
    char got[4];
    for (long i = 0; i < rounds(20000); i++) {
        fresh(&r.c);
        bool early = i % 3 == 0;
        if (early) writes(r.peer, "x");
        pthread_barrier_wait(&r.gate);
        int rc = weft_recv(&r.c.io, r.descriptor, got, 4, 0);
        if (!early) writes(r.peer, "x");
        pthread_barrier_wait(&r.gate);
        int status = status_of(&r.c, rc);
        if (status == WEFT_OK) {
            assert_int_equal(r.c.io.count, 1);
        } else {
            assert_int_equal(status, WEFT_ECANCELED);
            assert_int_equal(r.cancelled, WEFT_OK); /* it was this request */
            rc = weft_recv(fresh(&r.c), r.descriptor, got, 4, 0);
            assert_int_equal(status_of(&r.c, rc), WEFT_OK);
            assert_int_equal(r.c.io.count, 1);
        }
        statuses[status != WEFT_OK]++;
    }
    r.over = true;
    pthread_barrier_wait(&r.gate);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&r.gate);
    assert_true(statuses[0] > 0 && statuses[1] > 0); /* both ways were taken */
    close(r.peer);
    closes(r.descriptor);
}

/* Start and cancel from two threads, and nothing that would end the op otherwise: the request is not lost, wherever it falls. */
static void start_and_cancel(void **state)
{
    (void)state;
    race r = {.over = false};
    r.descriptor = connected_to(runtime, &r.peer);
    pthread_barrier_init(&r.gate, NULL, 2);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, canceller, &r), 0);
    long at_once = 0;
    char got[4];
    for (long i = 0; i < rounds(20000); i++) {
        fresh(&r.c);
        pthread_barrier_wait(&r.gate);
        int rc = weft_recv(&r.c.io, r.descriptor, got, 4, 0);
        pthread_barrier_wait(&r.gate);
        assert_int_equal(r.cancelled, WEFT_OK);
        assert_int_equal(status_of(&r.c, rc), WEFT_ECANCELED);
        at_once += rc;
    }
    r.over = true;
    pthread_barrier_wait(&r.gate);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&r.gate);
    assert_true(at_once > 0 && at_once < rounds(20000)); /* requests fell on both sides of the wait */
    close(r.peer);
    closes(r.descriptor);
}

static void *closer(void *argument)
{
    race *r = argument;
    for (;;) {
        pthread_barrier_wait(&r->gate);
        if (r->over) return NULL;
        r->cancelled = weft_descriptor_close(r->descriptor);
        pthread_barrier_wait(&r->gate);
    }
}

/* Two closes, a start and data: one close wins, the op completes or is refused, and the bytes go to nobody else. */
static void start_data_and_close(void **state)
{
    (void)state;
    race r = {.over = false};
    pthread_barrier_init(&r.gate, NULL, 2);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, closer, &r), 0);
    long refused = 0, closed = 0, received = 0;
    for (long i = 0; i < rounds(5000); i++) {
        char got[4] = {0};
        r.descriptor = local_pair(runtime, SOCK_STREAM, &r.peer);
        fresh(&r.c);
        if (i % 3 == 0) writes(r.peer, "x");
        pthread_barrier_wait(&r.gate);
        int rc = weft_recv(&r.c.io, r.descriptor, got, 4, WEFT_IO_ALL);
        if (i % 3 == 1) send(r.peer, "xyzw", 4, MSG_NOSIGNAL);
        bool second = i % 2 == 0 && weft_descriptor_close(r.descriptor) == WEFT_OK;
        pthread_barrier_wait(&r.gate);
        assert_true(i % 2 != 0 || (second != (r.cancelled == WEFT_OK)));
        if (rc < 0) {
            assert_int_equal(rc, WEFT_EBADHANDLE);
            refused++;
        } else if (status_of(&r.c, rc) == WEFT_OK) {
            assert_memory_equal(got, "xyzw", 4);
            received++;
        } else {
            assert_int_equal(r.c.io.status, WEFT_ECLOSED);
            closed++;
        }
        close(r.peer);
    }
    r.over = true;
    pthread_barrier_wait(&r.gate);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&r.gate);
    assert_true(refused > 0 && closed > 0);
    (void)received;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IO_TEST(cancel_before),
        IO_TEST(cancel_while_waiting),
        IO_TEST(cancel_after),
        IO_TEST(cancel_connect),
        IO_TEST(close_while_waiting),
#if !defined(_WIN32)
        IO_TEST(close_with_a_duplicate),
#endif
        IO_TEST(numbers_used_again),
        IO_TEST(stop_while_waiting),
        IO_TEST(ended_peers_cost_nothing),
#if !defined(_WIN32)
        IO_TEST(forked_child),
#endif
        IO_TEST(start_data_and_cancel),
        IO_TEST(start_and_cancel),
        IO_TEST(start_data_and_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
