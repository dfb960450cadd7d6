/* SPDX-License-Identifier: MIT
 *
 * descriptor_test.c: descriptors that live among others: numbers that are used again while others work, duplicates and children that hold
 * what was closed, very many at once, and none left. io_end_test.c has the single cases.
 */
#include "again.h"
#include "io_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Every thread opens and closes, so that each number is soon another's. What was sent to one descriptor must come out of it and of no
 * other, also while duplicates of closed ones still get bytes. */
typedef struct reuser {
    pthread_t thread;
    long rounds;
    unsigned seed;
    long wrong, received;
} reuser;

static void *reuse(void *argument)
{
    reuser *self = argument;
    int stale = -1, stale_peer = -1; /* of an earlier round: closed in weft, open in a duplicate */
    for (long i = 0; i < self->rounds; i++) {
        int peer;
        weft_descriptor descriptor = local_pair(runtime, SOCK_STREAM, &peer);
        call c;
        uint64_t tag = (uint64_t)(uintptr_t)self << 20 ^ (uint64_t)i, got = 0;
        int how = (int)(rand_r(&self->seed) % 4);
        int rc = weft_recv(fresh(&c), descriptor, &got, sizeof got, WEFT_IO_ALL);
        if (stale_peer >= 0 && write(stale_peer, "stale", 5) != 5) self->wrong++; /* nobody's event */
        if (how == 0) { /* closed with the bytes under way */
            if (write(peer, &tag, sizeof tag) != sizeof tag) self->wrong++;
            closes(descriptor);
            int status = status_of(&c, rc);
            if (status != WEFT_ECLOSED && !(status == WEFT_OK && got == tag)) self->wrong++;
        } else {
            if (write(peer, &tag, sizeof tag) != sizeof tag) self->wrong++;
            if (status_of(&c, rc) != WEFT_OK || got != tag) self->wrong++;
            self->received++;
            if (how == 1) { /* a duplicate survives the close */
                intptr_t system;
                assert_int_equal(weft_descriptor_system(descriptor, &system), WEFT_OK);
                if (stale >= 0) {
                    close(stale);
                    close(stale_peer);
                }
                stale = dup((int)system);
                stale_peer = dup(peer);
            }
            closes(descriptor);
        }
        close(peer);
    }
    if (stale >= 0) {
        close(stale);
        close(stale_peer);
    }
    return NULL;
}

static void numbers_used_again_under_load(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    reuser reusers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        reusers[i] = (reuser){.rounds = scaled(1500), .seed = (unsigned)i + 1};
        assert_int_equal(pthread_create(&reusers[i].thread, NULL, reuse, &reusers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(reusers[i].thread, NULL);
        assert_int_equal(reusers[i].wrong, 0);
        assert_true(reusers[i].received > 0);
    }
}

/* This program again: argument by argument, with what is inherited. */
static pid_t begin(const char *scenario, const char *argument)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        exec_again(scenario, argument);
    }
    return child;
}

