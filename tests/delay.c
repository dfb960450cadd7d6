/* SPDX-License-Identifier: MIT
 *
 * delay.c: what WEFT_TEST_DELAY does in a build with -DWEFT_TEST_DELAYS=ON, when the variable WEFT_TEST_DELAYS is 1: it waits a
 * random time, now and then. Each thread has a few points of its own choice at which it waits often, and takes others after a
 * while, so that the same gap is held open long enough for others to run into it. Spinning meets threads on other CPUs,
 * yielding and sleeping those on the same. WEFT_SEED sets the choices; without it they are drawn, and printed. A test that wants one
 * certain meeting sets a function that is called at every point.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void weft_test_delay(const char *point);
void weft_test_set_at_point(void (*at_point)(const char *point)); /* NULL: none */

enum {
    CHOICES = 16,        /* one point in so many is waited at often */
    CHOICE_CALLS = 512,  /* calls until the next choice */
    OFTEN = 8,           /* one call in so many, at a chosen point */
    SELDOM = 128,        /* and elsewhere */
    SPINS_MOST = 4000,   /* some microseconds: longer than any window between two steps */
    SLEEP_MOST_NS = 200000,
};

static uint64_t seed;           /* immutable after load; 0: no delays */
static _Atomic uint64_t threads; /* atomic: a number for each thread */

__attribute__((constructor)) static void load(void)
{
    const char *on = getenv("WEFT_TEST_DELAYS"), *given = getenv("WEFT_SEED");
    if (on == NULL || strcmp(on, "1") != 0) return;
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    if (seed == 0) seed = 1;
    fprintf(stderr, "delays: seed %llu\n", (unsigned long long)seed);
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13; /* xorshift64, Marsaglia 2003 */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint32_t hash(const char *point)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *point != 0; point++) h = (h ^ (unsigned char)*point) * 16777619u;
    return h ^ h >> 16;
}

static void wait_here(uint64_t random)
{
    int saved = errno;
    uint64_t how = random >> 32 & 15;
    if (how < 8) {
        for (uint64_t n = (random >> 36) % SPINS_MOST; n > 0; n--) __asm__ volatile("");
    } else if (how < 14) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = (long)((random >> 36) % SLEEP_MOST_NS)}, NULL);
    }
    errno = saved;
}

static void (*_Atomic weft_test_at_point)(const char *point);

void weft_test_set_at_point(void (*at_point)(const char *point)) { atomic_store(&weft_test_at_point, at_point); }

void weft_test_delay(const char *point)
{
    void (*at_point)(const char *) = atomic_load_explicit(&weft_test_at_point, memory_order_acquire);
    if (at_point != NULL) at_point(point);
    static _Thread_local uint64_t state;
    static _Thread_local uint32_t calls, choice;
    if (seed == 0) return;
    if (state == 0) state = seed + (atomic_fetch_add(&threads, 1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    if (state == 0) state = 1;
    if (calls-- == 0) {
        choice = (uint32_t)(next(&state) >> 20) % CHOICES;
        calls = CHOICE_CALLS;
    }
    uint64_t random = next(&state);
    if (random % (hash(point) % CHOICES == choice ? OFTEN : SELDOM) == 0) wait_here(random);
}
