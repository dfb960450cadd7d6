// SPDX-License-Identifier: MIT
//
// weft/detail/frame_pool.hpp: reuse, one-way traffic, bursts, the end of a thread; and what allocates at all. It
// replaces operator new for the whole program, to count.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include <weft/async_scope.hpp>
#include <weft/cancellation.hpp>
#include <weft/channel.hpp>
#include <weft/detail/frame_pool.hpp>
#include <weft/event.hpp>
#include <weft/mutex.hpp>
#include <weft/sleep.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/timeout.hpp>
#include <weft/when_all.hpp>
#include <weft/when_any.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using weft::detail::frame_allocate;
using weft::detail::frame_free;

TEST_CASE("frame pool: every size fits, is aligned and comes back") {
    std::vector<std::pair<void *, std::size_t>> frames;
    for (std::size_t size = 1; size < 5000; size += 7) {
        void *memory = frame_allocate(size);
        CHECK(reinterpret_cast<std::uintptr_t>(memory) % __STDCPP_DEFAULT_NEW_ALIGNMENT__ == 0);
        std::fill_n(static_cast<unsigned char *>(memory), size, static_cast<unsigned char>(size));
        frames.emplace_back(memory, size);
    }
    bool intact = true;
    for (const auto &[memory, size] : frames) {
        for (std::size_t i = 0; i < size; ++i) {
            intact = intact && static_cast<unsigned char *>(memory)[i] == static_cast<unsigned char>(size);
        }
        frame_free(memory, size);
    }
    CHECK(intact);
}

// Builds with a memory sanitizer have no pool, and an operator new of their own.
#if !WEFT_DETAIL_CHECKED_MEMORY

namespace {

std::atomic<long> allocated{0}; // calls of operator new
std::atomic<long> chunks{0};    // of the pool: aligned allocations that have not come back

} // namespace

void *operator new(std::size_t size) {
    void *memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    allocated.fetch_add(1, std::memory_order_relaxed);
    return memory;
}

void operator delete(void *memory) noexcept { std::free(memory); }

void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }

void *operator new(std::size_t size, std::align_val_t alignment) {
    const auto step = static_cast<std::size_t>(alignment);
#if defined(_WIN32)
    void *memory = _aligned_malloc(size, step);
#else
    void *memory = std::aligned_alloc(step, (size + step - 1) / step * step);
#endif
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    allocated.fetch_add(1, std::memory_order_relaxed);
    chunks.fetch_add(1, std::memory_order_relaxed);
    return memory;
}

void operator delete(void *memory, std::align_val_t) noexcept {
    chunks.fetch_sub(1, std::memory_order_relaxed);
#if defined(_WIN32)
    _aligned_free(memory);
#else
    std::free(memory);
#endif
}

namespace {

constexpr long reserved = weft::detail::frame_reserve_bytes / weft::detail::frame_chunk_alignment;

} // namespace

TEST_CASE("frame pool: what is freed is given out again, without the allocator") {
    void *first = frame_allocate(120);
    frame_free(first, 120);
    const long before = allocated;
    for (int i = 0; i < 1000; ++i) {
        void *memory = frame_allocate(128); // the same class
        CHECK(memory == first);
        frame_free(memory, 128);
    }
    CHECK(allocated == before);
}

TEST_CASE("frame pool: a million frames that are freed on another thread than allocated") {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<void *> queue;
    constexpr int frames = 1'000'000;
    constexpr std::size_t most = 1000; // in flight
    const long before = chunks;
    long peak = 0;
    std::thread consumer([&] {
        for (int done = 0; done < frames;) {
            std::deque<void *> taken;
            {
                std::unique_lock lock(mutex);
                changed.wait(lock, [&] { return !queue.empty(); });
                taken.swap(queue);
                changed.notify_all();
            }
            for (void *memory : taken) {
                frame_free(memory, 256);
                ++done;
            }
        }
    });
    for (int i = 0; i < frames; ++i) {
        void *memory = frame_allocate(256);
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return queue.size() < most; });
        queue.push_back(memory);
        changed.notify_all();
        if (i % 1024 == 0) {
            peak = std::max(peak, chunks - before);
        }
    }
    consumer.join();
    MESSAGE("at most " << peak << " chunks");
    CHECK(peak < 5000 * 256 / 65536);
    CHECK(chunks - before < 5000 * 256 / 65536);
}