/* Keeps what it has inherited until its standard input ends; says when it is there. */
static int hold(void)
{
    char byte;
    if (write(1, "r", 1) != 1) return 1;
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

/* A child that holds a copy of a descriptor: it takes no events away, a close ends the ops all the same, and nothing that happens to the copy
 * afterwards is an event here. */
static void child_holds_a_copy(void **state)
{
    (void)state;
    int to_child[2], from_child[2], ends[2];
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); /* inherited, as a careless library's are */
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fcntl(to_child[1], F_SETFD, FD_CLOEXEC);
    fcntl(from_child[0], F_SETFD, FD_CLOEXEC);
    weft_descriptor descriptor;
    assert_int_equal(weft_descriptor_open(runtime, ends[0], &descriptor), WEFT_OK);
    int in = dup(0), out = dup(1);
    dup2(to_child[0], 0);
    dup2(from_child[1], 1);
    pid_t child = begin("hold", "");
    dup2(in, 0);
    dup2(out, 1);
    close(in);
    close(out);
    close(to_child[0]);
    close(from_child[1]);
    char byte;
    assert_int_equal(read(from_child[0], &byte, 1), 1);

    call c;
    char got[8];
    for (int i = 0; i < 100; i++) {
        int rc = weft_recv(fresh(&c), descriptor, got, sizeof got, 0);
        if (i % 3 == 0) sleep_ms(1);
        writes(ends[1], "x");
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        assert_int_equal(c.io.count, 1);
    }
    starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, sizeof got, 0));
    closes(descriptor);
    assert_int_equal(status_of(&c, c.started), WEFT_ECLOSED);

    weft_stats before = stats_of(runtime);
    int peer;
    weft_descriptor next = local_pair(runtime, SOCK_STREAM, &peer); /* has the number now */
    starts_waiting(&c, weft_recv(fresh(&c), next, got, sizeof got, 0));
    for (int i = 0; i < 100; i++) writes(ends[1], "x"); /* the child's copy is still connected */
    sleep_ms(5);
    assert_int_equal(atomic_load(&c.runs), 0);
    assert_true(stats_of(runtime).io_events - before.io_events <= 1); /* that the new one can be written to */
    writes(peer, "mine");
    assert_int_equal(status_of(&c, c.started), WEFT_OK);
    assert_memory_equal(got, "mine", 4);
    closes(next);
    close(peer);

    close(to_child[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    errno = 0;
    assert_true(send(ends[1], "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE); /* the last copy is gone */
    close(ends[1]);
    close(from_child[0]);
}

static void half_close_of_local_sockets(void **state)
{
    (void)state;
    for (int waiting = 0; waiting < 2; waiting++) {
        int peer;
        weft_descriptor descriptor = local_pair(runtime, SOCK_STREAM, &peer);
        call c;
        char got[8];
        int rc = WEFT_OK;
        if (waiting) starts_waiting(&c, weft_recv(fresh(&c), descriptor, got, sizeof got, 0));
        writes(peer, "last");
        assert_int_equal(shutdown(peer, SHUT_WR), 0);
        if (!waiting) rc = weft_recv(fresh(&c), descriptor, got, sizeof got, 0);
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        assert_int_equal(c.io.count, 4);
        for (int i = 0; i < 2; i++) {
            rc = weft_recv(fresh(&c), descriptor, got, sizeof got, 0);
            assert_int_equal(status_of(&c, rc), WEFT_OK);
            assert_int_equal(c.io.count, 0);
        }
        /* The other way still works, until it is ended, too. */
        rc = weft_send(fresh(&c), descriptor, "answer", 6, WEFT_IO_ALL);
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        assert_int_equal(read(peer, got, sizeof got), 6);
        assert_int_equal(weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND), WEFT_OK);
        assert_int_equal(read(peer, got, sizeof got), 0);
        rc = weft_send(fresh(&c), descriptor, "x", 1, 0);
        assert_int_equal(status_of(&c, rc), WEFT_EPIPE);
        closes(descriptor);
        close(peer);
    }
}

/* Four long transfers at once, two on each descriptor: neither direction holds the other up, nor mixes with it. */
static void both_ways_at_length(weft_descriptor ends[2])
{
    enum { BYTES = 4 << 20 };
    unsigned char *out[2], *in[2];
    call sends[2], receives[2];
    int send_rc[2], receive_rc[2];
    for (int i = 0; i < 2; i++) {
        out[i] = malloc(BYTES);
        in[i] = calloc(1, BYTES);
        for (int j = 0; j < BYTES; j++) out[i][j] = (unsigned char)((j + i) * 2654435761u >> 11);
    }
    for (int i = 0; i < 2; i++) send_rc[i] = weft_send(fresh(&sends[i]), ends[i], out[i], BYTES, WEFT_IO_ALL);
    for (int i = 0; i < 2; i++) receive_rc[i] = weft_recv(fresh(&receives[i]), ends[i], in[i], BYTES, WEFT_IO_ALL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(status_of(&sends[i], send_rc[i]), WEFT_OK);
        assert_int_equal(status_of(&receives[i], receive_rc[i]), WEFT_OK);
        assert_int_equal(sends[i].io.count, BYTES);
    }
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(in[i], out[1 - i], BYTES);
        closes(ends[i]);
    }
    for (int i = 0; i < 2; i++) {
        free(out[i]);
        free(in[i]);
    }
}

static void receive_and_send_at_once(void **state)
{
    (void)state;
    weft_descriptor ends[2];
    connected(runtime, WEFT_IPV4, ends);
    both_ways_at_length(ends);
    int local[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, local), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(weft_descriptor_open(runtime, local[i], &ends[i]), WEFT_OK);
    both_ways_at_length(ends);
}

/* A receive that fails although there are bytes has used up the event that told of them: the next one must find them. */
static void failed_receives_lose_nothing(void **state)
{
    (void)state;
    int peer;
    weft_descriptor descriptor = connected_to(runtime, &peer);
    call c;
    char got[8];
    for (int i = 0; i < 20; i++) {
        writes(peer, "a");
        int rc = weft_recv(fresh(&c), descriptor, got, sizeof got, 0); /* short */
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        rc = weft_recv(fresh(&c), descriptor, (void *)(uintptr_t)8, 8, 0);
        writes(peer, "b");
        assert_int_equal(status_of(&c, rc), WEFT_ESYSTEM);
        assert_int_equal(c.io.os_error, EFAULT);
        rc = weft_recv(fresh(&c), descriptor, got, sizeof got, 0);
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        assert_memory_equal(got, "b", 1);
    }
    closes(descriptor);
    close(peer);
}

/* A connect that nobody answers, given up after 200 ms. */
typedef struct limit {
    weft_timer timer;
    weft_io *io;
    atomic_long expired;
} limit;

static void give_up(weft_op *op)
{
    limit *self = (limit *)op;
    weft_io_cancel(self->io);
    atomic_store(&self->expired, 1);
}

static void connect_to_a_black_hole(void **state)
{
    (void)state;
    /* A listener whose queue is full drops what comes. */
    weft_endpoint endpoint = loopback(WEFT_IPV4);
    weft_descriptor listener, fillers[8], descriptor;
    call calls[8], c;
    assert_int_equal(weft_tcp_listen(runtime, &endpoint, 1, &listener), WEFT_OK);
    assert_int_equal(weft_local_endpoint(listener, &endpoint), WEFT_OK);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &fillers[i]), WEFT_OK);
        calls[i].started = weft_connect(fresh(&calls[i]), fillers[i], &endpoint);
    }
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &descriptor), WEFT_OK);
    limit l = {.timer = {.op = {.run = give_up}}, .io = fresh(&c)};
    int64_t began = weft_now_ns();
    weft_stats before = stats_of(runtime);
    starts_waiting(&c, weft_connect(&c.io, descriptor, &endpoint));
    assert_int_equal(weft_schedule_after(runtime, &l.timer, INT64_C(200000000)), WEFT_OK);
    assert_int_equal(status_of(&c, c.started), WEFT_ECANCELED);
    assert_true(weft_now_ns() - began >= INT64_C(200000000));
    wait_for(&l.expired, 1);
    assert_true(stats_of(runtime).ops_run - before.ops_run < 20); /* it slept meanwhile */
    closes(descriptor);
    for (int i = 0; i < 8; i++) {
        weft_io_cancel(&calls[i].io);
        status_of(&calls[i], calls[i].started);
        closes(fillers[i]);
    }
    closes(listener);
}

