/* SPDX-License-Identifier: MIT
 *
 * io_op.h: where an I/O op is under way, and its end, for io.c.
 */
#ifndef WEFT_IO_OP_H
#define WEFT_IO_OP_H

#include "delay.h"
#include "io.h"

/* Where an op is under way: the record's address, which has its low bits free, and the direction, in one word. */
static inline void *io_place(lane_descriptor *descriptor, int direction) {
    return (char *)descriptor + direction;
}

static inline lane_descriptor *io_descriptor(void *place) { return (lane_descriptor *)((uintptr_t)place & ~(uintptr_t)1); }

static inline int io_direction(void *place) { return (int)((uintptr_t)place & 1); }

/* Writes the result. The caller has the op in his hands, and calls or queues its run after this.
 *     descriptor_: none, so that a cancel of the op's next life does not look at this one's.
 *     state_: a plain store in effect, not a compare-and-swap: a request that comes in between is as good as one that comes
 *   too late. release: whoever sees the state sees the result. */
static inline void io_complete(weft_io *io, int status, int os_error) {
    io->status = status;
    io->os_error = os_error;
    __atomic_store_n(&io->descriptor_, NULL, __ATOMIC_RELAXED);
    WEFT_TEST_DELAY(io_complete_written);
    __atomic_store_n(&io->state_, IO_COMPLETED, __ATOMIC_RELEASE);
}

#endif
