// SPDX-License-Identifier: MIT
//
// weft/this_task.hpp: what a task can ask about itself, with co_await.
//
//     weft::cancellation_token token = co_await weft::this_task::token();
#ifndef WEFT_THIS_TASK_HPP
#define WEFT_THIS_TASK_HPP

#include <coroutine>

#include "cancellation.hpp"
#include "detail/environment.hpp"
#include "detail/operation.hpp"
#include "detail/run_loop.hpp"
#include "scheduler.hpp"

namespace weft {

namespace detail {

/// Looks at the environment of the awaiting coroutine, which goes on at once.
class environment_awaiter : public native_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        environment_ = environment_of(coroutine);
        return false;
    }

protected:
    environment environment_{};
};

class [[nodiscard]] token_awaiter : public environment_awaiter {
public:
    [[nodiscard]] cancellation_token await_resume() const noexcept { return cancellation_token(environment_.token); }
};

class [[nodiscard]] check_awaiter : public environment_awaiter {
public:
    void await_resume() const { cancellation_token(environment_.token).throw_if_requested(); }
};

class [[nodiscard]] home_awaiter : public environment_awaiter {
public:
    [[nodiscard]] scheduler await_resume() const noexcept {
        return run_loop::of(environment_.home) == nullptr ? scheduler(environment_.home) : scheduler();
    }
};

/// schedule_awaiter whose target is the coroutine's home.
class yield_awaiter : public schedule_awaiter {
public:
    yield_awaiter() noexcept : schedule_awaiter(weft_runtime{0}, true) {}

    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        return suspend_at_home(coroutine);
    }
};

} // namespace detail

namespace this_task {

/// The token that this task obeys. It is valid while the task runs: give it to what the task waits for, not to what
/// outlives it.
[[nodiscard]] inline detail::token_awaiter token() noexcept { return {}; }

/// Throws operation_cancelled if the task's token was requested. For loops that compute and never wait.
[[nodiscard]] inline detail::check_awaiter throw_if_cancelled() noexcept { return {}; }

/// The scheduler of the runtime that the task lives on; an empty one if it lives on none (sync_wait without a
/// scheduler).
[[nodiscard]] inline detail::home_awaiter scheduler() noexcept { return {}; }

/// Goes behind everything that is runnable on this worker. Cancel: operation_cancelled instead, if the token was
/// requested. Throws runtime_stopped. A task that lives on no runtime goes behind what its thread has to resume.
[[nodiscard]] inline detail::operation<detail::yield_awaiter> yield() noexcept {
    return detail::operation<detail::yield_awaiter>();
}

} // namespace this_task
} // namespace weft

#endif