/* Ten thousand connections, all open at once, whose other ends are another process's. */
enum { MANY = 10000 };

/* As many numbers as this needs; what the machine must allow. */
static void many_numbers(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= MANY + 200) return;
    limit.rlim_cur = MANY + 200;
    if (limit.rlim_max < limit.rlim_cur) limit.rlim_max = limit.rlim_cur; /* root may */
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        fprintf(stderr, "this test needs %d descriptors in each of two processes; raise the hard limit (ulimit -Hn)\n", MANY + 200);
        abort();
    }
}

static int connect_many(const char *port)
{
    static int sockets[MANY];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct linger linger = {1, 0}; /* no number of a port stays in use after the end */
    many_numbers();
    for (int i = 0; i < MANY; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(sockets[i], SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        if (sockets[i] < 0 || connect(sockets[i], (struct sockaddr *)&address, sizeof address) != 0) return 1;
    }
    char byte;
    if (read(0, &byte, 1) != 1) return 2; /* all have been accepted */
    for (int i = 0; i < MANY; i++)
        if (write(sockets[i], &i, sizeof i) != sizeof i) return 3;
    for (int i = 0; i < MANY; i++) {
        int back = -1;
        if (recv(sockets[i], &back, sizeof back, MSG_WAITALL) != sizeof back || back != i) return 4;
    }
    return 0;
}

typedef struct echo {
    weft_io io;
    weft_descriptor descriptor;
    bool answers;
    int number;
} echo;

static atomic_long answered;

static void echo_step(weft_op *op)
{
    echo *self = (echo *)op;
    int rc = 1;
    if (!self->answers && self->io.status == WEFT_OK && self->io.count == sizeof self->number) {
        self->answers = true;
        rc = weft_send(&self->io, self->descriptor, &self->number, sizeof self->number, WEFT_IO_ALL);
    }
    if (rc == WEFT_OK) return; /* called again */
    if (rc != 1 || !self->answers || self->io.status != WEFT_OK || self->io.count != sizeof self->number) {
        fprintf(stderr, "connection: start %d, status %d, %d bytes\n", rc, self->io.status, (int)self->io.count);
        abort();
    }
    atomic_fetch_add(&answered, 1);
}

static void ten_thousand_connections(void **state)
{
    (void)state;
    many_numbers();
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(runtime, WEFT_IPV4, &endpoint);
    char port[8];
    snprintf(port, sizeof port, "%d", endpoint.port);
    int go[2], in = dup(0);
    assert_int_equal(pipe(go), 0);
    fcntl(go[1], F_SETFD, FD_CLOEXEC);
    dup2(go[0], 0);
    pid_t child = begin("connect", port);
    dup2(in, 0);
    close(in);
    close(go[0]);
    echo *echoes = calloc(MANY, sizeof *echoes);
    for (int i = 0; i < MANY; i++) {
        call c;
        int rc = weft_accept(fresh(&c), listener);
        assert_int_equal(status_of(&c, rc), WEFT_OK);
        echo *e = &echoes[i];
        e->descriptor = c.io.accepted;
        e->io.op.run = echo_step;
        assert_int_equal(weft_recv(&e->io, e->descriptor, &e->number, sizeof e->number, WEFT_IO_ALL), WEFT_OK);
    }
    assert_int_equal(stats_of(runtime).descriptors, MANY + 1);
    writes(go[1], "g");
    close(go[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    wait_for(&answered, MANY);
    for (int i = 0; i < MANY; i++) closes(echoes[i].descriptor);
    closes(listener);
    free(echoes);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "hold") == 0) return hold();
    if (argc == 3 && strcmp(argv[1], "connect") == 0) return connect_many(argv[2]);
    const struct CMUnitTest tests[] = {
        IO_TEST(numbers_used_again_under_load),
        IO_TEST(child_holds_a_copy),
        IO_TEST(half_close_of_local_sockets),
        IO_TEST(receive_and_send_at_once),
        IO_TEST(failed_receives_lose_nothing),
        IO_TEST(connect_to_a_black_hole),
        IO_TEST(ten_thousand_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
