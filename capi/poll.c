/* SPDX-License-Identifier: MIT
 *
 * poll.c: what poll_linux.c and poll_windows.c do alike once they have taken what there is.
 */
#include "io.h"
#include "lane_internal.h"

/* A wake is for the keeper, who sleeps in the poller (lane_notify). He may have come after a busy worker looked for one (lane_check) and took his
 * turn, and would sleep on without the wake that was taken there, while nobody wakes another: so it is handed on. It was written after he was
 * announced, and the event has brought that along. A keeper who comes later, or was woken by something else, is woken once too often. Mutant
 * WAKE_SWALLOWED. */
void lane_polled(lane_runtime *runtime, lane_worker *worker, uint32_t count, bool woken) {
    if (woken) {
        uint32_t keeper = atomic_load_explicit(&runtime->keeper, memory_order_seq_cst);
        if (keeper != 0 && keeper != worker->index + 1) lane_poll_wake(runtime);
    }
    if (count != 0) {
        lane_count(&worker->io_events, count);
        /* So that nobody polls again while the ops which come out of this run. */
        atomic_store_explicit(&runtime->polled_at, lane_now(), memory_order_relaxed);
    }
}
