// SPDX-License-Identifier: MIT
//
// Memory of coroutine frames. Each thread keeps, per size class, a list of free blocks that it takes from and gives to,
// and one spare list that is full. When both are full, a full list goes to the depot that all threads share; when both
// are empty, one comes from there. So frames that are allocated on one thread and freed on another travel back a batch
// at a time, and memory stays flat. The depot keeps a bounded amount and frees what exceeds it; a thread that ends
// frees what it has. Bonwick and Adams, "Magazines and Vmem", 2001.
//
// Builds with a memory sanitizer use operator new for every frame. Sizes are rounded there too, so that object files of
// both kinds can be linked together.
#ifndef WEFT_DETAIL_FRAME_POOL_HPP
#define WEFT_DETAIL_FRAME_POOL_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "short_lock.hpp"
#include "tsan.hpp"

namespace weft::detail {

inline constexpr std::size_t frame_classes = 32;
inline constexpr std::size_t frame_largest = 2560;          // bytes; larger frames come from operator new
inline constexpr std::size_t frame_depot_bytes = 4u << 20u; // kept per class; what a burst leaves above it is freed

/// Size classes: 16 in steps of 32 bytes, for the many small coroutines, and 16 in steps of 128. size is not 0.
constexpr std::size_t frame_class(std::size_t size) noexcept { return size <= 512 ? (size - 1) / 32 : 16 + (size - 513) / 128; }

/// What a frame of a class takes.
constexpr std::size_t frame_bytes(std::size_t index) noexcept { return index < 16 ? (index + 1) * 32 : 512 + (index - 15) * 128; }

static_assert(frame_class(1) == 0 && frame_class(32) == 0 && frame_class(33) == 1 && frame_bytes(frame_class(512)) == 512);
static_assert(frame_bytes(frame_class(513)) == 640 && frame_class(frame_largest) == frame_classes - 1);
static_assert(frame_bytes(frame_classes - 1) == frame_largest);

/// Blocks in a full list: 4 KiB of them, so that a visit to the depot is rare, but at least 8.
constexpr std::uint32_t frame_batch(std::size_t index) noexcept {
    const std::size_t blocks = 4096 / frame_bytes(index);
    return static_cast<std::uint32_t>(blocks < 8 ? 8 : blocks);
}

struct frame_block {
    frame_block *next;       // in its list
    frame_block *next_batch; // depot: first block of the next full list
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

/// Full lists of one size, for all threads.
struct alignas(64) frame_depot {
    short_lock lock; // held once per batch
    // Guarded by lock; also read without it as a hint, so that an allocation that finds nothing pays one load.
    std::atomic<frame_block *> head{nullptr};
    std::size_t batches = 0; // guarded by lock
};

constinit inline frame_depot frame_depots[frame_classes]{};

inline void frame_free_list(frame_block *block) noexcept {
    while (block != nullptr) {
        frame_block *next = block->next;
        ::operator delete(static_cast<void *>(block));
        block = next;
    }
}

inline void frame_depot_put(std::size_t index, frame_block *batch) noexcept {
    frame_depot &depot = frame_depots[index];
    const std::size_t keep = frame_depot_bytes / (frame_bytes(index) * frame_batch(index));
    depot.lock.lock();
    const bool fits = depot.batches < keep;
    if (fits) {
        batch->next_batch = depot.head.load(std::memory_order_relaxed);
        depot.head.store(batch, std::memory_order_relaxed);
        ++depot.batches;
    }
    depot.lock.unlock();
    if (!fits) {
        frame_free_list(batch);
    }
}

inline frame_block *frame_depot_take(std::size_t index) noexcept {
    frame_depot &depot = frame_depots[index];
    if (depot.head.load(std::memory_order_relaxed) == nullptr) {
        return nullptr;
    }
    depot.lock.lock();
    frame_block *batch = depot.head.load(std::memory_order_relaxed);
    if (batch != nullptr) {
        depot.head.store(batch->next_batch, std::memory_order_relaxed);
        --depot.batches;
    }
    depot.lock.unlock();
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
        for (frame_bin &bin : cache.bins) {
            frame_free_list(bin.head);
            frame_free_list(bin.spare);
            bin = frame_bin{};
        }
    }
    void touch() const noexcept {}
};

inline void frame_cache_arm() noexcept {
    static thread_local frame_cache_guard guard;
    guard.touch();
    this_thread_frames.armed = true;
}

[[gnu::noinline, gnu::cold]] inline void *frame_allocate_slow(std::size_t index) {
    frame_cache &cache = this_thread_frames;
    frame_bin &bin = cache.bins[index];
    if (!cache.closed) {
        if (!cache.armed) {
            frame_cache_arm();
        }
        frame_block *batch = bin.spare;
        if (batch != nullptr) {
            bin.spare = nullptr;
        } else {
            batch = frame_depot_take(index);
        }
        if (batch != nullptr) {
            bin.head = batch->next;
            bin.room = 1;
            return batch;
        }
    }
    return ::operator new(frame_bytes(index));
}

[[gnu::noinline, gnu::cold]] inline void frame_free_slow(std::size_t index, void *memory) noexcept {
    frame_cache &cache = this_thread_frames;
    frame_bin &bin = cache.bins[index];
    if (cache.closed) {
        ::operator delete(memory);
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
    auto *block = static_cast<frame_block *>(memory);
    block->next = nullptr;
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
