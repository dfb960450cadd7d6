/* SPDX-License-Identifier: MIT
 *
 * calls.h: what the files of the fuzzer of the C interface share: calls.c has the input and most steps, datagrams.c those of UDP sockets.
 */
#ifndef WEFT_TESTS_FUZZ_CALLS_H
#define WEFT_TESTS_FUZZ_CALLS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#define MUST(condition)                                                          \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                             \
        }                                                                        \
    } while (0)

/* Something that runs. Counters tell how often something was accepted, and how often it ran: equal when everything has ended. */
typedef struct item {
    union {
        weft_op op;
        weft_timer timer;
        weft_io io;
        weft_datagram datagram;
    } as;
    long accepted;
    atomic_long runs;
    int64_t deadline;
    char data[16];
    struct place *place, *to; /* of an op of datagrams; to is NULL when nobody is there */
    size_t room;
} item;

extern weft_runtime runtime;
extern bool stopped;

static inline bool idle(const item *i) { return atomic_load(&i->runs) == i->accepted; }

static inline void runs(weft_op *op) { atomic_fetch_add(&((item *)op)->runs, 1); }

static inline void wait_until_idle(const item *i)
{
    while (!idle(i)) sched_yield();
}

void datagrams_begin(void);
void datagrams(uint8_t which, uint8_t how); /* a step */
void datagrams_end(void);                   /* closes all */
bool is_datagrams(uint64_t id);             /* whether it is the handle of one of its sockets */

#endif
