/* SPDX-License-Identifier: MIT
 *
 * faults_test.c: nothing is lost under a system that refuses (faults.h): conversations, timers, ops and whole runtimes, at seeded random
 * points. What fails, fails with a code that its page has, and goes on afterwards. The seed is printed; WEFT_SEED sets it.
 */
#include "again.h"
#include "io_support.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "faults_support.h"

/* ---- conversations */

/* An op that its starter waits for. */
typedef struct waiting {
    weft_io io;
    sem_t done;
    atomic_int runs;
} waiting;

static void done(weft_op *op)
{
    waiting *w = (waiting *)op;
    atomic_fetch_add(&w->runs, 1);
    sem_post(&w->done);
}

static void prepare(waiting *w)
{
    memset(w, 0, sizeof *w);
    w->io.op.run = done;
    sem_init(&w->done, 0, 0);
}

/* The result of an op whose start returned rc. It is there exactly once. */
static int result(waiting *w, int rc)
{
    if (rc == 1) return atomic_load(&w->runs) == 0 ? w->io.status : -1000;
    if (rc != WEFT_OK) return -1001;
    while (sem_wait(&w->done) != 0) {
    }
    return atomic_exchange(&w->runs, 0) == 1 ? w->io.status : -1002;
}

/* Moves all of a buffer, however often it is refused. What an op has moved before it failed counts. */
static bool moves(waiting *w, weft_descriptor descriptor, char *data, size_t length, bool sends, bool pieces)
{
    for (size_t at = 0; at < length;) {
        size_t half = (length - at) / 2;
        weft_buffer two[2] = {{data + at, half}, {data + at + half, length - at - half}};
        int rc = pieces ? (sends ? weft_send_buffers : weft_recv_buffers)(&w->io, descriptor, two, 2, WEFT_IO_ALL)
                 : sends ? weft_send(&w->io, descriptor, data + at, length - at, WEFT_IO_ALL)
                         : weft_recv(&w->io, descriptor, data + at, length - at, WEFT_IO_ALL);
        int status = result(w, rc);
        at += w->io.count;
        if (status == WEFT_OK ? at != length : status != WEFT_ENOMEM || at > length) return false;
    }
    return true;
}

typedef struct party {
    pthread_t thread;
    weft_descriptor descriptor;
    long rounds;
    uint64_t seed;
    bool asks, good;
} party;

/* One asks, the other answers with the same; both know what is to come. */
static void *converse(void *argument)
{
    party *self = argument;
    waiting w;
    prepare(&w);
    enum { LONGEST = 40000 };
    char *said = malloc(LONGEST), *heard = malloc(LONGEST);
    self->good = true;
    for (long round = 0; round < self->rounds && self->good; round++) {
        self->seed = self->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size_t length = 1 + (self->seed >> 33) % (round % 8 == 0 ? LONGEST : 300);
        for (size_t i = 0; i < length; i++) said[i] = (char)(self->seed >> (i % 57)) ^ (char)i;
        bool pieces = (self->seed >> 60 & 1) != 0;
        if (self->asks && !moves(&w, self->descriptor, said, length, true, pieces)) self->good = false;
        if (self->good && !moves(&w, self->descriptor, heard, length, false, !pieces)) self->good = false;
        if (self->good && memcmp(said, heard, length) != 0) self->good = false;
        if (self->good && !self->asks && !moves(&w, self->descriptor, heard, length, true, pieces)) self->good = false;
    }
    if (!self->good) fprintf(stderr, "%s: status %d, %d of the system\n", self->asks ? "asker" : "answerer", w.io.status, w.io.os_error);
    free(said);
    free(heard);
    return NULL;
}

