/* SPDX-License-Identifier: MIT
 *
 * threads.h: the threads of a runtime: its workers, those that replace held-up ones, and its monitor.
 * Those of the blocking pool are in blocking.c.
 */
#ifndef WEFT_THREADS_H
#define WEFT_THREADS_H

#include <pthread.h>

#include "lane_internal.h"

/* Makes a thread with weft's signal mask. Returns what pthread_create does. */
int lane_thread_make(pthread_t *handle, uint64_t stack_bytes, void *(*main)(void *), void *argument);

enum { LANE_MONITOR_THREAD = -1 }; /* the index that weftgo_thread_main gets for the monitor */

/* Starts a thread for each of so many workers of the runtime in a slot, and one for the monitor; each calls weftgo_thread_main(slot, index).
 * All or none: WEFT_OK, WEFT_ELIMIT or WEFT_ENOMEM. */
int lane_threads_start(uint32_t slot, uint32_t workers, const weft_runtime_config *config);

/* Starts one for a replacement, whose last thread has ended or been detached. Monitor only. WEFT_OK or WEFT_ELIMIT. */
int lane_threads_add(uint32_t slot, uint32_t index);

/* First thing that a thread does inside Go, which has unblocked signals that it uses itself (SIGURG; SIGCHLD and SIGPROF unless it
 * was built by cmake/weft-go.cmake): blocks them again. */
void lane_threads_enter(void);

/* Keeps the thread of a cached worker; core's Lane.Rest. True: the worker runs again. False: the thread is to end. */
bool lane_rest(lane_worker *worker);

/* Waits until all have ended. Once per start. */
void lane_threads_join(uint32_t slot);

#endif
