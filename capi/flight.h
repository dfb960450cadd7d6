/* SPDX-License-Identifier: MIT
 *
 * flight.h: ops of files that fly: the system carries them out while no thread waits. On Linux by a ring of the runtime's (io_uring), where the
 * kernel allows one; on Windows by overlapped calls, whose packets come to the runtime's port. docs/decisions/files.md has the reasons.
 */
#ifndef WEFT_FLIGHT_H
#define WEFT_FLIGHT_H

#include "lane_internal.h"

typedef enum flight_call { FLIGHT_READ, FLIGHT_WRITE, FLIGHT_SYNC } flight_call;

typedef struct flight_request {
    flight_call call;
    intptr_t system; /* stays open until the op has landed */
    void *data;
    uint64_t offset;
    uint32_t length;
    bool apart;              /* too long to be copied on the calling thread */
    weft_file_op *op;
} flight_request;

typedef enum flight_start {
    FLIGHT_REFUSED, /* nothing has happened */
    FLIGHT_UP,      /* the op is the system's, and then file_landed's; it may be gone */
    FLIGHT_OVER,    /* it was done at once, and is the caller's */
} flight_start;

bool flight_allowed(void); /* whether the system has what we need, and WEFT_FILES does not say no */

/* Whether the ops of a file, which was opened for this runtime, may fly. Any thread. */
bool flight_open(lane_runtime *runtime, intptr_t system);

/* Submits an op of such a file. It is refused when there is no room, no such call, or no wish any more (weft_blocking_requested). *result, as file_landed
 * has it, is written when it is over. Workers of the runtime only: Linux may interrupt the sleep of a thread that has submitted, and takes back what one
 * that ends has left. */
flight_start flight_submit(lane_runtime *runtime, const flight_request *request, int32_t *result);

/* Asks the system to end an op whose state says that it was asked to. Any thread, and harmless if the op has landed, or flies again. */
void flight_cancel(lane_runtime *runtime, weft_file_op *op);

/* Asks what flies to end, when a runtime has begun to stop: its state says so, and nothing is submitted any more. */
void flight_stop(uint32_t slot);

/* Gives back what a runtime has, when nothing flies. */
void flight_close(uint32_t slot);

uint64_t flight_count(uint32_t slot); /* ops that have flown */
bool flight_is_open(uint32_t slot);   /* whether the runtime counts one descriptor for its flights: lane_keep_polling */

#if defined(_WIN32)
/* What becomes of the op whose packet has come, with its OVERLAPPED: an op to be queued, or NULL: the submitter, who is still in the call, goes on
 * with it. Any thread, once for each packet of IO_FLIGHT_DATA. */
weft_op *flight_arrived(void *overlapped);
static inline uint32_t flight_collect(lane_runtime *runtime, bool behind) { return (void)runtime, (void)behind, 0; } /* the port tells */
#else
/* Gives what the kernel has done to file_landed. Any thread. Returns the number of ops. */
uint32_t flight_collect(lane_runtime *runtime, bool behind);
#endif

/* file.c: what came of an op that flew: bytes, or a negative error number of the system's. It is queued behind everything if behind, else as the newest.
 * Calls nobody back. */
void file_landed(weft_file_op *op, int32_t result, bool behind);

#endif
