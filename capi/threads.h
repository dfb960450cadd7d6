/* SPDX-License-Identifier: MIT
 *
 * threads.h: the threads of a runtime: its workers, those that replace held-up ones, and its monitor.
 * Those of the blocking pool are in blocking.c.
 */
#ifndef WEFT_THREADS_H
#define WEFT_THREADS_H

#include "lane_internal.h"

enum { LANE_MONITOR_THREAD = -1 }; /* the index that weftgo_thread_main gets for the monitor */

/* Starts a thread for each of so many workers of the runtime in a slot, and one for the monitor; each calls weftgo_thread_main(slot, index).
 * All or none: WEFT_OK, WEFT_ELIMIT or WEFT_ENOMEM. */
int lane_threads_start(uint32_t slot, uint32_t workers, const weft_runtime_config *config);

/* Starts one for a replacement, whose last thread has ended or been detached. Monitor only. WEFT_OK or WEFT_ELIMIT. */
int lane_threads_add(uint32_t slot, uint32_t index);

/* Keeps the thread of a cached worker; core's Lane.Rest. True: the worker runs again. False: the thread is to end. */
bool lane_rest(lane_worker *worker);

/* Waits until all have ended. Once per start. */
void lane_threads_join(uint32_t slot);

#endif