TEST_CASE("frame pool: after a burst the peak is given back") {
    const long before = chunks;
    {
        std::vector<void *> frames;
        for (int i = 0; i < 1'500'000; ++i) {
            frames.push_back(frame_allocate(128));
        }
        CHECK(chunks - before >= 2900);
        std::shuffle(frames.begin(), frames.end(), std::minstd_rand(1));
        for (void *memory : frames) {
            frame_free(memory, 128);
        }
    }
    // What the depot and this thread keep may hold a chunk for each of its blocks.
    const long scattered = static_cast<long>(weft::detail::frame_depot_bytes / 128) + 3 * 32;
    const long kept = chunks - before;
    MESSAGE(kept << " chunks kept");
    CHECK(kept <= reserved + scattered);
    CHECK(kept < 2000);
    std::vector<void *> frames; // and another class uses them
    for (int i = 0; i < 10'000; ++i) {
        frames.push_back(frame_allocate(64));
    }
    CHECK(chunks - before == kept);
    for (void *memory : frames) {
        frame_free(memory, 64);
    }
}

TEST_CASE("frame pool: a burst that ends in the order in which it began leaves no more than is reserved") {
    const long before = chunks; // the reserve is full
    std::vector<void *> frames;
    for (int i = 0; i < 1'000'000; ++i) {
        frames.push_back(frame_allocate(192));
    }
    for (void *memory : frames) {
        frame_free(memory, 192);
    }
    CHECK(chunks - before <= 4);
}

TEST_CASE("frame pool: a thread that ends gives back what it had") {
    void *first = nullptr;
    std::thread([&] {
        std::vector<void *> frames;
        for (int i = 0; i < 10; ++i) {
            frames.push_back(frame_allocate(1500));
        }
        first = frames.front();
        for (void *memory : frames) {
            frame_free(memory, 1500);
        }
    }).join();
    std::vector<void *> frames; // so they can be had here, from the same chunk
    bool found = false;
    for (int i = 0; i < 40; ++i) {
        frames.push_back(frame_allocate(1500));
        found = found || frames.back() == first;
    }
    CHECK(found);
    for (void *memory : frames) {
        frame_free(memory, 1500);
    }
    const long before = chunks;
    for (int i = 0; i < 1000; ++i) { // threads that only free
        std::thread([&, memory = frame_allocate(1400)] { frame_free(memory, 1400); }).join();
    }
    CHECK(chunks - before <= 0);
}

// From here on frames come from the pool, so that whatever else allocates shows.
TEST_CASE("frame pool: awaiting allocates nothing") {
    test::run(1, []() -> weft::task<> {
        weft::event set(true);
        weft::auto_reset_event automatic;
        weft::mutex mutex;
        weft::channel<int> channel(2);
        const weft::cancellation_source source;
        const auto child = []() -> weft::task<int> { co_return 1; };
        const auto everything = [&]() -> weft::task<> {
            co_await weft::this_task::yield();
            co_await weft::current_scheduler().schedule();
            co_await weft::sleep_for(std::chrono::nanoseconds(1));
            co_await set.wait();
            automatic.set();
            co_await automatic.wait();
            const auto guard = co_await mutex.scoped_lock();
            static_cast<void>(co_await channel.send(1));
            static_cast<void>(co_await channel.receive());
            static_cast<void>(co_await child());
            static_cast<void>(co_await weft::when_all(child(), child()));
            static_cast<void>(co_await weft::when_any(child(), child()));
            static_cast<void>(co_await weft::timeout(child(), std::chrono::hours(1)));
            static_cast<void>(co_await weft::this_task::token());
            weft::async_scope scope;
            scope.spawn(child());
            co_await scope.join();
        };
        for (int i = 0; i < 10; ++i) { // fills the pool
            co_await everything();
            co_await (everything() | weft::with_token(source.token()));
        }
        const long before = allocated;
        for (int i = 0; i < 100; ++i) {
            co_await everything();
            co_await (everything() | weft::with_token(source.token()));
        }
        CHECK(allocated - before == 0);
    });
}
#endif
