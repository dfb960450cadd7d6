/* SPDX-License-Identifier: MIT
 *
 * slot.h: the word of one direction of a descriptor: who uses it, whether something has happened that nobody has looked at
 * (READY), and whether the descriptor is closed (CLOSED).
 *
 *     free --claim--> held --arm--> armed --ready--> queued --reclaim--> held --release--> free
 *                                   armed --withdraw--> free
 *
 * Whoever takes an op out of a slot, by release or by withdraw, is the one who completes it: that is why an op completes
 * once. An op that is armed or queued may be gone in the next moment: only its taker touches it. Whoever frees the slot of a
 * closed descriptor calls slot_let_go.
 *
 * Each step is one atomic instruction on the word, seq_cst throughout. Release and acquire on the same word carry the op's
 * fields from its starter to its taker, and the hints from one holder to the next; seq_cst is needed where a second word is
 * involved (the op's state, the runtime's state, the generation), and costs nothing more: a read-modify-write is a locked
 * instruction on amd64 in any order. Model: docs/models/op.pml. Twin: core/slot.go.
 */
#ifndef WEFT_SLOT_H
#define WEFT_SLOT_H

#include "delay.h"
#include "io.h"
#include "lane.h"

typedef enum slot_armed {
    SLOT_WAITS,  /* the op is in the slot, and may be anybody's by now */
    SLOT_NEWS,   /* something has happened since the claim; the slot is still held: try again */
    SLOT_CLOSED, /* the slot is still held */
} slot_armed;

enum { SLOT_PARTIES = 3 }; /* the closer and two slots */

/* Called once by each who holds a closed record. The last gives it back to core/descriptor.go, which takes the list whole;
 * so there is no ABA problem. next_free counts the parties until it is a link. seq_cst on the count: the last party sees all
 * that the others did to the record, and passes it on with the exchange on released. */
static inline void slot_let_go(lane_descriptor *descriptor) {
    if (atomic_fetch_add_explicit(&descriptor->next_free, 1, memory_order_seq_cst) + 1 != SLOT_PARTIES) return;
    lane_runtime *runtime = (lane_runtime *)(uintptr_t)descriptor->runtime;
    WEFT_TEST_DELAY(slot_let_go_last);
    /* Not before, see letGo in core/descriptor.go. */
    if (IO_COMPLETES) atomic_fetch_sub_explicit(&runtime->descriptors, 1, memory_order_seq_cst);
    uint64_t head = atomic_load_explicit(&runtime->released, memory_order_relaxed);
    do {
        atomic_store_explicit(&descriptor->next_free, head, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&runtime->released, &head, (uint64_t)(uintptr_t)descriptor,
                                                    memory_order_release, memory_order_relaxed));
}

/* Takes a free slot for a call that follows. READY goes: news from before that call are no news. Cleared after the call, it
 * could take away news from between; mutant CLEAR_LATE of the model. *news tells whether there was some. */
static inline int slot_claim(_Atomic uint64_t *slot, bool *news) {
    uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);
    do {
        if (word & LANE_SLOT_CLOSED) return WEFT_EBADHANDLE;
        if (word & LANE_SLOT_OWNER) return WEFT_EBUSY;
        *news = (word & LANE_SLOT_READY) != 0;
    } while (!atomic_compare_exchange_weak_explicit(slot, &word, LANE_SLOT_HELD, memory_order_seq_cst, memory_order_relaxed));
    return WEFT_OK;
}

/* Undoes a claim through a handle that turned out to be stale: the record is somebody else's. The readiness that the claim
 * took is his: it is given back, whether there was some or not, in the same step; between two steps he might arm. Mutant
 * STALE_DROPS_READY. */
static inline void slot_unclaim(lane_descriptor *descriptor, _Atomic uint64_t *slot) {
    uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(slot, &word, (word & ~LANE_SLOT_OWNER) | LANE_SLOT_READY,
                                                  memory_order_seq_cst, memory_order_relaxed)) {
    }
    if (word & LANE_SLOT_CLOSED) slot_let_go(descriptor);
}

/* Leaves an op in a slot that is held. It fails when READY is set: news, or slot_withdraw's nudge, since the claim; mutant
 * ARM_BLIND. Then READY goes, as in slot_claim, and the caller tries again. */
static inline slot_armed slot_arm(_Atomic uint64_t *slot, weft_io *io) {
    uint64_t word = LANE_SLOT_HELD;
    if (atomic_compare_exchange_strong_explicit(slot, &word, (uint64_t)(uintptr_t)io, memory_order_seq_cst, memory_order_seq_cst))
        return SLOT_WAITS;
    if (word & LANE_SLOT_CLOSED) return SLOT_CLOSED;
    WEFT_TEST_DELAY(slot_arm_news);
    atomic_fetch_and_explicit(slot, ~LANE_SLOT_READY, memory_order_seq_cst);
    return SLOT_NEWS;
}

