/* SPDX-License-Identifier: MIT
 *
 * weft/c/op.h: the op, the unit of work that weft queues.
 *
 * An op is memory of the caller's. Rules, for this type and for every type that begins with one:
 *  1. From the call that accepts the op (returns WEFT_OK) until its run function begins, the memory is weft's.
 *  2. run is called exactly once per accepted start, on a worker of the op's runtime. When it begins the memory is
 *     the caller's again: run may free it or start it anew.
 *  3. A call that returns an error has not touched the op; nothing will run.
 *  4. Zeroed memory is an idle op.
 *  5. run must not throw, longjmp or end its thread. An escaping C++ exception ends the program.
 */
#ifndef WEFT_C_OP_H
#define WEFT_C_OP_H

#include "error.h"

typedef struct weft_op weft_op;

/** What an op does. It gets the op itself; the caller finds its own data through context or around the op. */
typedef void (*weft_op_fn)(weft_op *op);

struct weft_op {
    weft_op_fn run;     /* caller: set before the op is started; must stay the first member */
    void *context;      /* caller: never read by weft */
    weft_op *next_;     /* weft's */
    uint64_t reserved_; /* weft's */
};

/* Handle of a runtime: runtime.h. It stands here because every start names one. */
typedef struct weft_runtime {
    uint64_t id; /* 0 is no runtime */
} weft_runtime;

#ifdef __cplusplus
extern "C" {
#endif

/** Queues an op: on the calling worker's own deque if the thread is a worker of this runtime, else by injection.
 *  Params:   runtime  where to run
 *            op       not NULL; op->run not NULL; not queued already (not checked)
 *  Returns:  WEFT_OK; WEFT_EINVAL (NULL op or run); WEFT_EBADHANDLE; WEFT_ESTOPPED; WEFT_EFORKED.
 *  Owns:     the op is weft's from WEFT_OK until run begins.
 *  Threads:  any; never blocks, never calls back.
 *  Cancel:   an accepted op always runs, also when the runtime is stopped meanwhile.
 *  Since:    0.1 */
WEFT_API int weft_schedule(weft_runtime runtime, weft_op *op) WEFT_NOEXCEPT;

/** Queues many ops with one handover, to be started in the order of the array: the cheap way to submit.
 *  Params:   runtime  where to run
 *            ops      array of count pointers to ops, each as weft_schedule wants it; the array itself is only read
 *            count    0 is allowed and does nothing
 *  Returns:  as weft_schedule; on an error none of the ops is queued.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_schedule_batch(weft_runtime runtime, weft_op *const *ops, uint64_t count) WEFT_NOEXCEPT;

/** Queues an op behind everything that is runnable on the calling worker. From a thread that is no worker of this
 *  runtime it is weft_schedule.
 *  Params, Returns, Owns, Threads, Cancel:  as weft_schedule.
 *  Since:    0.1 */
WEFT_API int weft_yield(weft_runtime runtime, weft_op *op) WEFT_NOEXCEPT;

/** For language layers: queues anything whose first word is a function that is to be called with the thing's own
 *  address (an op is one; a C++ coroutine frame is another) on the calling worker's own deque.
 *  Params:   runtime   where to run
 *            runnable  not NULL
 *            behind    0: as weft_schedule; 1: as weft_yield
 *  Returns:  WEFT_OK; WEFT_ENOTWORKER (nothing queued; use weft_schedule with an op); WEFT_ESTOPPED.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_schedule_local(weft_runtime runtime, void *runnable, int behind) WEFT_NOEXCEPT;

/** For language layers: hands over an op that continues work which weft has already accepted (an awaiter that
 *  is released, a joined child). Unlike weft_schedule it is accepted as long as any worker still runs.
 *  Params:   runtime  where to run
 *            op       as weft_schedule
 *  Returns:  WEFT_OK; WEFT_EBADHANDLE or WEFT_ESTOPPED: no worker is left, and the caller should run the op itself.
 *  Owns, Threads:  as weft_schedule.
 *  Since:    0.1 */
WEFT_API int weft_resume(weft_runtime runtime, weft_op *op) WEFT_NOEXCEPT;

/** For language layers: weft_resume for a runnable, on the calling worker's own deque.
 *  Returns:  WEFT_OK; WEFT_ENOTWORKER (nothing queued).
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_resume_local(weft_runtime runtime, void *runnable) WEFT_NOEXCEPT;

/** For language layers: takes back what weft_resume_local or weft_schedule_local queued, if it is still the newest on
 *  the calling worker's own deque: a parent that forked children needs no handover for those that nobody stole.
 *  Params:   runtime   where it was queued
 *            runnable  what was queued; only its address is used
 *  Returns:  1: it is the caller's again, counts as an op that has begun, and the caller runs it now, as a part of its own op;
 *            0: it is, or was, somebody else's, or weft wants to choose the next op itself, so that the others get their turn.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_take_local(weft_runtime runtime, const void *runnable) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
