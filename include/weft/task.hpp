// SPDX-License-Identifier: MIT
//
// weft/task.hpp: task<T>, the coroutine type of weft.
//
// A task is lazy: calling the coroutine function only makes it, with its arguments copied or moved into the frame;
// awaiting starts it. It is awaited once, as an rvalue: `co_await f()`, `co_await std::move(t)`. What it returns or
// throws comes out of that expression. A task that is dropped without being awaited never runs.
//
// Home: a task lives on the runtime that it was started on, and is back there after every co_await. schedule(),
// schedule_after() and resume_on() move it; that ends with the task: its awaiter goes on where the awaiter lives.
// Cancellation: a task obeys the token of its awaiter (this_task.hpp).
#ifndef WEFT_TASK_HPP
#define WEFT_TASK_HPP

#include <concepts>
#include <coroutine>
#include <exception>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "concepts.hpp"
#include "detail/promise.hpp"

namespace weft {

template <class T = void>
class task;

namespace detail {

template <class T>
class task_promise_base : public promise_base {
public:
    [[nodiscard]] initial_awaiter initial_suspend() const noexcept { return {}; }
    [[nodiscard]] final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { slot_.set_exception(std::current_exception()); }
    [[nodiscard]] result_slot<T> &slot() noexcept { return slot_; }

private:
    result_slot<T> slot_;
};

template <class T>
class task_promise final : public task_promise_base<T> {
public:
    [[nodiscard]] task<T> get_return_object() noexcept;

    template <class U = T>
        requires std::constructible_from<T, U &&>
    void return_value(U &&value) {
        this->slot().set_value(std::forward<U>(value));
    }
};

template <class T>
class task_promise<T &> final : public task_promise_base<T &> {
public:
    [[nodiscard]] task<T &> get_return_object() noexcept;
    void return_value(T &value) noexcept { this->slot().set_value(value); }
};

template <>
class task_promise<void> final : public task_promise_base<void> {
public:
    [[nodiscard]] inline task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
};

/// The handle, loaded as a word of its own. GCC moves neighbouring tasks, as when_all has them, 16 bytes at a time; but
/// each was just written as a word, and such a load waits until both stores have left the buffer: a fifth of a fork.
template <class Promise>
[[nodiscard, gnu::always_inline]] inline std::coroutine_handle<Promise> one_word(std::coroutine_handle<Promise> handle) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
    void *word = handle.address();
    __asm__("" : "+r"(word));
    return std::coroutine_handle<Promise>::from_address(word);
#else
    return handle;
#endif
}

/// Awaits a task: starts it by symmetric transfer. Resumes on the awaiting coroutine's home. Single use.
template <class T>
class [[nodiscard]] task_awaiter : public native_awaiter {
public:
    explicit task_awaiter(std::coroutine_handle<task_promise<T>> child) noexcept : child_(child) {}

    [[nodiscard]] bool await_ready() const noexcept { return child_ == nullptr; }

    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) const noexcept {
        child_.promise().start(std::coroutine_handle<>(parent), environment_of(parent));
        return transfer(child_);
    }

    T await_resume() const {
        if (child_ == nullptr) {
            throw std::logic_error("weft: an empty task was awaited");
        }
        return child_.promise().slot().take();
    }

private:
    std::coroutine_handle<task_promise<T>> child_;
};

} // namespace detail

template <class T>
class [[nodiscard]] task {
    static_assert(!std::is_rvalue_reference_v<T>, "a task returns a value, an lvalue reference or void");

public:
    using value_type = T;
    using promise_type = detail::task_promise<T>;

    /// An empty task. Awaiting it throws std::logic_error.
    task() noexcept = default;
    task(task &&other) noexcept : coroutine_(detail::one_word(std::exchange(other.coroutine_, nullptr))) {}
    task &operator=(task &&other) noexcept {
        task(std::move(other)).swap(*this);
        return *this;
    }
    ~task() {
        if (coroutine_ != nullptr) {
            coroutine_.destroy();
        }
    }

    void swap(task &other) noexcept { std::swap(coroutine_, other.coroutine_); }

    /// True unless the task is empty (default-made, moved from, or released).
    [[nodiscard]] explicit operator bool() const noexcept { return coroutine_ != nullptr; }

    /// Starts the task; the result of co_await is what it returns. Resumes on the awaiting task's home. Cancel: the
    /// task sees the request in its own awaits. Single use, and the task object must stay until then: it does in
    /// `co_await f()`.
    [[nodiscard]] detail::task_awaiter<T> operator co_await() && noexcept { return detail::task_awaiter<T>(coroutine_); }

    /// Gives up ownership of the coroutine: for those who start it by other means than co_await.
    [[nodiscard]] std::coroutine_handle<promise_type> release() noexcept { return std::exchange(coroutine_, nullptr); }

    /// The coroutine, still owned.
    [[nodiscard]] std::coroutine_handle<promise_type> handle() const noexcept { return coroutine_; }

private:
    friend promise_type;
    explicit task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

template <class T>
task<T &> task_promise<T &>::get_return_object() noexcept {
    return task<T &>(std::coroutine_handle<task_promise>::from_promise(*this));
}

inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

/// What a task that awaits an awaitable returns: rvalue references become values.
template <class A>
using task_result =
    std::conditional_t<std::is_rvalue_reference_v<await_result<A>>, std::remove_cvref_t<await_result<A>>, await_result<A>>;

template <class A>
task<task_result<A>> wrap_in_task(A awaitable) {
    co_return co_await static_cast<A &&>(awaitable);
}

/// Any awaitable as a task; a task is passed on.
template <class A>
    requires awaitable<std::remove_cvref_t<A>>
[[nodiscard]] auto as_task(A &&awaitable) {
    if constexpr (is_task<std::remove_cvref_t<A>>) {
        return std::remove_cvref_t<A>(std::forward<A>(awaitable));
    } else {
        return wrap_in_task<std::remove_cvref_t<A>>(std::forward<A>(awaitable));
    }
}

} // namespace detail
} // namespace weft

#endif
