// SPDX-License-Identifier: MIT
//
// weft/blocking.hpp: calling what blocks without holding a worker.
//
//     std::string text = co_await weft::blocking([&] { return slow_library_call(name); });
//
// Under GCC 12, give a function that captures by value a name, and move it in (docs/guide.md says why).
#ifndef WEFT_BLOCKING_HPP
#define WEFT_BLOCKING_HPP

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "c/blocking.h"
#include "cancellation.hpp"
#include "detail/environment.hpp"
#include "detail/promise.hpp"
#include "detail/resume.hpp"
#include "detail/token_watch.hpp"
#include "detail/tsan.hpp"
#include "error.hpp"
#include "scheduler.hpp"

namespace weft {

/// Kinds of blocking calls. Each has threads of its own to run on: calls of one that hang do not hold up those of another.
enum class blocking_kind : std::uint32_t {
    call = WEFT_BLOCKING_CALL,   // what blocking() is for
    file = WEFT_BLOCKING_FILE,   // what file.hpp does, and a program's own calls that behave alike
    other = WEFT_BLOCKING_OTHER, // a second kind for a program's own calls
};

namespace detail {

template <class F>
concept blocking_with_token = std::invocable<F, cancellation_token>;

template <class F>
concept blocking_function = std::move_constructible<F> && (blocking_with_token<F> || std::invocable<F>);

template <class F>
struct blocking_call {
    using type = std::invoke_result_t<F>;
};
template <blocking_with_token F>
struct blocking_call<F> {
    using type = std::invoke_result_t<F, cancellation_token>;
};

/// What co_await gives: what the function returns, an rvalue reference as a value.
template <class F>
using blocking_result =
    std::conditional_t<std::is_rvalue_reference_v<typename blocking_call<F>::type>,
                       std::remove_cvref_t<typename blocking_call<F>::type>, typename blocking_call<F>::type>;

/// The awaiter is the op and holds the function and its result. The cancel callback is registered before the submission, so no
/// request is missed; after an accepted submission the frame may run, or be gone, on another thread.
template <class F>
class blocking_awaiter : private weft_blocking, public native_awaiter {
    using result = blocking_result<F>;

public:
    blocking_awaiter(weft_runtime on, F &&function, blocking_kind kind) noexcept(std::is_nothrow_move_constructible_v<F>)
        : weft_blocking{}, on_(on), function_(std::move(function)), submitted_as_(kind) {}
    blocking_awaiter(const blocking_awaiter &) = delete;
    blocking_awaiter &operator=(const blocking_awaiter &) = delete;

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }

    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        const environment where = environment_of(coroutine);
        home_ = where.home;
        token_ = where.token;
        weft_blocking &self = *this;
        self.op.run = complete;
        self.op.context = coroutine.address();
        self.call = run;
        watch_.begin(where.token, request, &self);
        const weft_runtime on = on_.id != 0 ? on_ : where.home;
        tsan_release(&self);
        const int submitted = weft_blocking_submit(on, &self, static_cast<std::uint32_t>(submitted_as_));
        if (submitted < 0) {
            self.status = submitted;
        }
        return submitted == WEFT_OK;
    }

    result await_resume() {
        watch_.end();
        if (this->status != WEFT_OK) {
            throw_error(this->status, "blocking");
        }
        return slot_.take();
    }

private:
    static blocking_awaiter &of(weft_blocking *self) noexcept { return *static_cast<blocking_awaiter *>(self); }

    static void request(void *self) noexcept { weft_blocking_cancel(static_cast<weft_blocking *>(self)); }

    decltype(auto) invoke() {
        if constexpr (blocking_with_token<F>) {
            return std::invoke(std::move(function_), cancellation_token(token_));
        } else {
            return std::invoke(std::move(function_));
        }
    }

    // On a thread of the pool.
    static void run(weft_blocking *op) noexcept {
        tsan_acquire(op);
        blocking_awaiter &self = of(op);
        try {
            if constexpr (std::is_void_v<result>) {
                self.invoke();
            } else {
                self.slot_.set_value(self.invoke());
            }
        } catch (...) {
            self.slot_.set_exception(std::current_exception());
        }
        tsan_release(op);
    }

    // On a worker of the pool's runtime, which need not be the coroutine's home.
    static void complete(weft_op *op) noexcept {
        tsan_acquire(op);
        const auto coroutine = std::coroutine_handle<>::from_address(op->context);
        const weft_runtime home = of(reinterpret_cast<weft_blocking *>(op)).home_;
        if (home.id == 0 || home.id == weft_runtime_current().id) [[likely]] {
            resume_guarded(coroutine);
        } else {
            resume_from_outside(home, coroutine, *op);
        }
    }

    weft_runtime on_; // {0}: the coroutine's home
    F function_;
    blocking_kind submitted_as_;
    weft_runtime home_{0};
    weft_cancel_token token_ = nullptr;
    token_watch watch_;
    result_slot<result> slot_;
};

} // namespace detail

/// What blocking() returns: holds the function until it is awaited, once, as an rvalue.
template <class F>
class [[nodiscard]] blocking_operation {
public:
    blocking_operation(weft_runtime on, F &&function, blocking_kind kind) noexcept(std::is_nothrow_move_constructible_v<F>)
        : on_(on), function_(std::move(function)), kind_(kind) {}
    blocking_operation(weft_runtime on, const F &function, blocking_kind kind) : on_(on), function_(function), kind_(kind) {}

    [[nodiscard]] detail::blocking_awaiter<F> operator co_await() && {
        return detail::blocking_awaiter<F>(on_, std::move(function_), kind_);
    }

private:
    weft_runtime on_;
    F function_;
    blocking_kind kind_;
};

/// Calls a function, which may block, on a thread of the blocking pool of the runtime that the task lives on. The result of
/// co_await is what it returns, or throws; it may be void, a reference, or a type that can only be moved. The function is moved
/// into the awaiting frame, called once, as an rvalue, and destroyed with the awaiter. Inside it no worker is
/// there: weft_runtime_current() is none, and sync_wait is allowed.
/// Resumes on the awaiting task's home. Cancel: a call that waits for a thread never starts, and operation_cancelled is thrown;
/// one that runs is waited for, and its result given. A function that takes a cancellation_token gets the task's, to look at.
/// Stop: as a cancel, but the token does not tell it. Throws runtime_stopped; error(errc::bad_handle) if the task lives on no runtime;
/// error(errc::limit_reached) if the system has no thread for it. Single use.
template <class F>
    requires detail::blocking_function<std::decay_t<F>>
[[nodiscard]] auto blocking(F &&function, blocking_kind kind = blocking_kind::call) {
    return blocking_operation<std::decay_t<F>>(weft_runtime{0}, std::forward<F>(function), kind);
}

/// blocking() in the pool of another runtime. Resumes on the awaiting task's home all the same.
template <class F>
    requires detail::blocking_function<std::decay_t<F>>
[[nodiscard]] auto blocking(scheduler on, F &&function, blocking_kind kind = blocking_kind::call) {
    return blocking_operation<std::decay_t<F>>(on.native(), std::forward<F>(function), kind);
}

} // namespace weft

#endif