/* Connects, however often it is refused. */
static void connects(weft_descriptor ends[2])
{
    weft_endpoint endpoint = loopback(WEFT_IPV4);
    weft_descriptor listener;
    int rc;
    while ((rc = weft_tcp_listen(runtime, &endpoint, 0, &listener)) != WEFT_OK) assert_true(rc == WEFT_ELIMIT || rc == WEFT_ENOMEM);
    assert_int_equal(weft_local_endpoint(listener, &endpoint), WEFT_OK);
    while ((rc = weft_tcp_open(runtime, WEFT_IPV4, &ends[0])) != WEFT_OK) assert_true(rc == WEFT_ELIMIT || rc == WEFT_ENOMEM);
    waiting accepts, connects;
    prepare(&accepts);
    prepare(&connects);
    int accept_rc = weft_accept(&accepts.io, listener);
    int connect_rc = weft_connect(&connects.io, ends[0], &endpoint);
    assert_int_equal(result(&connects, connect_rc), WEFT_OK);
    int status;
    while ((status = result(&accepts, accept_rc)) != WEFT_OK) { /* the connection has waited */
        assert_true(status == WEFT_ELIMIT || status == WEFT_ENOMEM);
        assert_int_equal(accepts.io.accepted.id, 0);
        accept_rc = weft_accept(&accepts.io, listener);
    }
    ends[1] = accepts.io.accepted;
    closes(listener);
}

static const fault of_conversations[] = {FAULT_interrupted, FAULT_short_receive, FAULT_short_send, FAULT_no_buffers,
                                         FAULT_no_number,   FAULT_aborted,       FAULT_spurious};

static void conversations(void **state)
{
    (void)state;
    enum { PAIRS = 4 };
    for (size_t i = 0; i < sizeof of_conversations / sizeof *of_conversations; i++) atomic_store(&fault_one_in[of_conversations[i]], 5);
    for (long again = 0; again < scaled(3); again++) {
        party parties[2 * PAIRS];
        for (int i = 0; i < PAIRS; i++) {
            weft_descriptor ends[2];
            for (int tries = 0; tries < 10; tries++) {
                if (tries != 0)
                    for (int end = 0; end < 2; end++) closes(ends[end]);
                connects(ends);
            }
            if (i % 2 == 1) { /* a local socket, on which receives are short, too */
                int local[2];
                for (int end = 0; end < 2; end++) closes(ends[end]);
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, local), 0);
                for (int end = 0; end < 2; end++) assert_int_equal(weft_descriptor_open(runtime, local[end], &ends[end]), WEFT_OK);
            }
            for (int end = 0; end < 2; end++)
                parties[2 * i + end] = (party){.descriptor = ends[end], .rounds = 150, .seed = fault_seed + (uint64_t)i, .asks = end == 0};
            parties[2 * i + 1].seed = parties[2 * i].seed;
        }
        for (int i = 0; i < 2 * PAIRS; i++) assert_int_equal(pthread_create(&parties[i].thread, NULL, converse, &parties[i]), 0);
        for (int i = 0; i < 2 * PAIRS; i++) pthread_join(parties[i].thread, NULL);
        for (int i = 0; i < 2 * PAIRS; i++) {
            assert_true(parties[i].good);
            closes(parties[i].descriptor);
        }
    }
    have_struck(of_conversations, sizeof of_conversations / sizeof *of_conversations);
}

/* ---- ops and timers */

typedef struct firing {
    weft_timer timer;
    int64_t due, fired;
    atomic_long runs;
} firing;

static void fires(weft_op *op)
{
    firing *f = (firing *)op;
    f->fired = weft_now_ns();
    atomic_fetch_add(&f->runs, 1);
}

