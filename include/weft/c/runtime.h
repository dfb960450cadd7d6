/* SPDX-License-Identifier: MIT
 *
 * weft/c/runtime.h: a runtime is a set of workers with their timers and one poller. Several may live in one process.
 *
 * Ends: weft_runtime_stop refuses new work, cancels pending timers and I/O (their ops run with WEFT_ECANCELED), and
 * blocking calls that have not begun; waits for those that have; runs everything that was accepted, also what another thread
 * is just cancelling or closing, and joins its threads. A process that exits without stopping does not hang.
 */
#ifndef WEFT_C_RUNTIME_H
#define WEFT_C_RUNTIME_H

#include "op.h"
#include "stall.h"

/** Settings of a runtime. Zero means default for every field. Fields are only ever appended. */
typedef struct weft_runtime_config {
    uint32_t size;        /* sizeof(weft_runtime_config); set by WEFT_RUNTIME_CONFIG_INIT */
    uint32_t workers;     /* worker threads, 1 to 256; 0: as many as the CPUs that this process may use */
    uint64_t stack_bytes; /* stack of each worker, at least 65536, more if the system wants more; 0: 1 MiB */
    const char *name;     /* up to 10 bytes; threads are called NAME-0, NAME-1, ...; NULL: "weft"; copied */
    uint32_t blocking_threads; /* blocking calls of each kind that run at once (blocking.h), 1 to 1024; 0: 64 */
    uint32_t max_workers; /* with replacements for workers that ops hold up, at least workers, at most 256; 0: 256. A runtime
                             runs one op at a time, and none beside a blocked one, only if this and workers are 1 */
    uint32_t flags;       /* WEFT_RUNTIME_LOG_STALLS */
    uint32_t reserved_;   /* 0 */
    int64_t keep_ns;      /* how long the thread of a replacement is kept when it is not needed; 0: 10 s */
    weft_stall_fn on_stall; /* is told of stalls: stall.h; NULL: nobody */
    void *stall_context;    /* passed to on_stall */
    int64_t stall_ns;       /* of stalls that are shorter nobody is told; 0: 10 ms */
} weft_runtime_config;

#define WEFT_RUNTIME_CONFIG_INIT {sizeof(weft_runtime_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** weft_runtime_config.flags: write a line on standard error for each stall that on_stall would be told of. The
 *  environment variable WEFT_LOG_STALLS, if not empty, does the same for all runtimes. */
#define WEFT_RUNTIME_LOG_STALLS 1u

/** Counters since the runtime was created. They only grow, but for those that say that they are levels. */
typedef struct weft_stats {
    uint64_t size;             /* sizeof(weft_stats); set it before the call */
    uint64_t ops_run;          /* ops, and coroutine resumptions from a queue, that began */
    uint64_t crossings;        /* calls between C and Go, in either direction */
    uint64_t steals;           /* successful steals */
    uint64_t ops_stolen;       /* ops that they moved */
    uint64_t parks;            /* times that a worker went to sleep */
    uint64_t wakes;            /* times that a sleeping worker was woken by a system call */
    uint64_t injected;         /* ops taken from the injection queue */
    uint64_t timers_started;   /* */
    uint64_t timers_fired;     /* */
    uint64_t timers_cancelled; /* by request, or by stop */
    uint64_t io_started;       /* I/O ops accepted */
    uint64_t io_events;        /* events that the system reported */
    uint64_t io_immediate;     /* I/O ops that completed without waiting */
    uint64_t workers;          /* level: workers (1 for one worker's counters) */
    uint64_t parked;           /* level: workers asleep */
    uint64_t descriptors;      /* level: open descriptors (0 for one worker's counters) */
    uint64_t blocking_calls;   /* blocking calls that began (this and the next two: 0 for one worker's counters) */
    uint64_t blocking_threads; /* level: threads of the blocking pool */
    uint64_t blocking_waiting; /* level: blocking calls that wait for a thread */
    uint64_t max_workers;      /* level: workers there may be; every worker's index is below (1 for one worker's counters) */
    uint64_t stalls;           /* times that an op held up its worker while something waited; stall.h. 0 for one worker */
    uint64_t stalls_dismissed; /* times that it looked so, but the thread had only lost its CPU. 0 for one worker */
    uint64_t stalled_longest_ns; /* the longest stall that is over. 0 for one worker */
    uint64_t replacements;     /* times that a worker began because another was held up. 0 for one worker */
    uint64_t recoveries;       /* the same, once it has begun; and, from the moment that the monitor first saw the op that */
    uint64_t recovery_total_ns;   /* held up the other: the time that took, all together, */
    uint64_t recovery_longest_ns; /* and the longest */
    uint64_t file_immediate;   /* reads of files that found all in memory; file.h. 0 for one worker, and so the next */
    uint64_t file_ring;        /* those for files that io_uring has made, or overlapped; the others are among blocking_calls */
} weft_stats;

