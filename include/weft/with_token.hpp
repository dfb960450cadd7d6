// SPDX-License-Identifier: MIT
//
// weft/with_token.hpp: running work under another token than its awaiter's.
//
//     co_await (fetch() | weft::with_token(source.token()));   // ends early when source is requested
//     co_await (close_politely() | weft::with_token({}));      // is not cancelled, though the task that awaits it is
#ifndef WEFT_WITH_TOKEN_HPP
#define WEFT_WITH_TOKEN_HPP

#include <coroutine>
#include <utility>

#include "cancellation.hpp"
#include "concepts.hpp"
#include "detail/environment.hpp"
#include "detail/pipe.hpp"
#include "task.hpp"

namespace weft {

namespace detail {

/// Replaces the token of the awaiting coroutine.
class [[nodiscard]] set_token : public native_awaiter {
public:
    explicit set_token(weft_cancel_token token) noexcept : token_(token) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <environment_promise Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) const noexcept {
        coroutine.promise().weft_environment().token = token_;
        return false;
    }
    // For the awaiter concept, which knows no promise.
    [[nodiscard]] bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
    void await_resume() const noexcept {}

private:
    weft_cancel_token token_;
};

template <class T>
task<T> run_with_token(cancellation_token token, task<T> work) {
    co_await set_token(token.native());
    co_return co_await std::move(work);
}

} // namespace detail

/// Work as a task that obeys the given token and not its awaiter's. To obey both, give it the token of a
/// cancellation_source that was made with `co_await this_task::token()`.
template <awaitable A>
[[nodiscard]] auto with_token(cancellation_token token, A &&work) {
    return detail::run_with_token(std::move(token), detail::as_task(std::forward<A>(work)));
}

/// `work | with_token(token)`
[[nodiscard]] inline auto with_token(cancellation_token token) {
    return detail::pipe(
        [token = std::move(token)]<class A>(A &&work) mutable { return with_token(std::move(token), std::forward<A>(work)); });
}

} // namespace weft

#endif
