/* SPDX-License-Identifier: MIT
 *
 * end.h: what keeps a runtime from its end. core/stop.go (drained) waits until the pending count is 0, which is final: it is only reached when Stop,
 * too, has let go. Whoever is counted queues his op first and lets go second; the workers look at the count first and at the queue second. seq_cst,
 * both: so an op of somebody who has let go is seen in the queue. Model: docs/models/stop.pml.
 */
#ifndef WEFT_END_H
#define WEFT_END_H

#include "lane_internal.h"

/* Puts the end off; false when it has come. */
static inline bool lane_hold_end(lane_runtime *runtime) {
    uint64_t pending = atomic_load_explicit(&runtime->pending, memory_order_relaxed);
    do {
        if (pending == 0) return false;
    } while (!atomic_compare_exchange_weak_explicit(&runtime->pending, &pending, pending + 1, memory_order_seq_cst, memory_order_relaxed));
    return true;
}

/* After the op was handed back with lane_finish. */
static inline void lane_release_end(lane_runtime *runtime) { atomic_fetch_sub_explicit(&runtime->pending, 1, memory_order_seq_cst); }

/* A call that has an op, or a descriptor's slot, in its hands for a while, on any thread. While a worker of the runtime is in it, the runtime does not end; for
 * the others the end is put off. Without that a runtime could end, and be destroyed, while the op that they have taken out has not run. Mutant CANCEL_NOT_COUNTED. */
typedef enum lane_visit {
    LANE_VISIT_LATE, /* the end has come: nothing waits there any more, and nothing can be started */
    LANE_VISIT_HOME,
    LANE_VISIT_COUNTED,
} lane_visit;

static inline lane_visit lane_visit_begin(lane_runtime *runtime) {
    const lane_worker *self = lane_self;
    if (LANE_LIKELY(self != NULL && lane_runtime_at(self) == runtime)) return LANE_VISIT_HOME;
    return lane_hold_end(runtime) ? LANE_VISIT_COUNTED : LANE_VISIT_LATE;
}

static inline void lane_visit_end(lane_runtime *runtime, lane_visit visit) {
    if (LANE_UNLIKELY(visit == LANE_VISIT_COUNTED)) lane_release_end(runtime);
}

#endif
