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

/** Returns once the function has run: calls it if nobody else has begun it, else waits. A worker that waits runs other ops meanwhile, of whatever kind,
 *  on top of the calling one: hold no lock that they may want, and expect errno to change. When less than half of its stack is left it
 *  takes no more from elsewhere, and with less than a quarter it runs nothing; when there is nothing to run it sleeps.
 *  Of several forks join the newest first, which is the cheap order; every order is right.
 *  Params:   fork  started, and not joined
 *  Returns:  with everything visible that the function has written.
 *  Threads:  any; mostly that of the start. May call the function, and run functions of other ops.
 *  Since:    0.1 */
WEFT_API void weft_fork_join(weft_fork *fork) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
