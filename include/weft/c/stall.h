/* SPDX-License-Identifier: MIT
 *
 * weft/c/stall.h: what a runtime tells of ops that hold up their worker.
 *
 * An op that blocks (a lock, a system call, a library that waits) or computes for long holds up its worker, but nobody
 * else: its queued ops, its timers and the poller are taken over, and if no worker is free, a replacement starts
 * (max_workers in runtime.h). When the op returns, there is a worker too many, and one leaves. Blocking costs
 * a thread and some 100 microseconds each time; work that always blocks belongs elsewhere. Stalls tell where.
 */
#ifndef WEFT_C_STALL_H
#define WEFT_C_STALL_H

#include "op.h"

/** A function of any kind: the run of an op, or what resumes a coroutine, cast. */
typedef void (*weft_function)(void);

/** One stall: an op that kept its worker while something else waited to run there. */
typedef struct weft_stall {
    uint64_t size;        /* sizeof(weft_stall) of the library */
    weft_runtime runtime; /* whose worker */
    uint32_t worker;      /* its index */
    uint32_t thread;      /* the system's number of its thread */
    int64_t duration_ns;  /* of the op so far, as the monitor saw it */
    uint32_t ended;       /* 1: the op is over; 0: it goes on, and there will be another report when it is over */
    uint32_t computes;    /* 1: it used its CPU; 0: it was blocked */
    weft_function function; /* what runs: the op's run, or a coroutine's function. Never NULL */
    const char *name;     /* given by weft_describe, or its symbol if the program exports it (as it is linked); or NULL */
    const char *module;   /* file of the program or library that it is in, or NULL */
    uint64_t offset;      /* of the function in it: what addr2line wants */
    const char *file;     /* given by weft_describe: where such an op comes from; or NULL */
    uint32_t line;        /* in file, or 0 */
    uint32_t reserved_;
} weft_stall;

/** Gets a stall, on the runtime's monitor thread. It may call any function of weft, but stalls are not
 *  noticed until it returns, so it must not block for long. stall and its strings are good until then. */
typedef void (*weft_stall_fn)(const weft_stall *stall, void *context);

#ifdef __cplusplus
extern "C" {
#endif

/** Tells where ops with a certain function come from: name, file and line of their reports. The first description
 *  of a function stays. The C++ layer does this for each kind of task that is spawned.
 *  Params:   function  not NULL
 *            name      what to call it, or NULL: its symbol; kept, so it must live as long as the program
 *            file      source file, or NULL; kept as well
 *            line      in file
 *  Returns:  WEFT_OK, also if it was described already; WEFT_EINVAL (function is NULL); WEFT_ELIMIT (4,096 functions are).
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_describe(weft_function function, const char *name, const char *file, uint32_t line) WEFT_NOEXCEPT;

/** For language layers: tells that the op that runs on the calling worker goes on as something else, whose function
 *  reports shall name. It holds until the op returns. Does nothing on other threads.
 *  Params:   function  as in weft_describe
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API void weft_goes_on_as(weft_function function) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