/* slot_arm in the slot of a closed descriptor, for an op whose transfer the system still has. The closer, who waits while the slot is held,
 * goes on. */
static inline slot_armed slot_arm_closed(_Atomic uint64_t *slot, weft_io *io) {
    uint64_t word = LANE_SLOT_HELD | LANE_SLOT_CLOSED;
    if (atomic_compare_exchange_strong_explicit(slot, &word, (uint64_t)(uintptr_t)io | LANE_SLOT_CLOSED, memory_order_seq_cst,
                                                memory_order_seq_cst))
        return SLOT_WAITS;
    atomic_fetch_and_explicit(slot, ~LANE_SLOT_READY, memory_order_seq_cst);
    return SLOT_NEWS;
}

/* Frees a slot that is held. Not a store: an event or a close may set its flag at the same time. */
static inline void slot_release(lane_descriptor *descriptor, _Atomic uint64_t *slot) {
    if (atomic_fetch_and_explicit(slot, ~LANE_SLOT_OWNER, memory_order_seq_cst) & LANE_SLOT_CLOSED) slot_let_go(descriptor);
}

/* held to queued, for an op that gives others a turn. */
static inline void slot_requeue(_Atomic uint64_t *slot, weft_io *io) {
    atomic_fetch_or_explicit(slot, (uint64_t)(uintptr_t)io, memory_order_seq_cst);
}

/* queued to held, as slot_claim does it. False when the descriptor is closed: no call may follow. While the word says
 * queued, close does not wait for the op, and may give the descriptor's number away; mutant RETRY_UNCLAIMED. */
static inline bool slot_reclaim(_Atomic uint64_t *slot) {
    return (atomic_fetch_and_explicit(slot, LANE_SLOT_HELD | LANE_SLOT_CLOSED, memory_order_seq_cst) & LANE_SLOT_CLOSED) == 0;
}

/* Notes that a direction may have become ready. Returns the op that waited for it, now queued and the caller's to queue; or
 * NULL. */
static inline weft_io *slot_ready(_Atomic uint64_t *slot) {
    uint64_t word = atomic_load_explicit(slot, memory_order_seq_cst);
    for (;;) {
        uint64_t owner = word & LANE_SLOT_OWNER;
        if (owner == 0 || (owner & LANE_SLOT_HELD)) {
            /* READY already: whoever clears it comes after this load, and makes his call after that. */
            if (word & LANE_SLOT_READY) return NULL;
            if (atomic_compare_exchange_weak_explicit(slot, &word, word | LANE_SLOT_READY, memory_order_seq_cst, memory_order_seq_cst))
                return NULL;
        } else if (atomic_compare_exchange_weak_explicit(slot, &word, word | LANE_SLOT_HELD, memory_order_seq_cst,
                                                         memory_order_seq_cst)) {
            return (weft_io *)(uintptr_t)owner;
        }
    }
}

/* Takes an op out of its slot if it waits there (true: it is the caller's to complete). Else makes the one that holds the
 * slot look again before it arms, by a readiness without a cause. The caller has published a request (the op's or the
 * runtime's state) before, and the op looks for it between its claim and its arming: either that look sees the request, or
 * the nudge comes after it and makes slot_arm fail. So nobody has to look after the arming, when the op may be gone. Mutants
 * NO_NUDGE, NO_LOOK, LOOK_LATE. */
static inline bool slot_withdraw(lane_descriptor *descriptor, _Atomic uint64_t *slot, const weft_io *io) {
    uint64_t word = atomic_load_explicit(slot, memory_order_seq_cst);
    for (;;) {
        uint64_t owner = word & LANE_SLOT_OWNER;
        bool waits = owner == (uint64_t)(uintptr_t)io;
        /* Another op waits: ours has not claimed the slot, and will be refused. */
        if (!waits && owner != 0 && !(owner & LANE_SLOT_HELD)) return false;
        if (!waits && (word & (LANE_SLOT_READY | LANE_SLOT_CLOSED))) return false;
        if (atomic_compare_exchange_weak_explicit(slot, &word, waits ? word & ~LANE_SLOT_OWNER : word | LANE_SLOT_READY,
                                                  memory_order_seq_cst, memory_order_seq_cst)) {
            if (waits && (word & LANE_SLOT_CLOSED)) slot_let_go(descriptor);
            return waits;
        }
    }
}

#endif
