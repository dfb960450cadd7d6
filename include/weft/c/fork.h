/* SPDX-License-Identifier: MIT
 *
 * weft/c/fork.h: fork and join of plain functions, for work that computes.
 *
 *     static void right(weft_fork *fork);
 *     weft_fork fork = {.call = right};
 *     weft_fork_start(&fork);
 *     left();
 *     weft_fork_join(&fork); // right has run: here, or on a worker that had nothing to do
 *
 * A fork that nobody stole costs two operations on the worker's own deque and no handover. All of an op's forks are one op to the runtime, however
 * long they take; so an op that computes for long holds its worker up, and the others go on as after a call that blocks (stall.h).
 */
#ifndef WEFT_C_FORK_H
#define WEFT_C_FORK_H

#include "error.h"

typedef struct weft_fork weft_fork;

/** What may run elsewhere meanwhile. It gets the fork itself; the caller finds its own data around it. It must not throw, longjmp or end its thread. */
typedef void (*weft_fork_fn)(weft_fork *fork);

/* Memory of the caller's, mostly on its stack: weft's from weft_fork_start until weft_fork_join returns. */
struct weft_fork {
    weft_fork_fn run_; /* weft's; must stay the first member */
    weft_fork_fn call; /* caller: set before the start, not NULL */
    uint32_t state_;   /* weft's */
    uint32_t reserved_;
};

#ifdef __cplusplus
extern "C" {
#endif

/** Offers a function to the other workers of the runtime whose worker the calling thread is. On a thread that is no worker nothing is queued, and
 *  weft_fork_join calls it.
 *  Params:   fork  not NULL; call set
 *  Owns:     the fork is weft's until weft_fork_join has returned. Each start wants one join.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API void weft_fork_start(weft_fork *fork) WEFT_NOEXCEPT;

/** Returns once the function has run: calls it if nobody else has begun it, else waits. (In a child of fork(2) it waits for ever for what another thread had begun.) A worker that waits runs other ops meanwhile, of whatever kind,
 *  on top of the calling one: hold no lock that they may want, and expect errno to change. An op that uses more than half of a worker's stack
 *  may not find as much there: when less than half of it is left, a worker that waits runs nothing but the fork itself. It sleeps when there is nothing to run.
 *  Of several forks join the newest first, which is the cheap order; every order is right.
 *  Where ops run on top of each other, what waits on top for what is buried waits for ever. So a fork that was started on a worker is joined by the op,
 *  or fork, that started it, in the same run of its function, or by a thread that is no worker. And neither a cancel callback (cancel.h) nor what it
 *  calls joins a fork: an op on top of the callback that deregisters it does not wait, since the thread is the same, and one that deregisters it
 *  elsewhere may have the fork buried.
 *  Params:   fork  started, and not joined
 *  Returns:  with everything visible that the function has written.
 *  Threads:  that of the start, or one that is no worker. May call the function, and run functions of other ops.
 *  Since:    0.1 */
WEFT_API void weft_fork_join(weft_fork *fork) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
