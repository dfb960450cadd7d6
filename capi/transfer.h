/* SPDX-License-Identifier: MIT
 *
 * transfer.h: whose weft_io.system_ is, where the system reports completion. core/transfer.go has the protocol and is the twin.
 */
#ifndef WEFT_TRANSFER_H
#define WEFT_TRANSFER_H

#include <stdint.h>

#include "io.h"

#define TRANSFER_LANDED (UINT64_C(1) << 32) /* beside the status, once the packet was taken */

/* Readies system_ for the transfer that is begun next; status is what the system's first word says of one that has not ended. */
static inline void transfer_lend(weft_io *io, uint32_t status) {
    io->system_[0] = status;
    io->system_[1] = io->system_[2] = io->system_[3] = 0;
}

/* Takes system_ back from the system, and makes it the op that tries again. release, by its last store, pairs with transfer_landed: the
 * op's holder, who looks meanwhile, sees status and bytes with it. */
static inline void transfer_land(weft_io *io) {
    uint64_t status = (uint32_t)io->system_[0];
    ((weft_op *)io->system_)->run = io_retry;
    __atomic_store_n(&io->system_[3], status | TRANSFER_LANDED, __ATOMIC_RELEASE);
}

/* Whether the system has given system_ back, and what it left there. acquire, see transfer_land. */
static inline bool transfer_landed(const weft_io *io, uint32_t *status, uint64_t *bytes) {
    uint64_t word = __atomic_load_n(&io->system_[3], __ATOMIC_ACQUIRE);
    if (!(word & TRANSFER_LANDED)) return false;
    *status = (uint32_t)word;
    *bytes = io->system_[1];
    return true;
}

#endif
