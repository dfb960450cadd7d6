/* SPDX-License-Identifier: MIT
 *
 * steal.h: taking work from other workers.
 */
#ifndef WEFT_STEAL_H
#define WEFT_STEAL_H

#include "lane_internal.h"

#pragma GCC visibility push(hidden)

/* Owner: a worker's run loop. */
typedef struct lane_thief {
    uint32_t place;     /* of the last victim, where the next search begins */
    uint32_t waits;     /* LANE_LATER in a row */
    int64_t next_at;    /* ns before which there is no other steal */
} lane_thief;

typedef enum lane_stolen {
    LANE_NOTHING, /* nobody has a backlog */
    LANE_LOOT,    /* there is something in the worker's queue now */
    LANE_LATER,   /* somebody has a backlog, and it cannot, or should not, be taken now */
} lane_stolen;

/* Whether somebody else has a backlog. A hint. */
bool lane_backlog_elsewhere(const lane_worker *worker, const lane_runtime *runtime);

/* Takes half of the queue of the next worker that has a backlog. Owner only. */
lane_stolen lane_steal(lane_worker *worker, lane_thief *thief);

/* Takes one runnable out of whatever queue it is in; of the worker's own alone, or of all. Nobody may yield it. False also when a queue could not be entered. */
bool lane_reclaim(lane_worker *worker, const void *runnable, bool everywhere);

#pragma GCC visibility pop

#endif
