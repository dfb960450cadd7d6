// SPDX-License-Identifier: MIT
//
// weft/post.hpp: a function as an op: the cheapest way to have something done on a worker when no coroutine is needed.
#ifndef WEFT_POST_HPP
#define WEFT_POST_HPP

#include <concepts>
#include <exception>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

#include "c/op.h"
#include "detail/delay.hpp"
#include "detail/describe.hpp"
#include "detail/die.hpp"
#include "detail/frame_pool.hpp"
#include "detail/tsan.hpp"
#include "error.hpp"
#include "scheduler.hpp"

namespace weft {

namespace detail {

/// An op and the function that it calls, in one block of the frames' pool.
template <class F>
struct posted : weft_op {
    static_assert(alignof(F) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "post: the function is over-aligned");

    F function;

    static void run(weft_op *op) noexcept {
        tsan_acquire(op);
        auto *self = static_cast<posted *>(op);
        try {
            // Out of the block first: the function may run for long, or end its thread's program.
            F function = std::move(self->function);
            self->discard();
            std::move(function)();
        } catch (...) {
            die_of_exception("an exception escaped an op", std::current_exception());
        }
    }

    void discard() noexcept {
        std::destroy_at(this);
        frame_free(this, sizeof(posted));
    }
};

} // namespace detail

/// Calls function() once on a worker of the runtime. On a worker of this runtime it goes to that worker's own deque, which
/// runs the newest first; from elsewhere it is injected. An exception that escapes the function ends the program.
/// Throws runtime_stopped, error(errc::bad_handle), and what copying or moving the function throws; it is not called then.
/// From any thread; never blocks.
/// Reports of stalls name the place of the call.
template <std::invocable F>
void post(scheduler where, F &&function, std::source_location from = std::source_location::current()) {
    using posted = detail::posted<std::decay_t<F>>;
    void *memory = detail::frame_allocate(sizeof(posted));
    posted *self = nullptr;
    try {
        self = ::new (memory) posted{weft_op{posted::run, nullptr, nullptr, 0}, std::forward<F>(function)};
    } catch (...) {
        detail::frame_free(memory, sizeof(posted));
        throw;
    }
    detail::describe(reinterpret_cast<detail::any_function>(posted::run), from);
    detail::tsan_release(self);
    WEFT_TEST_DELAY(post_made);
    const int code = weft_schedule(where.native(), self);
    if (code != WEFT_OK) {
        self->discard();
        throw_error(code, "post");
    }
}

} // namespace weft

#endif
