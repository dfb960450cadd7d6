/* SPDX-License-Identifier: MIT
 *
 * uring.h: io_uring for files: one ring for each runtime that has opened one, where the kernel allows it. docs/decisions/files.md has the
 * reasons. Other systems have no ring: each submission is refused there.
 */
#ifndef WEFT_URING_H
#define WEFT_URING_H

#include "lane_internal.h"

typedef enum uring_call { URING_READ, URING_WRITE, URING_SYNC } uring_call;

typedef struct uring_request {
    uring_call call;
    int32_t system; /* file descriptor, which stays open until the op has landed */
    void *data;
    uint64_t offset;
    uint32_t length;
    bool apart;              /* too long to be copied on the calling thread */
    weft_file_op *op;
} uring_request;

#if defined(__linux__)

bool uring_allowed(void); /* whether the kernel has what we need, and WEFT_FILES does not say no */

/* Makes the runtime's ring unless that was tried before. Any thread. */
void uring_open(lane_runtime *runtime);

/* Submits an op. False, and nothing has happened, when there is no ring, no room, or no wish any more (weft_blocking_requested). Workers of the
 * runtime only: the kernel may interrupt the sleep of a thread that has submitted, and takes back what one that ends has left. */
bool uring_submit(lane_runtime *runtime, const uring_request *request);

/* Asks the kernel to end an op whose state says that it was asked to. Any thread, and harmless if the op has landed, or flies again. */
void uring_cancel(lane_runtime *runtime, const weft_file_op *op);

/* Gives what the kernel has done to file_landed. Any thread. Returns the number of ops. */
uint32_t uring_collect(lane_runtime *runtime, bool behind);

/* Accepts nothing more, and asks what flies to end. */
void uring_stop(uint32_t slot);

/* Gives the ring back, when nothing flies. */
void uring_close(uint32_t slot);

/* Ops that the ring has carried out, and whether there is one. */
uint64_t uring_count(uint32_t slot);
bool uring_is_open(uint32_t slot);

#else

static inline bool uring_allowed(void) { return false; }
static inline void uring_open(lane_runtime *runtime) { (void)runtime; }
static inline bool uring_submit(lane_runtime *runtime, const uring_request *request) { return (void)runtime, (void)request, false; }
static inline void uring_cancel(lane_runtime *runtime, const weft_file_op *op) { (void)runtime, (void)op; }
static inline uint32_t uring_collect(lane_runtime *runtime, bool behind) { return (void)runtime, (void)behind, 0; }
static inline void uring_stop(uint32_t slot) { (void)slot; }
static inline void uring_close(uint32_t slot) { (void)slot; }
static inline uint64_t uring_count(uint32_t slot) { return (void)slot, 0; }
static inline bool uring_is_open(uint32_t slot) { return (void)slot, false; }

#endif

/* file.c: what came of an op that flew: bytes, or a negative errno. It is queued behind everything if behind, else as the newest. Calls nobody back. */
void file_landed(weft_file_op *op, int32_t result, bool behind);

#endif