#ifdef __cplusplus
extern "C" {
#endif

/** Starts a runtime and its workers.
 *  Params:   config   NULL for all defaults; only read during the call. A smaller size than today's is accepted; a
 *                     larger one when all that is beyond today's is zero
 *            runtime  not NULL; written on success only
 *  Returns:  WEFT_OK; WEFT_EINVAL (a field is out of range, runtime is NULL); WEFT_EVERSION (size);
 *            WEFT_ELIMIT (64 runtimes live, or a thread was refused); WEFT_ENOMEM; WEFT_EFORKED.
 *  Owns:     the caller owns the handle until weft_runtime_destroy.
 *  Threads:  any; blocks until the workers run; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_runtime_create(const weft_runtime_config *config, weft_runtime *runtime) WEFT_NOEXCEPT;

/** Stops a runtime: see the head of this file. A second call waits for the first.
 *  Params:   runtime  which
 *  Returns:  WEFT_OK; WEFT_EBADHANDLE; WEFT_EFORKED.
 *  Threads:  any. From a thread that is not the runtime's own it blocks until all of its threads have ended. From a
 *            worker, or from a blocking call of the runtime, it only begins the stop and returns at once.
 *  Since:    0.1 */
WEFT_API int weft_runtime_stop(weft_runtime runtime) WEFT_NOEXCEPT;

/** Stops a runtime and gives back all that it holds; the handle is stale from then on. From a thread of the
 *  runtime itself it returns at once, and the rest happens when the last of them ends.
 *  Params:   runtime  which; {0} is allowed and does nothing
 *  Returns:  as weft_runtime_stop.
 *  Threads:  any; blocks as weft_runtime_stop does.
 *  Since:    0.1 */
WEFT_API int weft_runtime_destroy(weft_runtime runtime) WEFT_NOEXCEPT;

/** Tells whose worker the calling thread is.
 *  Returns:  the runtime, or {0} when the thread is no worker.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API weft_runtime weft_runtime_current(void) WEFT_NOEXCEPT;

/** Tells which worker of its runtime the calling thread is.
 *  Returns:  0 to max_workers - 1 (weft_stats), or WEFT_ENOTWORKER. Those below workers are always there; a replacement has
 *            an index of its own, and no two workers that live have the same.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_worker_index(void) WEFT_NOEXCEPT;

/** Tells whether a handle is live and still takes work.
 *  Returns:  WEFT_OK; WEFT_EBADHANDLE; WEFT_ESTOPPED.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_runtime_status(weft_runtime runtime) WEFT_NOEXCEPT;

/** Reads the counters of a whole runtime. The counters of running workers are read one by one, not at one instant.
 *  Params:   runtime  which; a stopped one still tells its last counters until it is destroyed
 *            stats    not NULL; stats->size set; only as many bytes are written as it says
 *  Returns:  WEFT_OK; WEFT_EINVAL; WEFT_EVERSION (size below 16); WEFT_EBADHANDLE.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_runtime_stats(weft_runtime runtime, weft_stats *stats) WEFT_NOEXCEPT;

/** Reads the counters of one worker.
 *  Params:   worker  0 to max_workers - 1
 *  Returns:  as weft_runtime_stats; WEFT_EINVAL also when there can be no such worker. One that has left keeps its counters.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_worker_stats(weft_runtime runtime, uint32_t worker, weft_stats *stats) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
