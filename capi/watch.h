/* SPDX-License-Identifier: MIT
 *
 * watch.h: what the monitor's files offer each other and the start of a runtime. watch.c looks, stall.c tells of stalls.
 */
#ifndef WEFT_WATCH_H
#define WEFT_WATCH_H

#include "lane_internal.h"

/* Whom to tell of stalls. */
typedef struct watch_report {
    weft_runtime runtime;
    weft_stall_fn callback; /* or NULL */
    void *context;
    int64_t after_ns; /* shorter ones are only counted */
    bool log;         /* a line on standard error */
} watch_report;

/* Prepares the monitor of the runtime in a slot, before its thread starts. */
void watch_begin(uint32_t slot, const watch_report *report);

/* stall.c. Tells of a stall that has lasted so long, on the monitor's thread; the worker is in the op or was until just now. */
void watch_tell(const watch_report *report, const lane_worker *worker, uint64_t function, int64_t lasted, bool busy, bool ended);

#endif
