// SPDX-License-Identifier: MIT
//
// weft/resume_on.hpp: moving the task itself.
//
//     co_await weft::resume_on(ui.scheduler());                   // the rest of this task lives there
//     co_await (read_file(name) | weft::resume_on(ui.scheduler()));   // reads here, goes on there
#ifndef WEFT_RESUME_ON_HPP
#define WEFT_RESUME_ON_HPP

#include <coroutine>
#include <stdexcept>
#include <utility>

#include "concepts.hpp"
#include "detail/delay.hpp"
#include "detail/environment.hpp"
#include "detail/operation.hpp"
#include "scheduler.hpp"
#include "task.hpp"

namespace weft {

namespace detail {

/// schedule(), but only if the coroutine is not there already.
class move_awaiter : public schedule_awaiter {
public:
    explicit move_awaiter(weft_runtime target) noexcept : schedule_awaiter(target, false), target_(target) {}

    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        WEFT_TEST_DELAY(move_awaiter_suspends);
        if (target_.id != 0 && weft_runtime_current().id == target_.id) {
            set_home(coroutine, target_);
            return false;
        }
        return schedule_awaiter::await_suspend(coroutine);
    }

private:
    weft_runtime target_;
};

/// Makes the coroutine's continuation resume where the coroutine is now.
class [[nodiscard]] take_parent_along : public native_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class T>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<task_promise<T>> coroutine) const noexcept {
        coroutine.promise().return_to(coroutine.promise().weft_environment().home);
        return false;
    }
    // For the awaiter concept, which knows no promise.
    [[nodiscard]] bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
    void await_resume() const noexcept {}
};

/// Awaits a task and leaves its result, or exception, where it is.
template <class T>
class [[nodiscard]] settle_awaiter : public task_awaiter<T> {
public:
    using task_awaiter<T>::task_awaiter;
    void await_resume() const noexcept {}
};

template <class T>
task<T> move_afterwards(weft_runtime target, task<T> work) {
    if (!work) {
        throw std::logic_error("weft: an empty task was awaited");
    }
    co_await settle_awaiter<T>(work.handle()); // an exception takes the same way as a result: its handler runs over there
    co_await operation<move_awaiter, weft_runtime>(target);
    co_await take_parent_along();
    co_return work.handle().promise().slot().take();
}

/// Awaits a task that has taken its awaiter along.
template <class T>
class [[nodiscard]] follow_awaiter : public task_awaiter<T> {
public:
    follow_awaiter(std::coroutine_handle<task_promise<T>> child, weft_runtime target) noexcept
        : task_awaiter<T>(child), child_(child), target_(target) {}

    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        if constexpr (environment_promise<Promise>) {
            parent_ = &parent.promise().weft_environment();
        }
        return task_awaiter<T>::await_suspend(parent);
    }

    T await_resume() const {
        if (parent_ != nullptr && child_.promise().weft_environment().home.id == target_.id) {
            parent_->home = target_;
        }
        return task_awaiter<T>::await_resume();
    }

private:
    std::coroutine_handle<task_promise<T>> child_;
    weft_runtime target_;
    environment *parent_ = nullptr;
};

/// Holds the task until it is awaited.
template <class T>
class [[nodiscard]] resume_on_operation {
public:
    resume_on_operation(weft_runtime target, task<T> work) : target_(target), work_(move_afterwards(target, std::move(work))) {}
    [[nodiscard]] follow_awaiter<T> operator co_await() && noexcept { return {work_.handle(), target_}; }

private:
    weft_runtime target_;
    task<T> work_;
};

} // namespace detail

/// Awaits work where it is, and moves the awaiting task to a scheduler afterwards, whether work returns or throws. If
/// that fails, the task goes on where it was, with runtime_stopped or operation_cancelled. Single use.
template <awaitable A>
[[nodiscard]] auto resume_on(scheduler where, A &&work) {
    return detail::resume_on_operation<detail::task_result<A>>(where.native(), detail::as_task(std::forward<A>(work)));
}

/// What resume_on(where) returns: an awaitable by itself, and the right side of `work | resume_on(where)`.
class [[nodiscard]] resume_on_adaptor {
public:
    explicit resume_on_adaptor(scheduler where) noexcept : where_(where) {}

    [[nodiscard]] detail::move_awaiter operator co_await() const noexcept { return detail::move_awaiter(where_.native()); }

    template <awaitable A>
    [[nodiscard]] friend auto operator|(A &&work, resume_on_adaptor adaptor) {
        return resume_on(adaptor.where_, std::forward<A>(work));
    }

private:
    scheduler where_;
};

/// Moves the awaiting task to a scheduler: like `co_await where.schedule()`, but a task that is on a worker of it goes
/// on without a detour. It lives there from now on. Throws runtime_stopped, operation_cancelled.
[[nodiscard]] inline resume_on_adaptor resume_on(scheduler where) noexcept { return resume_on_adaptor(where); }

} // namespace weft

#endif
