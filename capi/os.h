/* SPDX-License-Identifier: MIT
 *
 * os.h: what the lane and its neighbours need of the operating system. os_linux.c and os_windows.c keep it; what they share is in os.c. Each call
 * leaves the caller's errno, and on Windows its last error, as they are: ops may look at them.
 */
#ifndef WEFT_OS_H
#define WEFT_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* lane_mutex, lane_condition, lane_thread, lane_thread_result; LANE_LOCAL and LANE_LOCAL_IS, which declare and define a word that each
 * thread has for itself, 0 at first; LANE_CPU_LAG_NS, by which lane_thread_cpu may be behind. */
#if defined(_WIN32)
#include "os_windows.h"
#else
#include "os_linux.h"
#endif

/* Time and waiting. */
int64_t lane_now(void); /* monotonic ns */
void lane_barrier(void);
void lane_barrier_of_all(void); /* where lane_asymmetric says that there is one */
void lane_pause(uint32_t spins);
void lane_yield(void);
void lane_nap(int64_t ns); /* about so long, below 1 s */
void lane_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns); /* INT64_MAX: no deadline */
void lane_futex_wake(_Atomic uint32_t *word);
void lane_sleep_sharply(void); /* the calling thread's sleeps end in time, at the cost of wakes */

static inline void lane_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Locks, for what is on no hot path. */
void lane_mutex_begin(lane_mutex *mutex);
void lane_mutex_end(lane_mutex *mutex);
void lane_mutex_lock(lane_mutex *mutex);
void lane_mutex_unlock(lane_mutex *mutex);
void lane_condition_begin(lane_condition *condition);
void lane_condition_end(lane_condition *condition);
void lane_condition_wait(lane_condition *condition, lane_mutex *mutex, int64_t deadline_ns); /* INT64_MAX: no deadline */
void lane_condition_wake_one(lane_condition *condition);
void lane_condition_wake_all(lane_condition *condition);

/* Threads. */
bool lane_thread_make(lane_thread *thread, uint64_t stack_bytes, lane_thread_result (*main)(void *), void *argument); /* with weft's signal mask */
void lane_thread_join(lane_thread thread);
void lane_thread_detach(lane_thread thread);
void lane_thread_name(const char *name);     /* of the calling thread; at most 15 characters */
uint32_t lane_thread_number(void);           /* the system's, of the calling thread */
size_t lane_thread_stack_left(void);         /* bytes of the calling thread's stack below the call; 0: not known */
int64_t lane_thread_cpu(uint32_t number);    /* ns that a thread of this process has computed; 0 when there is none */
bool lane_thread_sleeps(uint32_t number);    /* whether it waits in the system, and not for a CPU */

/* Memory that starts at a multiple of 128, any memory, and whole zeroed pages. NULL when there is none. */
void *lane_allocate(size_t bytes);
void *lane_allocate_words(size_t count);
void lane_free(void *memory);
void *lane_map(size_t bytes);
void lane_map_clear(void *memory, size_t bytes); /* zeroes it; others may be reading */

/* Which piece of the program a function is in, and what it is called there if that is known. */
typedef struct lane_place {
    const char *name;   /* or NULL */
    const char *module; /* or NULL */
    uint64_t offset;    /* in the module */
    char space[512];    /* where the strings may stand */
} lane_place;
void lane_locate(uint64_t function, lane_place *place);

#endif
