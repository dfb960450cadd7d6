// SPDX-License-Identifier: MIT
//
// weft/sync_wait.hpp: the way from a plain thread into coroutines: block until an awaitable is done.
#ifndef WEFT_SYNC_WAIT_HPP
#define WEFT_SYNC_WAIT_HPP

#include <coroutine>
#include <stdexcept>
#include <utility>

#include "concepts.hpp"
#include "detail/delay.hpp"
#include "detail/promise.hpp"
#include "detail/run_loop.hpp"
#include "error.hpp"
#include "scheduler.hpp"
#include "task.hpp"

namespace weft {

namespace detail {

/// Ends the loop of the thread that waits.
struct sync_wait_completion : spawn_completion {
    explicit sync_wait_completion(run_loop &waiting) noexcept : spawn_completion{{at_end}, nullptr}, loop(waiting) {}

    static std::coroutine_handle<> at_end(completion *self, promise_base &) noexcept {
        WEFT_TEST_DELAY(sync_wait_ended);
        static_cast<sync_wait_completion *>(self)->loop.finish(); // the waiting thread may destroy the child from here on
        return std::noop_coroutine();
    }

    run_loop &loop;
};

template <class T>
T sync_wait(weft_runtime home, task<T> work) {
    if (weft_runtime_current().id != 0) {
        throw std::logic_error("weft: sync_wait would block a worker; co_await instead");
    }
    const auto coroutine = work.handle();
    if (coroutine == nullptr) {
        throw std::logic_error("weft: an empty task was awaited");
    }
    run_loop loop;
    sync_wait_completion at_end(loop);
    {
        const inline_session session;
        const std::size_t mark = this_thread_lane.size;
        if (home.id == 0) {
            coroutine.promise().start(at_end, environment{loop.home(), nullptr});
            inline_lane_push(coroutine);
        } else {
            if (const int code = promise_base::spawn(coroutine, home, at_end); code != WEFT_OK) {
                throw_error(stopped_if_gone(code, home), "sync_wait");
            }
        }
        loop.run(mark);
    }
    return coroutine.promise().slot().take();
}

} // namespace detail

/// Runs an awaitable to its end and returns its result, or throws its exception. The work starts on the calling thread
/// and comes back to it after every await, as if the thread were a runtime with one worker, but without timers and I/O:
/// for those give a scheduler. Blocks. On a worker it throws std::logic_error.
template <awaitable A>
detail::task_result<A> sync_wait(A &&work) {
    return detail::sync_wait(weft_runtime{0}, detail::as_task(std::forward<A>(work)));
}

/// sync_wait for work that lives on a scheduler's runtime. Throws runtime_stopped.
template <awaitable A>
detail::task_result<A> sync_wait(scheduler where, A &&work) {
    if (!where) {
        throw error(WEFT_EBADHANDLE, "sync_wait");
    }
    return detail::sync_wait(where.native(), detail::as_task(std::forward<A>(work)));
}

} // namespace weft

#endif
