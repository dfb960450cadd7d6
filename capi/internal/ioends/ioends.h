/* SPDX-License-Identifier: MIT
 *
 * ioends.h: what Go's tests of the I/O ops in C call.
 */
#ifndef WEFT_IOENDS_H
#define WEFT_IOENDS_H

#include "io.h"

enum { ENDS_READY = 256 }; /* one poll has at most 128 events of two directions each */

/* A start, by kind, as the public functions take it. endpoint is a connect's. */
int ends_start(uintptr_t io, uint64_t descriptor, uint16_t kind, uint16_t flags, uintptr_t data, uint64_t length, uintptr_t endpoint);
int ends_cancel(uintptr_t io);
/* Runs a queued op that tries again; returns the weft_io whose run that has called, or 0. */
uintptr_t ends_retry(uintptr_t op);
/* The run of all ops. */
uintptr_t ends_run(void);
/* lane_poll; writes the ops that it has queued, the one that its worker would run first first, and returns their number. */
uint32_t ends_poll(uintptr_t runtime, int64_t timeout_ns, uintptr_t *ready, uint32_t *events);

/* ioends.go */
extern void weftgo_ends_queue(uintptr_t op);

#endif
