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

/// What stands before a function that is posted to the thread's own worker, whose queue asks for no more: a third of an op.
struct runnable {
    void (*run)(runnable *) noexcept;
};

/// An op, or a runnable, and the function that it calls, in one block of the frames' pool.
template <class Head, class F>
struct posted : Head {
    static_assert(alignof(F) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "post: the function is over-aligned");

    F function;

    template <class G>
    [[nodiscard]] static posted *make(G &&function) {
        void *memory = frame_allocate(sizeof(posted));
        try {
            return ::new (memory) posted{Head{run}, std::forward<G>(function)};
        } catch (...) {
            frame_free(memory, sizeof(posted));
            throw;
        }
    }

    static void run(Head *head) noexcept {
        tsan_acquire(head);
        auto *self = static_cast<posted *>(head);
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

/// Makes the block, and has schedule() queue it; gives it up when that fails.
template <class Head, class F, class Schedule>
void post_as(F &&function, const std::source_location &from, Schedule schedule) {
    using posted = detail::posted<Head, std::decay_t<F>>;
    posted *self = posted::make(std::forward<F>(function));
    describe(reinterpret_cast<any_function>(posted::run), from);
    tsan_release(self);
    WEFT_TEST_DELAY(post_made);
    const int code = schedule(self);
    if (code != WEFT_OK) [[unlikely]] {
        self->discard();
        throw_error(code, "post");
    }
}

} // namespace detail

/// Calls function() once on a worker of the runtime. On a worker of this runtime it goes to that worker's own deque, which
/// runs the newest first; from elsewhere it is injected. An exception that escapes the function ends the program.
/// Throws runtime_stopped, error(errc::bad_handle), and what copying or moving the function throws; it is not called then.
/// From any thread; never blocks.
/// Reports of stalls name the place of the call.
template <std::invocable F>
void post(scheduler where, F &&function, std::source_location from = std::source_location::current()) {
    const weft_runtime target = where.native();
    if (target.id != 0 && weft_runtime_current().id == target.id) {
        detail::post_as<detail::runnable>(std::forward<F>(function), from,
                                          [target](detail::runnable *self) { return weft_schedule_local(target, self, 0); });
    } else {
        detail::post_as<weft_op>(std::forward<F>(function), from, [target](weft_op *self) { return weft_schedule(target, self); });
    }
}

} // namespace weft

#endif
