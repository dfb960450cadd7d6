// SPDX-License-Identifier: MIT
//
// weft/concepts.hpp: what can be awaited, and what tasks can be scheduled on.
#ifndef WEFT_CONCEPTS_HPP
#define WEFT_CONCEPTS_HPP

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {

template <class T>
inline constexpr bool is_handle = false;
template <class Promise>
inline constexpr bool is_handle<std::coroutine_handle<Promise>> = true;

template <class T>
concept suspend_result = std::is_void_v<T> || std::same_as<T, bool> || is_handle<T>;

} // namespace detail

/// Has the three functions that a co_await expression calls.
template <class T>
concept awaiter = requires(T &t, std::coroutine_handle<> h) {
    { t.await_ready() } -> std::convertible_to<bool>;
    { t.await_suspend(h) } -> detail::suspend_result;
    t.await_resume();
};

namespace detail {

template <class T>
concept member_co_await = requires(T &&t) { static_cast<T &&>(t).operator co_await(); };
template <class T>
concept free_co_await = requires(T &&t) { operator co_await(static_cast<T &&>(t)); };

/// What co_await makes of an awaitable: the result of operator co_await, or the thing itself.
template <class T>
decltype(auto) get_awaiter(T &&t) {
    if constexpr (member_co_await<T>) {
        return static_cast<T &&>(t).operator co_await();
    } else if constexpr (free_co_await<T>) {
        return operator co_await(static_cast<T &&>(t));
    } else {
        return static_cast<T &&>(t);
    }
}

template <class T>
using awaiter_of = decltype(get_awaiter(std::declval<T>()));

} // namespace detail

/// Can be co_awaited as an expression of type T&&.
template <class T>
concept awaitable = awaiter<std::remove_reference_t<detail::awaiter_of<T>>>;

/// The type of `co_await` of an expression of type T&&.
template <awaitable T>
using await_result = decltype(std::declval<std::remove_reference_t<detail::awaiter_of<T>> &>().await_resume());

/// A copyable handle to a place where tasks run: scheduler, inline_scheduler, or a user's own.
template <class T>
concept scheduler_like = std::copyable<std::remove_cvref_t<T>> && std::equality_comparable<std::remove_cvref_t<T>> &&
                         requires(const std::remove_cvref_t<T> &t) {
                             { t.schedule() } -> awaitable;
                         };

} // namespace weft

#endif
