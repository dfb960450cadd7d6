/* SPDX-License-Identifier: MIT
 *
 * weft/c/timer.h: an op that runs at a point in time.
 *
 * Time is the monotonic clock in nanoseconds, as weft_now_ns tells it. deadline_ns is a point, timeout_ns a span. A
 * timer never runs early. It may run late by one tick of the wheel (2^14 ns, 16 us) plus the wake of a thread; one that
 * is due within 50 us, when all workers sleep, on Linux by those 50 us.
 * A deadline that has passed, 0 and negative ones included, is due at once; WEFT_NEVER is never due and ends by cancel
 * or stop alone. A timeout that would overflow the clock means WEFT_NEVER.
 */
#ifndef WEFT_C_TIMER_H
#define WEFT_C_TIMER_H

#include "op.h"

#define WEFT_NEVER INT64_MAX

typedef struct weft_timer {
    weft_op op;          /* caller: run and context */
    int32_t status;      /* result: WEFT_OK when it fired, WEFT_ECANCELED when cancelled; valid once run begins */
    uint32_t state_;     /* weft's */
    int64_t deadline_;   /* weft's */
    void *link_[2];      /* weft's */
    uint32_t slot_;      /* weft's */
    uint32_t reserved_;  /* weft's */
    uint64_t worker_;    /* weft's */
} weft_timer;

#ifdef __cplusplus
extern "C" {
#endif

/** Reads the clock of all deadlines.
 *  Returns:  nanoseconds of the monotonic clock, never negative.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int64_t weft_now_ns(void) WEFT_NOEXCEPT;

/** Starts a timer: timer->op.run is called on a worker when the deadline has come or the timer is cancelled.
 *  Params:   runtime      whose worker runs it
 *            timer        not NULL; timer->op.run not NULL; idle (zeroed, or its run has begun)
 *            deadline_ns  point in time; see the head of this file
 *  Returns:  WEFT_OK; WEFT_EINVAL; WEFT_EBADHANDLE; WEFT_EBUSY (pending; one that has fired, and whose run has not begun, is not
 *            recognised); WEFT_ESTOPPED; WEFT_EFORKED.
 *  Owns:     the timer is weft's from WEFT_OK until run begins. To give up its memory earlier: weft_timer_cancel.
 *  Threads:  any; never blocks, never calls back.
 *  Cancel:   weft_timer_cancel, and stop, complete it with WEFT_ECANCELED.
 *  Since:    0.1 */
WEFT_API int weft_schedule_at(weft_runtime runtime, weft_timer *timer, int64_t deadline_ns) WEFT_NOEXCEPT;

/** weft_schedule_at with a deadline timeout_ns from now; 0 and negative spans are due at once.
 *  Since:    0.1 */
WEFT_API int weft_schedule_after(weft_runtime runtime, weft_timer *timer, int64_t timeout_ns) WEFT_NOEXCEPT;

/** Cancels a pending timer. If it was still pending its run is queued with status WEFT_ECANCELED; else it has fired,
 *  and its run was or will be called with WEFT_OK. Either way run is called exactly once.
 *  Params:   timer  not NULL; may be idle
 *  Returns:  WEFT_OK (it was pending and is cancelled); 1 (it was not pending); WEFT_EINVAL.
 *  Threads:  any, as long as the caller knows that the memory is still there, also while the runtime ends; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_timer_cancel(weft_timer *timer) WEFT_NOEXCEPT;

/** Unlinks a pending timer without running it: for the owner who destroys it.
 *  Params:   timer  not NULL; may be idle
 *  Returns:  WEFT_OK (it was pending; run will not be called and the memory is the caller's);
 *            1 (it was not pending: run was or will be called).
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_timer_remove(weft_timer *timer) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
