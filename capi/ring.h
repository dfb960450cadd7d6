/* SPDX-License-Identifier: MIT
 *
 * ring.h: the rings of a worker's queue. Everything here is for whoever is inside the queue section: the owner or a thief.
 */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include "lane_internal.h"

#pragma GCC visibility push(hidden)

/* Doubles a ring. */
LANE_COLD void lane_grow(lane_ring *ring);

static inline bool lane_ring_try_put(lane_ring *ring, uint64_t runnable) {
    int64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (LANE_UNLIKELY(tail - atomic_load_explicit(&ring->head, memory_order_relaxed) > ring->mask)) return false;
    ((uint64_t *)(uintptr_t)ring->words)[tail & ring->mask] = runnable;
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_relaxed);
    return true;
}

static inline void lane_ring_put(lane_ring *ring, uint64_t runnable) {
    while (!lane_ring_try_put(ring, runnable)) lane_grow(ring);
}

static inline lane_runnable *lane_ring_take_oldest(lane_ring *ring) {
    int64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&ring->tail, memory_order_relaxed)) return NULL;
    WEFT_TEST_DELAY(lane_ring_takes_oldest);
    atomic_store_explicit(&ring->head, head + 1, memory_order_relaxed);
    return (lane_runnable *)(uintptr_t)((uint64_t *)(uintptr_t)ring->words)[head & ring->mask];
}

/* Has the memory fetched that the next but one is in: 192 bytes, most of a small coroutine's frame. Nothing is read from it, so it may be one that went
 * long ago, or none. (In a function of its own GCC would see no effect, and leave it out.) docs/decisions/queue.md says what it brings. */
static inline lane_runnable *lane_ring_take_newest(lane_ring *ring) {
    int64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&ring->head, memory_order_relaxed)) return NULL;
    WEFT_TEST_DELAY(lane_ring_takes_newest);
    tail--;
    atomic_store_explicit(&ring->tail, tail, memory_order_relaxed);
    const char *soon = (const char *)(uintptr_t)((uint64_t *)(uintptr_t)ring->words)[(tail - 2) & ring->mask];
    for (int i = 0; i < 3; i++) __builtin_prefetch(soon + (ptrdiff_t)i * 64, 1);
    return (lane_runnable *)(uintptr_t)((uint64_t *)(uintptr_t)ring->words)[tail & ring->mask];
}

/* Takes the newest if it is this one. */
static inline bool lane_ring_take_back(lane_ring *ring, uint64_t runnable) {
    int64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&ring->head, memory_order_relaxed)) return false;
    tail--;
    if (((uint64_t *)(uintptr_t)ring->words)[tail & ring->mask] != runnable) return false;
    atomic_store_explicit(&ring->tail, tail, memory_order_relaxed);
    return true;
}

/* Takes this one out of the middle: the newer ones move up. */
static inline bool lane_ring_take_out(lane_ring *ring, uint64_t runnable) {
    uint64_t *words = (uint64_t *)(uintptr_t)ring->words;
    int64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    int64_t at = tail - 1;
    while (at >= head && words[at & ring->mask] != runnable) at--;
    if (at < head) return false;
    for (; at + 1 < tail; at++) words[at & ring->mask] = words[(at + 1) & ring->mask];
    atomic_store_explicit(&ring->tail, tail - 1, memory_order_relaxed);
    return true;
}

/* The newest runnable stands in a word of its own and enters the ring when a newer one comes: an op that queues one other and ends, the
 * commonest case, then waits for one store to reach a load instead of for two updates of an index. Returns whether there was one. */
static inline bool lane_put(lane_worker *worker, void *runnable) {
    uint64_t older = atomic_load_explicit(&worker->next, memory_order_relaxed);
    atomic_store_explicit(&worker->next, (uint64_t)(uintptr_t)runnable, memory_order_relaxed);
    if (older == 0) return false;
    lane_ring_put(&worker->deque, older);
    return true;
}

#pragma GCC visibility pop

#endif
