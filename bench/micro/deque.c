/* SPDX-License-Identifier: MIT
 *
 * deque.c: the trial behind docs/decisions/queue.md: what the owner's path costs in four ways of guarding a deque, one thread, ns per operation.
 * Thieves are left out: they are rare, and whoever pays for the barrier pays there.
 *
 *     cc -O2 -pthread -o deque bench/micro/deque.c && ./deque
 */
#define _GNU_SOURCE
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OPERATIONS 20000000L
#define relaxed memory_order_relaxed

typedef struct op {
    void (*run)(struct op *);
    long left;
} op;

static struct {
    _Alignas(128) _Atomic int64_t top;
    _Alignas(128) _Atomic int64_t bottom;
    int64_t head, tail; /* of those who yielded */
    _Alignas(128) _Atomic uint32_t turn;
    _Alignas(128) _Atomic uint32_t thief;
} deque;
enum { SIZE = 4096 };
static op *_Atomic ring[SIZE];
static op *yielded[SIZE];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void compiler_barrier(void) { atomic_signal_fence(memory_order_seq_cst); }

/* Chase and Lev; THE differs in that the last element needs no compare-and-swap: thieves claim before they look. */
enum kind { FENCE, ASYMMETRIC, THE };

static __attribute__((noinline)) void push(op *o) {
    int64_t bottom = atomic_load_explicit(&deque.bottom, relaxed);
    if (bottom - atomic_load_explicit(&deque.top, memory_order_acquire) >= SIZE) abort();
    atomic_store_explicit(&ring[bottom % SIZE], o, relaxed);
    atomic_store_explicit(&deque.bottom, bottom + 1, memory_order_release);
}

static inline op *pop(enum kind kind) {
    int64_t bottom = atomic_load_explicit(&deque.bottom, relaxed) - 1;
    atomic_store_explicit(&deque.bottom, bottom, relaxed);
    if (kind == FENCE)
        atomic_thread_fence(memory_order_seq_cst);
    else
        compiler_barrier();
    int64_t top = atomic_load_explicit(&deque.top, relaxed);
    if (top > bottom) {
        atomic_store_explicit(&deque.bottom, bottom + 1, relaxed);
        return NULL;
    }
    op *o = atomic_load_explicit(&ring[bottom % SIZE], relaxed);
    if (kind != THE && top == bottom) {
        if (!atomic_compare_exchange_strong(&deque.top, &top, top + 1)) o = NULL;
        atomic_store_explicit(&deque.bottom, bottom + 1, relaxed);
    }
    return o;
}

static __attribute__((noinline)) void run_fence(void) {
    for (op *o; (o = pop(FENCE)) != NULL;)
        o->run(o);
}
static __attribute__((noinline)) void run_asymmetric(void) {
    for (op *o; (o = pop(ASYMMETRIC)) != NULL;)
        o->run(o);
}
static __attribute__((noinline)) void run_the(void) {
    for (op *o; (o = pop(THE)) != NULL;)
        o->run(o);
}
static void hop(op *o) {
    if (--o->left) push(o);
}

/* The biased lock. */
static inline void enter(void) {
    atomic_store_explicit(&deque.turn, 1, relaxed);
    compiler_barrier();
    while (__builtin_expect(atomic_load_explicit(&deque.thief, memory_order_acquire) != 0, 0)) {
    }
}
static inline void leave(void) { atomic_store_explicit(&deque.turn, 0, memory_order_release); }

static __attribute__((noinline)) void push_biased(op *o) {
    enter();
    int64_t bottom = atomic_load_explicit(&deque.bottom, relaxed);
    if (bottom - atomic_load_explicit(&deque.top, relaxed) >= SIZE) abort();
    atomic_store_explicit(&ring[bottom % SIZE], o, relaxed);
    atomic_store_explicit(&deque.bottom, bottom + 1, relaxed);
    leave();
}
static __attribute__((noinline)) void yield_biased(op *o) {
    enter();
    yielded[deque.tail++ % SIZE] = o;
    leave();
}
static __attribute__((noinline)) void run_biased(void) {
    for (;;) {
        op *o;
        enter();
        int64_t bottom = atomic_load_explicit(&deque.bottom, relaxed);
        if (bottom != atomic_load_explicit(&deque.top, relaxed)) {
            o = atomic_load_explicit(&ring[--bottom % SIZE], relaxed);
            atomic_store_explicit(&deque.bottom, bottom, relaxed);
        } else if (deque.head != deque.tail) {
            o = yielded[deque.head++ % SIZE];
        } else {
            leave();
            return;
        }
        leave();
        o->run(o);
    }
}
static void hop_biased(op *o) {
    if (--o->left) push_biased(o);
}
static void yield_hop(op *o) {
    if (--o->left) yield_biased(o);
}

static void count_down(op *o) { o->left--; }
static __attribute__((noinline)) void lone(op **ops) {
    for (long i = 0; i < OPERATIONS; i++)
        ops[i & 1]->run(ops[i & 1]);
}

static void report(const char *name, double since) { printf("%-34s %6.2f ns\n", name, (now() - since) / OPERATIONS); }

static _Atomic int stop;
static void *spin(void *unused) {
    while (!stop) {
    }
    return unused;
}

int main(void) {
    for (int round = 0; round < 5; round++) {
        op two[2] = {{count_down, 0}, {count_down, 0}};
        double since = now();
        lone((op *[]){&two[0], &two[1]});
        report("bare loop", since);
        static const struct {
            const char *name;
            void (*run)(void);
        } kinds[] = {
            {"Chase-Lev, fence: chain", run_fence}, {"Chase-Lev, asymmetric: chain", run_asymmetric}, {"THE: chain", run_the}};
        for (int kind = 0; kind < 3; kind++) {
            op one = {hop, OPERATIONS};
            since = now();
            push(&one);
            kinds[kind].run();
            report(kinds[kind].name, since);
        }
        op one = {hop_biased, OPERATIONS};
        since = now();
        push_biased(&one);
        run_biased();
        report("biased lock: chain", since);
        two[0] = two[1] = (op){yield_hop, OPERATIONS / 2};
        since = now();
        yield_biased(&two[0]);
        yield_biased(&two[1]);
        run_biased();
        report("biased lock: two yielders", since);
    }
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    for (int running = 0; running < 2; running++) {
        pthread_t thread;
        if (running) pthread_create(&thread, NULL, spin, NULL);
        double since = now();
        for (int i = 0; i < 10000; i++)
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        printf("membarrier, other thread %-9s %6.0f ns\n", running ? "running" : "absent", (now() - since) / 10000);
        if (running) {
            stop = 1;
            pthread_join(thread, NULL);
        }
    }
    return 0;
}