static void sleeps(void **state)
{
    (void)state;
    static const fault kinds[] = {FAULT_interrupted, FAULT_woken};
    for (size_t i = 0; i < 2; i++) atomic_store(&fault_one_in[kinds[i]], 2);
    for (int polls = 0; polls < 2; polls++) {
        int peer = -1;
        weft_descriptor descriptor = {0};
        if (polls) descriptor = local_pair(runtime, SOCK_STREAM, &peer); /* so that somebody sleeps in the poller */
        for (long i = 0; i < scaled(1000); i++) {
            waiting w;
            prepare(&w);
            if (i % 20 == 0) sleep_ms(1); /* until everybody sleeps */
            assert_int_equal(weft_schedule(runtime, &w.io.op), WEFT_OK);
            assert_int_equal(result(&w, WEFT_OK), WEFT_OK);
        }
        /* No timer is early, or lost. */
        enum { TIMERS = 200 };
        static firing firings[TIMERS];
        for (int i = 0; i < TIMERS; i++) {
            memset(&firings[i], 0, sizeof firings[i]);
            firings[i].timer.op.run = fires;
            firings[i].due = weft_now_ns() + i % 50 * 1000000;
            assert_int_equal(weft_schedule_after(runtime, &firings[i].timer, i % 50 * 1000000), WEFT_OK);
        }
        for (int i = 0; i < TIMERS; i++) {
            wait_for(&firings[i].runs, 1);
            assert_true(firings[i].fired >= firings[i].due);
            assert_int_equal(firings[i].timer.status, WEFT_OK);
        }
        if (polls) close(peer);
        closes(descriptor);
    }
    have_struck(kinds, 2);
}

/* ---- runtimes */

static int entries_of(const char *folder)
{
    int count = 0;
    DIR *directory = opendir(folder);
    while (readdir(directory) != NULL) count++;
    closedir(directory);
    return count;
}

/* A runtime that could not be made leaves nothing behind, and says why. */
static void runtimes(void **state)
{
    (void)state;
    static const fault kinds[] = {
        FAULT_no_thread,
#if FAULTS_MEMORY
        FAULT_no_memory,
#endif
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    assert_int_equal(weft_runtime_destroy(start_runtime(4)), WEFT_OK);
    int files = entries_of("/proc/self/fd");
    long made = 0, refused = 0;
    for (long i = 0; i < scaled(300); i++) {
        weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
        config.workers = 4;
        weft_runtime some = {77};
        for (int k = 0; k < KINDS; k++) atomic_store(&fault_one_in[kinds[k]], 12);
        int rc = weft_runtime_create(&config, &some);
        faults_off();
        if (rc == WEFT_OK) {
            made++;
            waiting w;
            prepare(&w);
            assert_int_equal(weft_schedule(some, &w.io.op), WEFT_OK);
            assert_int_equal(result(&w, WEFT_OK), WEFT_OK);
            assert_int_equal(weft_runtime_destroy(some), WEFT_OK);
        } else {
            refused++;
            assert_true(rc == WEFT_ENOMEM || rc == WEFT_ELIMIT);
            assert_int_equal(some.id, 77);
        }
    }
    assert_true(made > 0 && refused > 0);
    assert_int_equal(entries_of("/proc/self/fd"), files);
    have_struck(kinds, KINDS);
}

#if FAULTS_MEMORY
/* No memory for the record of a descriptor: open says so and leaves the number with the caller; accept says so and has closed the
 * connection. */
static void no_memory_for_descriptors(void **state)
{
    (void)state;
    weft_endpoint endpoint;
    weft_descriptor listener = listen_on(runtime, WEFT_IPV4, &endpoint), client;
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &client), WEFT_OK);
    call c;
    int rc = weft_connect(fresh(&c), client, &endpoint);
    assert_int_equal(status_of(&c, rc), WEFT_OK);
    /* The records of the first chunk are used up. */
    enum { CHUNK = 1024 };
    static weft_descriptor used[CHUNK - 2];
    static int peers[CHUNK - 2];
    for (int i = 0; i < CHUNK - 2; i++) used[i] = local_pair(runtime, SOCK_STREAM, &peers[i]);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    weft_descriptor none = {5};
    atomic_store(&fault_one_in[FAULT_no_memory], 1);
    assert_int_equal(weft_descriptor_open(runtime, ends[0], &none), WEFT_ENOMEM);
    assert_int_equal(none.id, 5);
    rc = weft_accept(fresh(&c), listener);
    assert_int_equal(status_of(&c, rc), WEFT_ENOMEM);
    assert_int_equal(c.io.accepted.id, 0);
    faults_off();
    char got[1];
    rc = weft_recv(fresh(&c), client, got, 1, 0);
    status_of(&c, rc);
    assert_true(c.io.status == WEFT_ECONNRESET || (c.io.status == WEFT_OK && c.io.count == 0));
    assert_int_equal(weft_descriptor_open(runtime, ends[0], &none), WEFT_OK);
    closes(none);
    close(ends[1]);
    for (int i = 0; i < CHUNK - 2; i++) {
        closes(used[i]);
        close(peers[i]);
    }
    closes(client);
    closes(listener);
    static const fault kind = FAULT_no_memory;
    have_struck(&kind, 1);
}
#endif

