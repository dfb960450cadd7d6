/* SPDX-License-Identifier: MIT
 *
 * fairness_test.c: nobody waits long for those who never stop: two ops that yield to each other for ever, an op that queues
 * itself as the newest for ever, a socket that always has something, and an op that computes for long behind which another one
 * waits. How long is counted in the ops that ran meanwhile, so that it means the same on a busy machine.
 */
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two ops that yield for ever share their worker. */
typedef struct yielder {
    weft_op op;
    weft_runtime runtime;
    long *left; /* turns of all together */
    long turns;
    atomic_long *ended;
} yielder;

static void take_turn(weft_op *op)
{
    yielder *self = (yielder *)op;
    if (*self->left == 0) {
        atomic_fetch_add(self->ended, 1);
        return;
    }
    --*self->left;
    self->turns++;
    if (weft_yield(self->runtime, op) != WEFT_OK) abort();
}

typedef struct yielders {
    weft_op op;
    yielder both[2];
} yielders;

static void begin_both(weft_op *op)
{
    yielders *self = (yielders *)op;
    for (int i = 0; i < 2; i++)
        if (weft_schedule(self->both[i].runtime, &self->both[i].op) != WEFT_OK) abort();
}

static void two_yielders_have_half_each(void **state)
{
    (void)state;
    enum { TURNS = 100000 };
    weft_runtime runtime = start_alone();
    long left = TURNS;
    atomic_long ended = 0;
    yielders all = {.op = {.run = begin_both}};
    for (int i = 0; i < 2; i++)
        all.both[i] = (yielder){.op = {.run = take_turn}, .runtime = runtime, .left = &left, .ended = &ended};
    assert_int_equal(weft_schedule(runtime, &all.op), WEFT_OK);
    wait_for(&ended, 2);
    assert_true(all.both[0].turns >= TURNS * 45 / 100);
    assert_true(all.both[1].turns >= TURNS * 45 / 100);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A loop that fills its worker, while a timer and another socket want their turn. It tells in each turn whether the timer is
 * due by now, and sends the byte to the other socket itself: from then on its turns are counted. */
enum {
    WARM_UP = 50000,   /* turns after which the worker has found out how long they are */
    ROUNDS = 50,
    MOST_TURNS = 8192, /* of about 50 ns: twice the longest stretch between two looks at the clock */
    MOST_READS = 2048, /* of a system call or two each */
};

typedef struct busy {
    weft_runtime runtime;
    long turns;
    bool ends;
    atomic_long ended;
    /* the timer's */
    weft_timer timer;
    long timer_rounds, timer_due, timer_worst; /* due: the turn at which it was due; 0: not yet */
    /* the other socket's */
    weft_io io;
    weft_descriptor descriptor;
    int other_end;
    char byte;
    long socket_rounds, socket_due, socket_worst;
} busy;

static void timer_fires(weft_op *op);
static void other_received(weft_op *op);

static void start_timer(busy *self)
{
    self->timer_due = 0;
    self->timer.op = (weft_op){.run = timer_fires, .context = self};
    if (weft_schedule_after(self->runtime, &self->timer, 200000) != WEFT_OK) abort();
}

static void timer_fires(weft_op *op)
{
    busy *self = op->context;
    long late = self->timer_due == 0 ? 0 : self->turns - self->timer_due;
    if (late > self->timer_worst) self->timer_worst = late;
    if (++self->timer_rounds < ROUNDS) start_timer(self);
}

static void start_other(busy *self)
{
    memset(&self->io, 0, sizeof self->io);
    self->io.op = (weft_op){.run = other_received, .context = self};
    if (weft_recv(&self->io, self->descriptor, &self->byte, 1, 0) != WEFT_OK) abort(); /* there is nothing yet */
    self->socket_due = self->turns + 1 + 997 * (self->socket_rounds % 3);
}

static void other_received(weft_op *op)
{
    busy *self = op->context;
    if (self->io.status != WEFT_OK || self->io.count != 1) abort();
    long late = self->turns - self->socket_due;
    if (late > self->socket_worst) self->socket_worst = late;
    if (++self->socket_rounds < ROUNDS) start_other(self);
}

/* What the loop does in each turn. True when it is over. */
static bool busy_turn(busy *self)
{
    self->turns++;
    if (self->turns < WARM_UP) return false;
    if (self->turns == WARM_UP) {
        start_timer(self);
        start_other(self);
    }
    if (self->timer_due == 0 && weft_now_ns() >= self->timer.deadline_) self->timer_due = self->turns;
    if (self->turns == self->socket_due && send(self->other_end, "x", 1, 0) != 1) abort();
    return self->timer_rounds == ROUNDS && self->socket_rounds == ROUNDS;
}

static void busy_begin(busy *self)
{
    int pair[2];
    memset(self, 0, sizeof *self);
    self->runtime = start_alone();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(weft_descriptor_open(self->runtime, pair[0], &self->descriptor), WEFT_OK);
    self->other_end = pair[1];
}

static void busy_end(busy *self, const char *what, long most)
{
    wait_for(&self->ended, 1);
    assert_int_equal(weft_runtime_destroy(self->runtime), WEFT_OK);
    close(self->other_end);
    printf("%s: a timer waits for %ld turns, a socket for %ld, at most\n", what, self->timer_worst, self->socket_worst);
    assert_true(self->timer_worst <= most);
    assert_true(self->socket_worst <= most);
}

/* The newest op of all, again and again. */
typedef struct newest {
    weft_op op;
    busy *busy;
} newest;

static void queue_again(weft_op *op)
{
    newest *self = (newest *)op;
    if (busy_turn(self->busy))
        atomic_fetch_add(&self->busy->ended, 1);
    else if (weft_schedule(self->busy->runtime, op) != WEFT_OK)
        abort();
}

static void newest_op_leaves_timers_and_sockets_on_time(void **state)
{
    (void)state;
    static busy all;
    busy_begin(&all);
    newest loop = {.op = {.run = queue_again}, .busy = &all};
    assert_int_equal(weft_schedule(all.runtime, &loop.op), WEFT_OK);
    busy_end(&all, "an op that queues itself", MOST_TURNS);
}

/* A socket that has always something: what is received is sent to it again. */
typedef struct hot {
    weft_io io;
    weft_op begin;
    busy *busy;
    weft_descriptor descriptor;
    int other_end;
    char byte;
} hot;

static void hot_received(weft_op *op);

static void hot_loop(hot *self)
{
    for (;;) {
        if (busy_turn(self->busy)) {
            atomic_fetch_add(&self->busy->ended, 1);
            return;
        }
        if (send(self->other_end, "x", 1, 0) != 1) abort();
        memset(&self->io, 0, sizeof self->io);
        self->io.op.run = hot_received;
        int rc = weft_recv(&self->io, self->descriptor, &self->byte, 1, 0);
        if (rc == WEFT_OK) return; /* it goes on in hot_received */
        if (rc != 1) abort();
        if (self->io.status != WEFT_OK || self->io.count != 1) abort();
    }
}

static void hot_received(weft_op *op)
{
    hot *self = (hot *)op;
    if (self->io.status != WEFT_OK || self->io.count != 1) abort();
    hot_loop(self);
}

static void hot_begin(weft_op *op) { hot_loop(op->context); }

static void hot_socket_leaves_timers_and_sockets_on_time(void **state)
{
    (void)state;
    static busy all;
    busy_begin(&all);
    int pair[2];
    hot loop = {.busy = &all};
    loop.begin = (weft_op){.run = hot_begin, .context = &loop};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(weft_descriptor_open(all.runtime, pair[0], &loop.descriptor), WEFT_OK);
    loop.other_end = pair[1];
    assert_int_equal(weft_schedule(all.runtime, &loop.begin), WEFT_OK);
    busy_end(&all, "a socket that is always ready", MOST_READS);
    close(pair[1]);
}

/* A wakes B, which its own worker would run next, and computes: B starts elsewhere. Within a millisecond; or, on a machine as
 * busy as this one is now, not much later than with bare threads: one that looks, looks again, and wakes another. */
enum {
    WAKES = 31,
    COMPUTES_NS = 100000000,
    LOOKS_NS = 500000, /* until the first look, in the mean, */
    AGAIN_NS = 100000, /* and until the second */
    SOON_NS = 1000000,
};

typedef struct waked {
    weft_op op;
    int64_t at;
    atomic_long started;
} waked;

static void note_start(weft_op *op)
{
    waked *self = (waked *)op;
    self->at = weft_now_ns();
    atomic_fetch_add(&self->started, 1);
}

typedef struct waker {
    weft_op op;
    weft_runtime runtime;
    waked b;
    int64_t at;
    atomic_long ended;
} waker;

static void compute(atomic_long *until, int64_t begun)
{
    while (atomic_load(until) == 0 && weft_now_ns() - begun < COMPUTES_NS) {
    }
}

static void wake_and_compute(weft_op *op)
{
    waker *self = (waker *)op;
    self->at = weft_now_ns();
    if (weft_schedule(self->runtime, &self->b.op) != WEFT_OK) abort();
    compute(&self->b.started, self->at);
    atomic_fetch_add(&self->ended, 1);
}

typedef struct bare {
    sem_t begin, wake;
    int64_t at;
    atomic_long started;
} bare;

static void *bare_monitor(void *argument)
{
    bare *self = argument;
    for (int i = 0; i < WAKES; i++) {
        while (sem_wait(&self->begin) != 0) {
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOKS_NS}, NULL);
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
        sem_post(&self->wake);
    }
    return NULL;
}

