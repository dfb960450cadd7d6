/* SPDX-License-Identifier: MIT
 *
 * transfer.h: whose weft_io.system_ is, where the system reports completion. core/transfer.go has the protocol and is the twin.
 */
#ifndef WEFT_TRANSFER_H
#define WEFT_TRANSFER_H

#include <stdint.h>

#include "io.h"

/* Readies system_ for the transfer that is begun next; status is what the system's first word says of one that has not ended. */
static inline void transfer_lend(weft_io *io, uint32_t status) {
    io->system_[0] = status;
    io->system_[1] = io->system_[2] = io->system_[3] = 0;
}

/* Takes system_ back from the system, and makes it the op that tries again. The step on the slot that follows tells the op's holder. The first
 * word is stored atomically, since io_try may still look whether it has changed. */
static inline void transfer_land(weft_io *io) {
    io->system_[3] = (uint32_t)io->system_[0];
    __atomic_store_n(&((weft_op *)io->system_)->run, io_retry, __ATOMIC_RELAXED);
}

/* What the system has left in system_ when it gave it back. */
static inline uint32_t transfer_status(const weft_io *io) { return (uint32_t)io->system_[3]; }
static inline uint64_t transfer_bytes(const weft_io *io) { return io->system_[1]; }

#endif
