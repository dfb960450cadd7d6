/* SPDX-License-Identifier: MIT
 *
 * blocking.h: what the pool of blocking calls offers the rest of the library. One pool per slot of the runtime table.
 */
#ifndef WEFT_BLOCKING_INTERNAL_H
#define WEFT_BLOCKING_INTERNAL_H

#include "lane_internal.h"

/* The runtime whose blocking call the calling thread runs, or 0. */
LANE_LOCAL(uint64_t, blocking_self);

/* Opens the pool of a runtime that is being made: up to limit threads for each kind, named NAME-bN. */
void blocking_open(uint32_t slot, uint64_t id, uint32_t limit, uint64_t stack_bytes, const char *name);

/* Cancels what waits, and accepts nothing more. Once, when the runtime has begun to stop; any thread. */
void blocking_close(uint32_t slot);

/* Waits until the threads of a closed pool have ended. Once; on none of them. */
void blocking_join(uint32_t slot);

/* Adds what weft_stats tells of the pool. */
void blocking_read_stats(uint32_t slot, weft_stats *stats);

/* Whether an op could be submitted. */
bool blocking_is_idle(const weft_blocking *op);

/* The runtime whose stop must wait for the op, which is under way and was asked to end; else NULL. */
lane_runtime *blocking_asked(const weft_blocking *op);

/* An op that may not need a thread. Its starter begins it (the results are weft_blocking_submit's, but for WEFT_ELIMIT), and may then do what op->call
 * would, on any thread, and finish it; or else hands it over to the pool, which calls op->call. It counts as running meanwhile. */
int blocking_begin(weft_runtime handle, weft_blocking *op);
/* Queues op.run, behind everything if behind and the caller is a worker of the runtime. The op is anybody's after that. */
void blocking_finish(weft_blocking *op, bool behind);
void blocking_hand_over(weft_blocking *op, uint32_t kind);

#endif
