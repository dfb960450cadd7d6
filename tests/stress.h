/* SPDX-License-Identifier: MIT
 *
 * stress.h: what the stress tests share, in C and in C++: the seed, which is printed and which WEFT_SEED repeats; the number of
 * rounds, which WEFT_TEST_SCALE multiplies (2000 gives 24 million single submits and a million stops); the three crowds in
 * which each scenario runs; a watchdog that tells the state of one that stands still, and ends the program; and, in builds with
 * delays, a monitor that stands still, too: it mends a lost wake within a millisecond, and nobody would ever notice one.
 */
#ifndef WEFT_TESTS_STRESS_H
#define WEFT_TESTS_STRESS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft.h>

static inline uint64_t stress_random(uint64_t *state)
{
    *state ^= *state << 13; /* xorshift64, Marsaglia 2003 */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint64_t stress_below(uint64_t *state, uint64_t bound) { return stress_random(state) % bound; }

/* Lets a random time pass on this CPU: up to most turns of an empty loop, about a third of a nanosecond each. */
static inline void stress_wait(uint64_t *state, uint64_t most)
{
    for (uint64_t n = stress_below(state, most); n > 0; n--) __asm__ volatile("");
}

/* For waits of one thread for another: spins a little, then gives the CPU away. */
static inline void stress_pause(uint32_t *spins)
{
    if (++*spins > 200) sched_yield();
}

static inline uint64_t stress_seed(void)
{
    const char *given = getenv("WEFT_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    return seed == 0 ? 1 : seed;
}

static inline long stress_scale(void)
{
    const char *times = getenv("WEFT_TEST_SCALE");
    return times != NULL && atol(times) > 0 ? atol(times) : 1;
}

/* What the watchdog looks at. Whoever makes progress says so. Atomic by the compiler's builtins, which C and C++ share:
 * statistics that order nothing. */
static struct {
    long progress;
    uint64_t runtime; /* handle of the runtime at work */
    int ends;
    int unwatched; /* the monitors stand still */
    long ended;    /* runtimes whose monitors were told to end */
    uint64_t seed;
    const char *scenario;
} stress;

static inline void stress_progress(void) { __atomic_fetch_add(&stress.progress, 1, __ATOMIC_RELAXED); }

static inline void stress_watch_runtime(weft_runtime runtime) { __atomic_store_n(&stress.runtime, runtime.id, __ATOMIC_RELAXED); }

static inline void stress_print(const char *who, const weft_stats *s)
{
    fprintf(stderr,
            "  %s: ops %llu injected %llu parks %llu wakes %llu steals %llu parked %llu of %llu timers %llu/%llu/%llu io %llu/%llu/%llu\n",
            who, (unsigned long long)s->ops_run, (unsigned long long)s->injected, (unsigned long long)s->parks,
            (unsigned long long)s->wakes, (unsigned long long)s->steals, (unsigned long long)s->parked,
            (unsigned long long)s->workers, (unsigned long long)s->timers_started, (unsigned long long)s->timers_fired,
            (unsigned long long)s->timers_cancelled, (unsigned long long)s->io_started, (unsigned long long)s->io_events,
            (unsigned long long)s->io_immediate);
}

static inline void *stress_watchdog(void *unused)
{
    long last = -1;
    for (int still = 0; !__atomic_load_n(&stress.ends, __ATOMIC_RELAXED);) {
        struct timespec tenth = {0, 100000000};
        nanosleep(&tenth, NULL);
        long now = __atomic_load_n(&stress.progress, __ATOMIC_RELAXED);
        still = now == last ? still + 1 : 0;
        last = now;
        if (still < 300) continue;
        fprintf(stderr, "%s stands still after %ld steps; seed %llu\n", stress.scenario, now, (unsigned long long)stress.seed);
        weft_runtime runtime = {__atomic_load_n(&stress.runtime, __ATOMIC_RELAXED)};
        weft_stats stats;
        stats.size = sizeof stats;
        if (weft_runtime_stats(runtime, &stats) == WEFT_OK) stress_print("all", &stats);
        for (uint32_t i = 0; weft_worker_stats(runtime, i, &stats) == WEFT_OK; i++) {
            char who[16];
            snprintf(who, sizeof who, "%u", i);
            stress_print(who, &stats);
        }
        abort();
    }
    return unused;
}

#if defined(WEFT_TEST_DELAYS)
#if defined(__cplusplus)
extern "C"
#endif
void weft_test_set_at_point(void (*at_point)(const char *point));

/* Called at the delay points (capi/delay.h): keeps monitors from what they would find, but not from their end. One that was told
 * to end before it looked sees that; one that was told later sees the count, which comes after. */
static inline void stress_at_point(const char *point)
{
    static __thread long ended;
    if (strcmp(point, "lane_watch_looks") == 0) ended = __atomic_load_n(&stress.ended, __ATOMIC_SEQ_CST);
    if (strcmp(point, "lane_watch_to_end") == 0) __atomic_fetch_add(&stress.ended, 1, __ATOMIC_SEQ_CST);
    if (strcmp(point, "lane_watch_looked") != 0) return;
    while (__atomic_load_n(&stress.unwatched, __ATOMIC_SEQ_CST) && __atomic_load_n(&stress.ended, __ATOMIC_SEQ_CST) == ended) {
        struct timespec moment = {0, 200000};
        nanosleep(&moment, NULL);
    }
}

/* Scenarios whose ops hold workers up begin with stress_unwatch(0): they need the monitor. */
static inline void stress_unwatch(int unwatched)
{
    weft_test_set_at_point(stress_at_point);
    __atomic_store_n(&stress.unwatched, unwatched, __ATOMIC_SEQ_CST);
}
#else
static inline void stress_unwatch(int unwatched) { (void)unwatched; }
#endif

#if !defined(STRESS_FAULTS)
static inline void stress_strike(int one_in, uint64_t seed) { (void)one_in, (void)seed; }
#endif

typedef void (*stress_scenario)(uint32_t workers, uint64_t *random);

/* Runs a scenario on one CPU, on two, and with four times as many workers as CPUs. Worker threads inherit the set. Coins of the
 * seed decide whether the monitor stands still, and whether the system refuses now and then. Returns 0, or what went wrong. */
static inline int stress_in_all_crowds(const char *name, stress_scenario scenario)
{
    cpu_set_t all, one, two;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return 1;
    CPU_ZERO(&one);
    CPU_ZERO(&two);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        if (CPU_COUNT(&one) == 0) CPU_SET(cpu, &one);
        CPU_SET(cpu, &two);
    }
    const struct {
        const cpu_set_t *set;
        uint32_t workers;
    } crowds[] = {{&one, 2}, {&two, 2}, {&two, 4 * (uint32_t)CPU_COUNT(&two)}};

    stress.scenario = name;
    stress.seed = stress_seed();
    stress.ends = 0;
    printf("%s: seed %llu, scale %ld\n", name, (unsigned long long)stress.seed, stress_scale());
    fflush(stdout);
    pthread_t watchdog;
    if (pthread_create(&watchdog, NULL, stress_watchdog, NULL) != 0) return 1;
    int bad = 0;
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds && bad == 0; i++) {
        uint64_t random = stress.seed + i * UINT64_C(0x9e3779b97f4a7c15);
        if (random == 0) random = 1;
        bad = sched_setaffinity(0, sizeof(cpu_set_t), crowds[i].set) != 0;
        stress_unwatch(stress_below(&random, 2) == 0);
        stress_strike(stress_below(&random, 2) == 0 ? 30 : 0, random);
        if (bad == 0) scenario(crowds[i].workers, &random);
        stress_strike(0, random);
        stress_unwatch(0);
        bad |= sched_setaffinity(0, sizeof all, &all) != 0;
    }
    __atomic_store_n(&stress.ends, 1, __ATOMIC_RELAXED);
    pthread_join(watchdog, NULL);
    return bad;
}

#endif