#if FAULTS_MEMORY
/* A queue that cannot grow ends the program: no call is there that could say so. */
static void grow(weft_op *op)
{
    enum { MANY = 100000 };
    static weft_op many[MANY];
    atomic_store(&fault_one_in[FAULT_no_growth], 1);
    for (int i = 0; i < MANY; i++) {
        many[i].run = op->run;
        weft_schedule(weft_runtime_current(), &many[i]);
    }
}

static int grows(void)
{
    static weft_op op = {.run = grow};
    runtime = start_runtime(1);
    weft_schedule(runtime, &op);
    alarm(20);
    pause();
    return 1;
}

static void queue_cannot_grow(void **state)
{
    (void)state;
    int out[2], status;
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], 2);
        exec_again("grows", NULL);
    }
    close(out[1]);
    char said[200] = "";
    for (size_t at = 0, n = 1; n > 0 && at < sizeof said - 1; at += n) {
        ssize_t got = read(out[0], said + at, sizeof said - 1 - at);
        n = got > 0 ? (size_t)got : 0;
    }
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "weft: out of memory while a worker's queue grows"));
}
#endif

/* ---- the calls that Go makes itself: the kernel refuses them to one thread, which the library stays on */

typedef struct refusal {
    int call, error;
    int create, open; /* what weft_runtime_create and weft_descriptor_open then say */
} refusal;

static void *refused(void *argument)
{
    const refusal *r = argument;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)r->error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    int ends[2], files = entries_of("/proc/self/fd");
    weft_runtime none = {5};
    weft_descriptor descriptor = {5};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    for (int i = 0; i < 3; i++) {
        int rc = weft_runtime_create(NULL, &none);
        assert_int_equal(rc, r->create);
        if (rc == WEFT_OK)
            assert_int_equal(weft_runtime_destroy(none), WEFT_OK);
        else
            assert_int_equal(none.id, 5);
        rc = weft_descriptor_open(runtime, ends[0], &descriptor);
        assert_int_equal(rc, r->open);
        if (rc == WEFT_OK) {
            closes(descriptor);
            ends[0] = dup(ends[1]);
        } else {
            assert_int_equal(descriptor.id, 5);
            assert_int_equal(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
        }
    }
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(entries_of("/proc/self/fd"), files);
    return NULL;
}

static void refused_by_the_kernel(void **state)
{
    (void)state;
    refusal refusals[] = {
        {SYS_epoll_ctl, ENOMEM, WEFT_ENOMEM, WEFT_ENOMEM}, {SYS_epoll_ctl, ENOSPC, WEFT_ELIMIT, WEFT_ELIMIT},
        {SYS_epoll_create1, EMFILE, WEFT_ELIMIT, WEFT_OK}, {SYS_epoll_create1, ENOMEM, WEFT_ENOMEM, WEFT_OK},
        {SYS_eventfd2, ENFILE, WEFT_ELIMIT, WEFT_OK},      {SYS_eventfd2, ENOMEM, WEFT_ENOMEM, WEFT_OK},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, refused, &refusals[i]), 0);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv)
{
    faults_know((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "weft_now_ns"));
#if FAULTS_MEMORY
    if (argc == 2 && strcmp(argv[1], "grows") == 0) return grows();
#else
    (void)argc, (void)argv;
#endif
    faults_seed();
    if (library_begin == 0) return 2;
    const struct CMUnitTest tests[] = {
        IO_TEST(conversations),
        IO_TEST(sleeps),
        IO_TEST(runtimes),
#if FAULTS_MEMORY
        IO_TEST(no_memory_for_descriptors),
        IO_TEST(queue_cannot_grow),
#endif
        IO_TEST(refused_by_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
