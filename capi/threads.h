/* SPDX-License-Identifier: MIT
 *
 * threads.h: the threads of a runtime: its workers, and last its monitor. Those of the blocking pool are in blocking.c.
 */
#ifndef WEFT_THREADS_H
#define WEFT_THREADS_H

#include <pthread.h>

#include "lane_internal.h"

/* Makes a thread with weft's signal mask. Returns what pthread_create does. */
int lane_thread_make(pthread_t *handle, uint64_t stack_bytes, void *(*main)(void *), void *argument);

/* Starts count threads for the runtime in a slot; each calls weftgo_thread_main(slot, index). All or none: WEFT_OK, WEFT_ELIMIT or WEFT_ENOMEM. */
int lane_threads_start(uint32_t slot, uint32_t count, uint64_t stack_bytes, const char *name);

/* First thing that a thread does inside Go, which has unblocked signals that it uses itself (SIGURG; SIGCHLD and SIGPROF unless it
 * was built by cmake/weft-go.cmake): blocks them again. */
void lane_threads_enter(void);

/* Waits until they have ended. Once per start. */
void lane_threads_join(uint32_t slot);

#endif
