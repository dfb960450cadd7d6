/* SPDX-License-Identifier: MIT
 *
 * crossing.h: what a thread puts aside while it is in Go, so that neither side meets what belongs to the other.
 *
 * Signals   (not on Windows, which has none) Go code runs on small stacks of its own, where a host's handler that does not ask for SA_ONSTACK would overflow; and Go changes the
 *           mask of each thread that enters it for the first time. So a thread of the host's blocks every signal but the synchronous ones
 *           for the crossing, and has its own mask back afterwards; where it waits it has it back for the wait. Workers block them for life.
 * Floating  Go computes with the default environment: rounded to nearest, no trap, denormals kept. Ops and the host may have
 *           any, and find theirs as they left it, the exception flags too.
 * errno     is the caller's; on Windows the last error, too.
 */
#ifndef WEFT_CROSSING_H
#define WEFT_CROSSING_H

#include "lane_internal.h"

#if !defined(_WIN32)
#include <signal.h>
#endif

#pragma GCC visibility push(hidden)

typedef struct lane_crossing {
#if defined(_WIN32)
    unsigned long last_error;
#else
    struct lane_crossing *outer; /* of this thread: an op that Go runs may cross, too */
    sigset_t signals;            /* the mask outside; not set on workers */
#endif
    uint64_t floating;
    int error;
} lane_crossing;

void lane_cross(lane_crossing *crossing);          /* before a call of a Go function; any thread */
void lane_crossed(const lane_crossing *crossing);  /* after it */
void lane_cross_for_life(void);                    /* instead, for a thread of weft's own that stays in Go: before it enters */

/* First thing that a thread does inside Go, which has unblocked signals that it uses itself (SIGURG; SIGCHLD and SIGPROF unless it
 * was built by cmake/weft-go.cmake): blocks them again. */
void lane_threads_enter(void);

/* Around a wait in C by a thread that may have crossed: signals come through. */
void lane_wait_begins(void);
void lane_wait_ends(void);

#if !defined(_WIN32)
/* Blocks every signal but those that a fault raises; before may be NULL. */
void lane_block_signals(sigset_t *before);
#endif

/* The floating-point environment of the ops of a worker while it is in Go. */
LANE_LOCAL(uint64_t, lane_ops_floating);

#if defined(__x86_64__)
#define LANE_FLOATING_DEFAULT UINT64_C(0x1f80)
static inline uint64_t lane_floating(void) {
    uint32_t control;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    return control;
}
static inline void lane_set_floating(uint64_t floating) {
    uint32_t control = (uint32_t)floating;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
}
#elif defined(__aarch64__)
#define LANE_FLOATING_DEFAULT UINT64_C(0)
static inline uint64_t lane_floating(void) {
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(status));
    return control | status << 32;
}
static inline void lane_set_floating(uint64_t floating) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(floating & UINT32_MAX), "r"(floating >> 32));
}
#else
#error "the floating-point environment of this processor is not known"
#endif

/* Sets the default environment and returns the one that was there. */
static inline uint64_t lane_take_floating(void) {
    uint64_t floating = lane_floating();
    lane_set_floating(LANE_FLOATING_DEFAULT);
    return floating;
}

#pragma GCC visibility pop

#endif
