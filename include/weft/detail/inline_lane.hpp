// SPDX-License-Identifier: MIT
//
// The lane of threads that are no workers: a list of coroutines that this thread is about to resume, newest first.
// While a session is open on a thread, a coroutine that must run here is listed and not resumed on the spot; the
// outermost session resumes what is listed when its own work is done. So resumption never nests deeply, and no
// coroutine runs inside a cancel callback, where it could destroy the source that is being requested.
#ifndef WEFT_DETAIL_INLINE_LANE_HPP
#define WEFT_DETAIL_INLINE_LANE_HPP

#include <coroutine>
#include <cstddef>
#include <cstdlib>

#include "die.hpp"

namespace weft::detail {

struct inline_lane {
    void **items = nullptr;   // owner: thread; frame addresses
    std::size_t size = 0;     // owner: thread
    std::size_t capacity = 0; // owner: thread
    bool open = false;        // owner: thread; a session will resume what is listed
};

constinit inline thread_local inline_lane this_thread_lane{};

/// The address near which symmetric transfers of this thread began; a hint, used by transfer.hpp.
constinit inline thread_local char *this_thread_stack_base = nullptr;

// Not inlined into coroutines: an address of a thread-local variable that is kept across a suspension would be another
// thread's.
[[gnu::noinline]] inline void inline_lane_push(std::coroutine_handle<> coroutine) noexcept {
    inline_lane &lane = this_thread_lane;
    if (lane.size == lane.capacity) {
        const std::size_t capacity = lane.capacity == 0 ? 16 : lane.capacity * 2;
        void *grown = std::realloc(static_cast<void *>(lane.items), capacity * sizeof(void *));
        if (grown == nullptr) {
            die("out of memory while a coroutine was being resumed");
        }
        lane.items = static_cast<void **>(grown);
        lane.capacity = capacity;
    }
    lane.items[lane.size++] = coroutine.address();
}

/// Resumes what was listed on this thread since it held mark items.
[[gnu::noinline]] inline void inline_lane_drain(std::size_t mark) noexcept {
    while (this_thread_lane.size > mark) {
        std::coroutine_handle<>::from_address(this_thread_lane.items[--this_thread_lane.size]).resume();
    }
}

/// Opens the lane of this thread, or joins the session that is open. The outermost session is the bottom of the stack
/// of what it resumes.
class inline_session {
public:
    inline_session() noexcept : outermost_(!this_thread_lane.open), outer_base_(this_thread_stack_base) {
        this_thread_lane.open = true;
        if (outermost_) {
            this_thread_stack_base = reinterpret_cast<char *>(this);
        }
    }
    inline_session(const inline_session &) = delete;
    inline_session &operator=(const inline_session &) = delete;
    ~inline_session() {
        if (outermost_) {
            close();
        }
    }

private:
    [[gnu::noinline]] void close() const noexcept {
        inline_lane_drain(0);
        inline_lane &lane = this_thread_lane;
        std::free(static_cast<void *>(lane.items));
        lane = inline_lane{};
        this_thread_stack_base = outer_base_;
    }

    const bool outermost_;
    char *const outer_base_;
};

/// Resumes a coroutine on this thread: now, or when the open session gets to it.
[[gnu::noinline]] inline void inline_resume(std::coroutine_handle<> coroutine) noexcept {
    const inline_session session;
    inline_lane_push(coroutine);
}

} // namespace weft::detail

#endif
