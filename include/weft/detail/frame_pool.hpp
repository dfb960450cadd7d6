// SPDX-License-Identifier: MIT
//
// Memory of coroutine frames. Each thread keeps, per size class, a list of free blocks that it takes from and gives to,
// and one spare list that is full. When both are full, a full list goes to the depot that all threads share; when both
// are empty, one comes from there. So frames that are allocated on one thread and freed on another travel back a batch
// at a time, and memory stays flat (Bonwick and Adams, "Magazines and Vmem", 2001). The depot keeps a few full lists; beyond
// those, blocks go back to the chunk of 64 KiB that they were cut from, which its address tells, and a chunk whose blocks
// are all back is another class's or the system's (Bonwick, "The slab allocator", 1994). Neighbours in a list are
// neighbours in memory, so a burst of small frames is written and read in the order that caches and pages like.
//
// Builds with a memory sanitizer use operator new for every frame. Sizes are rounded there too, so that object files of
// both kinds can be linked together.
#ifndef WEFT_DETAIL_FRAME_POOL_HPP
#define WEFT_DETAIL_FRAME_POOL_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#if defined(__MINGW32__) && !defined(__clang__)
#include <pthread.h>
#endif

#include "short_lock.hpp"
#include "tsan.hpp"

namespace weft::detail {

inline constexpr std::size_t frame_classes = 34;
inline constexpr std::size_t frame_largest = 2560;             // bytes; larger frames come from operator new
inline constexpr std::size_t frame_depot_bytes = 32u << 10u;   // full lists that a class keeps; few, since each block may hold a chunk
inline constexpr std::size_t frame_reserve_bytes = 64u << 20u; // empty chunks that all classes keep; what a burst leaves above it is freed
inline constexpr std::size_t frame_chunk_alignment = 64u << 10u;
inline constexpr std::size_t frame_chunk_bytes = frame_chunk_alignment - 64; // so that chunks and the allocator's own headers tile

/// Size classes: 16 in steps of 16 bytes, for the many small coroutines, 12 in steps of 64, and 6 in steps of 256. size is not 0.
constexpr std::size_t frame_class(std::size_t size) noexcept {
    return size <= 256 ? (size - 1) / 16 : size <= 1024 ? 16 + (size - 257) / 64 : 28 + (size - 1025) / 256;
}

/// What a frame of a class takes.
constexpr std::size_t frame_bytes(std::size_t index) noexcept {
    return index < 16 ? (index + 1) * 16 : index < 28 ? 256 + (index - 15) * 64 : 1024 + (index - 27) * 256;
}

static_assert(frame_class(1) == 0 && frame_class(16) == 0 && frame_class(17) == 1 && frame_bytes(frame_class(256)) == 256);
static_assert(frame_bytes(frame_class(257)) == 320 && frame_bytes(frame_class(1024)) == 1024 && frame_bytes(frame_class(1025)) == 1280);
static_assert(frame_class(frame_largest) == frame_classes - 1 && frame_bytes(frame_classes - 1) == frame_largest);

/// Blocks in a full list: 4 KiB of them, so that a visit to the depot is rare, but at least 8.
constexpr std::uint32_t frame_batch(std::size_t index) noexcept {
    const std::size_t blocks = 4096 / frame_bytes(index);
    return static_cast<std::uint32_t>(blocks < 8 ? 8 : blocks);
}

struct frame_block {
    frame_block *next;       // in its list
    frame_block *next_batch; // depot: first block of the next full list
};

static_assert(sizeof(frame_block) <= frame_bytes(0));

/// The head of a chunk; its blocks follow. Guarded by the depot's lock, or by the reserve's while it is empty.
struct alignas(64) frame_chunk {
    frame_chunk *next;     // in the depot's list, when it has a block to give, or in the reserve
    frame_chunk *previous; // in the depot's list
    frame_block *free;     // blocks that have come back
    std::uint32_t used;    // blocks that are out
    std::uint32_t fresh;   // offset of the first block that was never out
};

/// Free blocks of one size on one thread.
struct frame_bin {
    frame_block *head = nullptr;  // owner: thread
    frame_block *spare = nullptr; // owner: thread; empty or full
    std::uint32_t room = 0; // owner: thread; blocks that head may still take. 0 at first: the first free arms the exit guard
};

struct frame_cache {
    frame_bin bins[frame_classes];
    bool armed = false;  // the thread's end will empty the cache
    bool closed = false; // it has
};

// Constant-initialised and trivially destructible: the compiler reaches it without a guard. What must happen at the
// thread's end is done by frame_cache_guard, which only slow paths touch.
constinit inline thread_local frame_cache this_thread_frames{};

/// Empty chunks, for all classes.
struct alignas(64) frame_reserve {
    short_lock lock;              // held once per chunk
    frame_chunk *head = nullptr;  // guarded by lock
    std::size_t chunks = 0;       // guarded by lock
};

constinit inline frame_reserve frame_chunks{};

inline frame_chunk *frame_chunk_allocate() {
    frame_chunks.lock.lock();
    frame_chunk *chunk = frame_chunks.head;
    if (chunk != nullptr) {
        frame_chunks.head = chunk->next;
        --frame_chunks.chunks;
    }
    frame_chunks.lock.unlock();
    void *memory = chunk != nullptr ? chunk : ::operator new(frame_chunk_bytes, std::align_val_t(frame_chunk_alignment));
    return ::new (memory) frame_chunk{nullptr, nullptr, nullptr, 0, sizeof(frame_chunk)};
}

inline void frame_chunk_free(frame_chunk *chunk) noexcept {
    frame_chunks.lock.lock();
    const bool fits = frame_chunks.chunks < frame_reserve_bytes / frame_chunk_alignment;
    if (fits) {
        chunk->next = frame_chunks.head;
        frame_chunks.head = chunk;
        ++frame_chunks.chunks;
    }
    frame_chunks.lock.unlock();
    if (!fits) {
        ::operator delete(static_cast<void *>(chunk), std::align_val_t(frame_chunk_alignment));
    }
}

inline frame_chunk *frame_chunk_of(frame_block *block) noexcept {
    return reinterpret_cast<frame_chunk *>(reinterpret_cast<std::uintptr_t>(block) & ~(frame_chunk_alignment - 1));
}

/// Blocks of one size, for all threads.
struct alignas(64) frame_depot {
    short_lock lock; // held once per batch
    frame_block *head = nullptr;    // guarded by lock: full lists
    std::size_t batches = 0;        // guarded by lock
    frame_chunk *partial = nullptr; // guarded by lock: the chunks that have a block to give
};

constinit inline frame_depot frame_depots[frame_classes]{};

inline bool frame_chunk_spent(const frame_chunk &chunk, std::size_t bytes) noexcept {
    return chunk.free == nullptr && chunk.fresh + bytes > frame_chunk_bytes;
}

inline void frame_chunk_link(frame_depot &depot, frame_chunk *chunk) noexcept {
    chunk->previous = nullptr;
    chunk->next = depot.partial;
    if (depot.partial != nullptr) {
        depot.partial->previous = chunk;
    }
    depot.partial = chunk;
}

inline void frame_chunk_unlink(frame_depot &depot, frame_chunk *chunk) noexcept {
    if (chunk->previous != nullptr) {
        chunk->previous->next = chunk->next;
    } else {
        depot.partial = chunk->next;
    }
    if (chunk->next != nullptr) {
        chunk->next->previous = chunk->previous;
    }
}

/// Gives blocks back to their chunks.
inline void frame_dissolve(std::size_t index, frame_block *block) noexcept {
    frame_depot &depot = frame_depots[index];
    frame_chunk *empty = nullptr;
    depot.lock.lock();
    while (block != nullptr) {
        frame_block *next = block->next;
        frame_chunk *chunk = frame_chunk_of(block);
        if (frame_chunk_spent(*chunk, frame_bytes(index))) {
            frame_chunk_link(depot, chunk);
        }
        block->next = chunk->free;
        chunk->free = block;
        if (--chunk->used == 0) {
            frame_chunk_unlink(depot, chunk);
            chunk->next = empty;
            empty = chunk;
        }
        block = next;
    }
    depot.lock.unlock();
    while (empty != nullptr) {
        frame_chunk *next = empty->next;
        frame_chunk_free(empty);
        empty = next;
    }
}

inline void frame_depot_put(std::size_t index, frame_block *batch) noexcept {
    frame_depot &depot = frame_depots[index];
    const std::size_t keep = frame_depot_bytes / (frame_bytes(index) * frame_batch(index));
    depot.lock.lock();
    const bool fits = depot.batches < keep;
    if (fits) {
        batch->next_batch = depot.head;
        depot.head = batch;
        ++depot.batches;
    }
    depot.lock.unlock();
    if (!fits) {
        frame_dissolve(index, batch);
    }
}

/// Cuts up to a batch of blocks from the first chunk that has some. Under the depot's lock.
inline frame_block *frame_cut(std::size_t index) noexcept {
    frame_depot &depot = frame_depots[index];
    frame_chunk *chunk = depot.partial;
    const auto bytes = static_cast<std::uint32_t>(frame_bytes(index));
    frame_block *batch = nullptr;
    frame_block **last = &batch;
    std::uint32_t count = 0;
    for (; count < frame_batch(index) && !frame_chunk_spent(*chunk, bytes); ++count) {
        frame_block *block = chunk->free;
        if (block != nullptr) {
            chunk->free = block->next;
        } else {
            block = ::new (reinterpret_cast<unsigned char *>(chunk) + chunk->fresh) frame_block;
            chunk->fresh += bytes;
        }
        *last = block;
        last = &block->next;
    }
    *last = nullptr;
    chunk->used += count;
    if (frame_chunk_spent(*chunk, bytes)) {
        frame_chunk_unlink(depot, chunk);
    }
    return batch;
}

/// A list of blocks, full or, from a chunk that ends, less.
inline frame_block *frame_depot_take(std::size_t index) {
    frame_depot &depot = frame_depots[index];
    depot.lock.lock();
    frame_block *batch = depot.head;
    if (batch != nullptr) {
        depot.head = batch->next_batch;
        --depot.batches;
    } else if (depot.partial != nullptr) {
        batch = frame_cut(index);
    }
    depot.lock.unlock();
    if (batch == nullptr) {
        frame_chunk *chunk = frame_chunk_allocate();
        depot.lock.lock();
        frame_chunk_link(depot, chunk);
        batch = frame_cut(index);
        depot.lock.unlock();
    }
    return batch;
}

/// Empties the cache when its thread ends. Frames that later destructors of the same thread free bypass the cache.
struct frame_cache_guard {
    frame_cache_guard() noexcept = default;
    frame_cache_guard(const frame_cache_guard &) = delete;
    frame_cache_guard &operator=(const frame_cache_guard &) = delete;
    ~frame_cache_guard() {
        frame_cache &cache = this_thread_frames;
        cache.closed = true;
        for (std::size_t index = 0; index < frame_classes; ++index) {
            frame_bin &bin = cache.bins[index];
            frame_dissolve(index, bin.head);
            frame_dissolve(index, bin.spare);
            bin = frame_bin{};
        }
    }
    void touch() const noexcept {}
};

#if defined(__MINGW32__) && !defined(__clang__)
// GCC emulates thread-local variables here, and frees those of a thread before their destructors run: both are done by keys of the thread
// library's, which are ended in the order in which they were made. So the guard has a key of its own, made before there is any other.
inline pthread_key_t frame_cache_key;
inline bool frame_cache_keyed = false;
inline std::atomic<bool> frame_cache_exits{false}; // the process does

// A process that exits ends its other threads where they are, maybe inside a lock of the depot, and then calls this for the last one.
extern "C" inline void weft_detail_frame_cache_end(void *) {
    if (!frame_cache_exits.load(std::memory_order_relaxed)) {
        const frame_cache_guard guard;
    }
}

[[gnu::constructor(101)]] static void frame_cache_key_make() {
    if (!frame_cache_keyed) {
        frame_cache_keyed = pthread_key_create(&frame_cache_key, weft_detail_frame_cache_end) == 0 &&
                            std::atexit([] { frame_cache_exits.store(true, std::memory_order_relaxed); }) == 0;
    }
}
#endif

inline void frame_cache_arm() noexcept {
#if defined(__MINGW32__) && !defined(__clang__)
    if (frame_cache_keyed) {
        pthread_setspecific(frame_cache_key, &frame_cache_key);
    }
#else
    static thread_local frame_cache_guard guard;
    guard.touch();
#endif
    this_thread_frames.armed = true;
}

[[gnu::noinline, gnu::cold]] inline void *frame_allocate_slow(std::size_t index) {
    frame_cache &cache = this_thread_frames;
    frame_bin &bin = cache.bins[index];
    if (cache.closed) {
        frame_block *batch = frame_depot_take(index);
        frame_dissolve(index, batch->next);
        return batch;
    }
    if (!cache.armed) {
        frame_cache_arm();
    }
    frame_block *batch = bin.spare;
    bin.spare = nullptr;
    if (batch == nullptr) {
        batch = frame_depot_take(index);
    }
    bin.head = batch->next;
    bin.room = 1;
    return batch;
}

[[gnu::noinline, gnu::cold]] inline void frame_free_slow(std::size_t index, void *memory) noexcept {
    frame_cache &cache = this_thread_frames;
    frame_bin &bin = cache.bins[index];
    auto *block = static_cast<frame_block *>(memory);
    block->next = nullptr;
    if (cache.closed) {
        frame_dissolve(index, block);
        return;
    }
    if (!cache.armed) {
        frame_cache_arm();
    }
    if (bin.head != nullptr) { // full
        if (bin.spare != nullptr) {
            frame_depot_put(index, bin.spare);
        }
        bin.spare = bin.head;
    }
    bin.head = block;
    bin.room = frame_batch(index) - 1;
}

/// Allocates a frame. size is what the compiler asks for, and comes back in frame_free.
[[nodiscard]] inline void *frame_allocate(std::size_t size) {
    if (size > frame_largest) {
        return ::operator new(size);
    }
    const std::size_t index = frame_class(size);
#if WEFT_DETAIL_CHECKED_MEMORY
    return ::operator new(frame_bytes(index));
#else
    frame_bin &bin = this_thread_frames.bins[index];
    frame_block *block = bin.head;
    if (block == nullptr) [[unlikely]] {
        return frame_allocate_slow(index);
    }
    bin.head = block->next;
    ++bin.room;
    return block;
#endif
}

inline void frame_free(void *memory, std::size_t size) noexcept {
#if WEFT_DETAIL_CHECKED_MEMORY
    static_cast<void>(size);
    ::operator delete(memory);
#else
    if (size > frame_largest) {
        ::operator delete(memory);
        return;
    }
    const std::size_t index = frame_class(size);
    frame_bin &bin = this_thread_frames.bins[index];
    if (bin.room == 0) [[unlikely]] {
        frame_free_slow(index, memory);
        return;
    }
    auto *block = static_cast<frame_block *>(memory);
    block->next = bin.head;
    bin.head = block;
    --bin.room;
#endif
}

} // namespace weft::detail

#endif
