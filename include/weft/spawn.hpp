// SPDX-License-Identifier: MIT
//
// weft/spawn.hpp: starting work that nobody waits for.
//
// Prefer async_scope, which can be joined. What escapes a spawned task has nobody to go to, and reaches the process's
// unhandled-exception handler; operation_cancelled and runtime_stopped, with which a runtime that stops ends its tasks,
// are no errors there and end in silence.
#ifndef WEFT_SPAWN_HPP
#define WEFT_SPAWN_HPP

#include <atomic>
#include <concepts>
#include <coroutine>
#include <exception>
#include <source_location>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "concepts.hpp"
#include "detail/delay.hpp"
#include "detail/describe.hpp"
#include "detail/die.hpp"
#include "detail/promise.hpp"
#include "error.hpp"
#include "scheduler.hpp"
#include "task.hpp"

namespace weft {

/// Gets what escaped a spawned task. If it returns, the program goes on without that task.
using unhandled_exception_handler = void (*)(std::exception_ptr);

namespace detail {

inline void default_unhandled_exception(std::exception_ptr exception) {
    die_of_exception("an exception escaped a spawned task", exception);
}

// acq_rel in set_unhandled_exception_handler pairs with acquire in unhandled_exception: what the setter prepared is
// visible.
constinit inline std::atomic<unhandled_exception_handler> the_unhandled_exception_handler{default_unhandled_exception};

/// True for the exceptions with which cancellation and stop end a task.
[[nodiscard]] inline bool ends_quietly(const std::exception_ptr &exception) noexcept {
    try {
        std::rethrow_exception(exception);
    } catch (const operation_cancelled &) {
        return true;
    } catch (const runtime_stopped &) {
        return true;
    } catch (...) {
        return false;
    }
}

inline void unhandled_exception(const std::exception_ptr &exception) noexcept {
    if (ends_quietly(exception)) {
        return;
    }
    try {
        the_unhandled_exception_handler.load(std::memory_order_acquire)(exception);
    } catch (...) {
        die_of_exception("an exception escaped the unhandled-exception handler", std::current_exception());
    }
}

/// The end of a spawned task: it destroys itself.
template <class T>
struct detached_completion {
    static std::coroutine_handle<> at_end(completion *, promise_base &child) noexcept {
        auto &promise = static_cast<task_promise<T> &>(child);
        std::exception_ptr exception;
        if (promise.slot().failed()) {
            exception = promise.slot().exception();
        }
        std::coroutine_handle<task_promise<T>>::from_promise(promise).destroy();
        if (exception != nullptr) {
            unhandled_exception(exception);
        }
        return std::noop_coroutine();
    }

    static constinit inline spawn_completion instance{{at_end}, nullptr};
};

/// Queues a task as new work that ends with a completion. If that fails the task is destroyed.
template <class T>
void start_new(task<T> work, scheduler where, spawn_completion &at_end, const char *doing) {
    if (!work) {
        throw std::logic_error("weft: an empty task was spawned");
    }
    WEFT_TEST_DELAY(spawn_made);
    if (const int code = promise_base::spawn(work.handle(), where.native(), at_end); code != WEFT_OK) [[unlikely]] {
        throw_error(stopped_if_gone(code, where.native()), doing);
    }
    static_cast<void>(work.release()); // it may have run, and be gone, already
}

template <class F>
concept task_function = std::invocable<F> && awaitable<std::invoke_result_t<F>>;

/// Calls a function that makes an awaitable, and keeps it alive until that is done: a lambda's captures live here.
template <class F>
task<task_result<std::invoke_result_t<F>>> invoke_in_task(F function) {
    co_return co_await std::move(function)();
}

/// An awaitable, or a function that makes one, as a task that is about to be spawned from there.
template <class W>
[[nodiscard]] auto to_task(W &&work, const std::source_location &from) {
    auto task = [&work] {
        if constexpr (awaitable<std::remove_cvref_t<W>>) {
            return as_task(std::forward<W>(work));
        } else {
            return invoke_in_task<std::remove_cvref_t<W>>(std::forward<W>(work));
        }
    }();
    if (task) {
        describe(function_of(task.handle()), from);
    }
    return task;
}

template <class W>
concept spawnable = awaitable<std::remove_cvref_t<W>> || task_function<std::remove_cvref_t<W>>;

} // namespace detail

/// Sets the handler of the process; nullptr restores the default, which prints what() and calls std::terminate. Returns
/// the one before.
inline unhandled_exception_handler set_unhandled_exception_handler(unhandled_exception_handler handler) noexcept {
    return detail::the_unhandled_exception_handler.exchange(handler == nullptr ? detail::default_unhandled_exception : handler,
                                                            std::memory_order_acq_rel);
}

/// Starts work on a scheduler and forgets it. work is an awaitable, or a function that makes one: a lambda is kept
/// until its coroutine is done, so it may capture. The result is dropped. The task has no token; for one use
/// with_token. Throws runtime_stopped (nothing was started). Reports of stalls name the place of the call.
template <detail::spawnable W>
void spawn(scheduler where, W &&work, std::source_location from = std::source_location::current()) {
    auto task = detail::to_task(std::forward<W>(work), from);
    using T = typename decltype(task)::value_type;
    detail::start_new(std::move(task), where, detail::detached_completion<T>::instance, "spawn");
}

/// spawn on the runtime that the calling thread is a worker of. Throws error(errc::bad_handle) elsewhere.
template <detail::spawnable W>
void spawn(W &&work, std::source_location from = std::source_location::current()) {
    spawn(current_scheduler(), std::forward<W>(work), from);
}

} // namespace weft

#endif
