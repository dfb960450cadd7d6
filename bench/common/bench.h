/* SPDX-License-Identifier: MIT
 *
 * bench.h: what every benchmark program shares, C and C++: clocks, the common random numbers, percentiles, and the
 * way to give up. A program that finds a wrong result ends with status 1; it never prints a time for it.
 */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static inline int64_t bench_clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t bench_now_ns(void) { return bench_clock_ns(CLOCK_MONOTONIC); }

/* CPU time of the whole process, all threads, user and system. */
static inline int64_t bench_cpu_ns(void) { return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

static inline void bench_sleep_ns(int64_t ns) {
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (nanosleep(&t, &t) != 0) {
    }
}

#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static inline void
bench_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* The i-th of the random numbers that all peers share (splitmix64 with a fixed seed; Steele, Lea and Flood, 2014). */
static inline uint64_t bench_random(uint64_t i) {
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* How long the i-th sleeper sleeps: whole milliseconds, 1 to most. The last one sleeps longest, so that the ideal is known. */
static inline int64_t bench_sleep_of(uint64_t i, uint64_t count, uint64_t most) {
    return (int64_t)(i + 1 == count ? most : 1 + bench_random(i) % most) * 1000000;
}

/* The value of the i-th micro task: too cheap to matter, too odd to be guessed by the optimiser. */
static inline uint64_t bench_value(uint64_t i) { return (uint32_t)((uint32_t)i * 2u * 2654435761u) >> 16; }

/* Keeps one CPU busy for a while. */
static inline void bench_burn(int64_t ns) {
    int64_t end = bench_now_ns() + ns;
    while (bench_now_ns() < end) {
    }
}

static inline int bench_compare_(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline void bench_sort(int64_t *samples, size_t count) { qsort(samples, count, sizeof *samples, bench_compare_); }

/* The sample below which `share` of the sorted samples lie. */
static inline int64_t bench_percentile(const int64_t *sorted, size_t count, double share) {
    size_t i = (size_t)((double)count * share);
    return count == 0 ? 0 : sorted[i < count ? i : count - 1];
}

/* Memory that the process has in use, in bytes. */
static inline int64_t bench_resident_bytes(void) {
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%ld %ld", &pages, &resident) != 2) bench_fail("cannot read /proc/self/statm");
    fclose(f);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* Lets the process open as many descriptors as the system allows. */
static inline void bench_raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A server tells its port, and ends when whoever started it closes its standard input. */
static inline void bench_serve_until_told(int port) {
    char c;
    printf("port %d\n", port);
    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
}

#endif
