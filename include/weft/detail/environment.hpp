// SPDX-License-Identifier: MIT
//
// What flows down the await tree: where a coroutine lives and which token it obeys. A weft promise carries an
// environment and offers it as weft_environment(); awaiters read it, and change home, in await_suspend, before they
// hand the coroutine to anybody. Coroutines of other libraries have none: they get the calling worker's runtime and no
// token.
#ifndef WEFT_DETAIL_ENVIRONMENT_HPP
#define WEFT_DETAIL_ENVIRONMENT_HPP

#include <concepts>
#include <coroutine>

#include "../c/cancel.h"
#include "../c/op.h"
#include "../c/runtime.h"

namespace weft::detail {

struct environment {
    weft_runtime home;       // where the coroutine resumes; {0}: wherever it is resumed; or a run_loop
    weft_cancel_token token; // outlives the coroutine; nullptr is never requested
};

template <class Promise>
concept environment_promise = requires(Promise &promise) {
    { promise.weft_environment() } noexcept -> std::same_as<environment &>;
};

/// The environment of a coroutine that is being suspended.
template <class Promise>
[[nodiscard]] environment environment_of(std::coroutine_handle<Promise> coroutine) noexcept {
    if constexpr (environment_promise<Promise>) {
        return coroutine.promise().weft_environment();
    } else {
        static_cast<void>(coroutine);
        return environment{weft_runtime_current(), nullptr};
    }
}

/// Moves a coroutine that is being suspended to another home.
template <class Promise>
void set_home(std::coroutine_handle<Promise> coroutine, weft_runtime home) noexcept {
    if constexpr (environment_promise<Promise>) {
        coroutine.promise().weft_environment().home = home;
    } else {
        static_cast<void>(coroutine);
        static_cast<void>(home);
    }
}

/// Base of awaiters that resume their coroutine on its home by themselves. A task wraps all others (foreign.hpp).
struct native_awaiter {};

} // namespace weft::detail

#endif