static void *bare_worker(void *argument)
{
    bare *self = argument;
    for (int i = 0; i < WAKES; i++) {
        while (sem_wait(&self->wake) != 0) {
        }
        self->at = weft_now_ns();
        atomic_store(&self->started, 1);
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *spans, size_t count)
{
    qsort(spans, count, sizeof *spans, by_size);
    return spans[count / 2];
}

static void op_behind_a_long_one_starts_elsewhere(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2);
    bare threads = {.at = 0};
    pthread_t monitor, worker;
    assert_int_equal(sem_init(&threads.begin, 0, 0), 0);
    assert_int_equal(sem_init(&threads.wake, 0, 0), 0);
    assert_int_equal(pthread_create(&monitor, NULL, bare_monitor, &threads), 0);
    assert_int_equal(pthread_create(&worker, NULL, bare_worker, &threads), 0);
    int64_t spans[WAKES], bare_spans[WAKES];
    for (int i = 0; i < WAKES; i++) {
        sleep_ms(i % 8 == 0 ? 70 : i % 3); /* the monitor sleeps for good after 50 ms */
        waker a = {.op = {.run = wake_and_compute}, .runtime = runtime, .b = {.op = {.run = note_start}}};
        assert_int_equal(weft_schedule(runtime, &a.op), WEFT_OK);
        wait_for(&a.ended, 1);
        wait_for(&a.b.started, 1);
        spans[i] = a.b.at - a.at;

        atomic_store(&threads.started, 0);
        int64_t begun = weft_now_ns();
        sem_post(&threads.begin);
        compute(&threads.started, begun);
        wait_for(&threads.started, 1);
        bare_spans[i] = threads.at - begun;
    }
    pthread_join(monitor, NULL);
    pthread_join(worker, NULL);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    int64_t span = median(spans, WAKES), bare_span = median(bare_spans, WAKES);
    printf("an op behind a long one starts after %lld us; by bare threads %lld us\n", (long long)span / 1000,
           (long long)bare_span / 1000);
    assert_true(span <= SOON_NS || span <= 2 * bare_span);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_yielders_have_half_each),
        cmocka_unit_test(newest_op_leaves_timers_and_sockets_on_time),
        cmocka_unit_test(hot_socket_leaves_timers_and_sockets_on_time),
        cmocka_unit_test(op_behind_a_long_one_starts_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
