/* SPDX-License-Identifier: MIT
 *
 * weft/c/blocking.h: calls that block, on threads where nobody waits behind them.
 *
 * A blocking op has two functions: call, which may block as long as it likes, runs on a thread of the runtime's pool; when it has
 * returned, op.run runs on a worker. The pool is elastic: a thread is started when a call finds none idle, and ends when it
 * has been idle for a second. Every thread has the stack size, the name (NAME-bN) and the signal mask of a worker.
 *
 * Calls are of a kind, and each kind has a share of its own: of each, weft_runtime_config.blocking_threads run at once, and the
 * others wait in the order in which they were submitted. However many calls of one kind hang, those of another go on.
 *
 * Stop cancels the calls that wait for a thread, and waits for those that run: nothing can end them from outside. A call may
 * look at weft_blocking_requested now and then. The rules of op.h hold; in addition call owns the memory while it runs.
 */
#ifndef WEFT_C_BLOCKING_H
#define WEFT_C_BLOCKING_H

#include "op.h"

/* Kinds. */
#define WEFT_BLOCKING_CALL 0u /* a program's own calls */
#define WEFT_BLOCKING_FILE 1u /* files: weft's own (file.h), and those of a program that behave alike */
#define WEFT_BLOCKING_OTHER 2u /* a program's own calls that must not wait behind those of the first kind */
#define WEFT_BLOCKING_KINDS 3u

typedef struct weft_blocking weft_blocking;

/** What may block. It gets the op itself. It must not throw, longjmp or end its thread. */
typedef void (*weft_blocking_fn)(weft_blocking *blocking);

struct weft_blocking {
    weft_op op;            /* caller: run and context; run is called on a worker, after call */
    weft_blocking_fn call; /* caller: called on a thread of the pool */
    int32_t status;        /* result: WEFT_OK when call has run, WEFT_ECANCELED when it never will; valid once run begins */
    uint32_t state_;       /* weft's */
    void *pool_;           /* weft's */
    void *previous_;       /* weft's */
    uint32_t kind_;        /* weft's */
    uint32_t reserved_;    /* weft's */
    uint64_t spare_[1];    /* weft's */
};

#ifdef __cplusplus
extern "C" {
#endif

/** Submits a blocking op.
 *  Params:   runtime   whose pool calls call, and whose worker runs op.run
 *            blocking  not NULL; op.run and call not NULL; idle (zeroed, or its run has begun)
 *            kind      WEFT_BLOCKING_CALL, WEFT_BLOCKING_FILE or WEFT_BLOCKING_OTHER
 *  Returns:  WEFT_OK (op.run will be called); 1 (cancelled before: status is WEFT_ECANCELED, op.run is not called);
 *            WEFT_EINVAL; WEFT_EBADHANDLE; WEFT_EBUSY (already submitted); WEFT_ESTOPPED; WEFT_EFORKED;
 *            WEFT_ELIMIT (the system refused the pool its first thread).
 *  Owns:     the op is weft's from WEFT_OK until op.run begins.
 *  Threads:  any, also one of the pool; never calls back; may start a thread, which takes some 20 microseconds.
 *  Cancel:   weft_blocking_cancel, and stop, while it waits for a thread.
 *  Since:    0.1 */
WEFT_API int weft_blocking_submit(weft_runtime runtime, weft_blocking *blocking, uint32_t kind) WEFT_NOEXCEPT;

/** Asks a blocking op not to start. One that waits for a thread completes with WEFT_ECANCELED, and call is not called; one
 *  that was not submitted yet is refused that way when it is. If call runs it goes on, and weft_blocking_requested tells it.
 *  Either way op.run is called exactly once per accepted submission.
 *  Params:   blocking  not NULL
 *  Returns:  WEFT_OK (it had not started, and will not); 1 (it runs or has run, or had been asked); WEFT_EINVAL; WEFT_EFORKED.
 *  Threads:  any, as long as the caller knows that the memory is still there; waits only for the pool's short sections; never
 *            calls back.
 *  Since:    0.1 */
WEFT_API int weft_blocking_cancel(weft_blocking *blocking) WEFT_NOEXCEPT;

/** Tells whether weft_blocking_cancel was called while call ran, or its runtime stops: for calls that can end early.
 *  Params:   blocking  not NULL, submitted
 *  Returns:  1 or 0.
 *  Threads:  the one that runs call; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_blocking_requested(const weft_blocking *blocking) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
