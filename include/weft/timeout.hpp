// SPDX-License-Identifier: MIT
//
// weft/timeout.hpp: a limit on how long something may take.
//
//     std::string line = co_await weft::timeout(read_line(), 5s);              // throws weft::timed_out
//     std::optional<std::string> line = co_await (read_line() | weft::try_timeout(5s));
#ifndef WEFT_TIMEOUT_HPP
#define WEFT_TIMEOUT_HPP

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "concepts.hpp"
#include "detail/delay.hpp"
#include "detail/join.hpp"
#include "detail/linked_source.hpp"
#include "detail/pipe.hpp"
#include "detail/resume.hpp"
#include "detail/time.hpp"
#include "error.hpp"
#include "task.hpp"

namespace weft {

namespace detail {

/// Runs a child and a timer, and waits for both. The timer is in the awaiter: before the parent goes on, it has been
/// removed, or its run is over.
template <class T>
class timeout_base : public native_awaiter {
public:
    timeout_base(task<T> &child, std::int64_t timeout_ns) : child_(child), timeout_ns_(timeout_ns), state_(*this) {
        if (!child) {
            throw std::logic_error("weft: an empty task was awaited");
        }
    }
    timeout_base(const timeout_base &) = delete;
    timeout_base &operator=(const timeout_base &) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        environment inherited = environment_of(parent);
        parent_ = parent;
        home_ = inherited.home;
        outer_ = inherited.token;
        timer_.op.run = expire;
        timer_.op.context = this;
        tsan_release(&timer_.op);
        code_ = stopped_if_gone(weft_schedule_after(home_, &timer_, timeout_ns_), home_);
        if (code_ != WEFT_OK) {
            return parent;
        }
        WEFT_TEST_DELAY(timeout_started);
        // The timer may fire from here on: it requests source_, which the child then finds requested.
        source_.attach(outer_);
        inherited.token = source_.token();
        child_.handle().promise().start(state_, inherited);
        return transfer(child_.handle());
    }

protected:
    /// Ends the wait. Returns true if the child has been cancelled because the time ran out, and gave in.
    [[nodiscard]] bool gave_up() {
        source_.detach();
        if (code_ != WEFT_OK) {
            throw_error(code_, "timeout");
        }
        if (!expired_ || !child_.handle().promise().slot().failed() || weft_cancel_requested(outer_) != 0) {
            return false;
        }
        try {
            std::rethrow_exception(child_.handle().promise().slot().exception());
        } catch (const operation_cancelled &) {
            return true;
        } catch (...) {
            return false;
        }
    }

    [[nodiscard]] result_slot<T> &slot() noexcept { return child_.handle().promise().slot(); }
    [[nodiscard]] task<T> &child() noexcept { return child_; }

private:
    struct state : completion {
        explicit state(timeout_base &owner) noexcept : completion{at_end}, awaiter(owner) {}
        timeout_base &awaiter;
    };

    static std::coroutine_handle<> at_end(completion *self, promise_base &child) noexcept {
        WEFT_TEST_DELAY(timeout_child_ended);
        timeout_base &awaiter = static_cast<state *>(self)->awaiter;
        // A timer that can no longer be removed will run, runs, or has run: then the second of the two goes on.
        if (weft_timer_remove(&awaiter.timer_) != WEFT_OK && !awaiter.second()) {
            return std::noop_coroutine();
        }
        return child.resume_parent(awaiter.home_, awaiter.parent_);
    }

    static void expire(weft_op *op) noexcept {
        tsan_acquire(op);
        auto &awaiter = *static_cast<timeout_base *>(op->context);
        if (awaiter.timer_.status == WEFT_OK) {
            awaiter.expired_ = true;
            awaiter.source_.request();
        }
        WEFT_TEST_DELAY(timeout_expired);
        if (awaiter.second()) {
            resume_guarded(awaiter.parent_);
        }
    }

    /// True for the second of child and timer. acq_rel: the first hands over what it wrote, the second takes it.
    [[nodiscard]] bool second() noexcept { return ended_.exchange(true, std::memory_order_acq_rel); }

    task<T> &child_;
    std::int64_t timeout_ns_;
    int code_ = WEFT_OK;
    bool expired_ = false;           // written by expire, read after second
    std::atomic<bool> ended_{false}; // one of child and timer has ended
    weft_cancel_token outer_ = nullptr;
    std::coroutine_handle<> parent_;
    weft_runtime home_{0};
    linked_source source_;
    weft_timer timer_{};
    state state_;
};

template <class T>
class [[nodiscard]] timeout_awaiter : public timeout_base<T> {
public:
    using timeout_base<T>::timeout_base;
    T await_resume() {
        if (this->gave_up()) {
            throw timed_out();
        }
        return this->slot().take();
    }
};

template <class T>
class [[nodiscard]] try_timeout_awaiter : public timeout_base<T> {
public:
    using timeout_base<T>::timeout_base;
    std::conditional_t<std::is_void_v<T>, bool, std::optional<value_of<T>>> await_resume() {
        if (this->gave_up()) {
            return {};
        }
        if constexpr (std::is_void_v<T>) {
            this->slot().take();
            return true;
        } else {
            return take_value(this->child());
        }
    }
};

/// Holds the child until it is awaited.
template <class T, template <class> class Awaiter>
class [[nodiscard]] timeout_operation {
public:
    timeout_operation(task<T> child, std::int64_t timeout_ns) noexcept : child_(std::move(child)), timeout_ns_(timeout_ns) {}
    [[nodiscard]] Awaiter<T> operator co_await() && { return Awaiter<T>(child_, timeout_ns_); }

private:
    task<T> child_;
    std::int64_t timeout_ns_;
};

} // namespace detail

/// Awaits work for at most a span of time. When that is over, work is cancelled *and* waited for, and timed_out thrown.
/// Work that succeeds nevertheless counts as success, and any other exception of it comes out as it is; work that
/// ignores cancellation delays this. Resumes on the awaiting task's home. Cancel: work sees the request. Throws
/// error(errc::bad_handle) if the task lives on no runtime. Single use.
template <awaitable A, class Rep, class Period>
[[nodiscard]] auto timeout(A &&work, const std::chrono::duration<Rep, Period> &span) {
    return detail::timeout_operation<detail::task_result<A>, detail::timeout_awaiter>(detail::as_task(std::forward<A>(work)),
                                                                                      detail::timeout_ns(span));
}

/// `work | timeout(span)`
template <class Rep, class Period>
[[nodiscard]] auto timeout(const std::chrono::duration<Rep, Period> &span) {
    return detail::pipe([span]<class A>(A &&work) { return timeout(std::forward<A>(work), span); });
}

/// timeout() whose result tells: std::nullopt if the time ran out, else what work gave. For void: false if it ran out.
template <awaitable A, class Rep, class Period>
[[nodiscard]] auto try_timeout(A &&work, const std::chrono::duration<Rep, Period> &span) {
    return detail::timeout_operation<detail::task_result<A>, detail::try_timeout_awaiter>(detail::as_task(std::forward<A>(work)),
                                                                                          detail::timeout_ns(span));
}

/// `work | try_timeout(span)`
template <class Rep, class Period>
[[nodiscard]] auto try_timeout(const std::chrono::duration<Rep, Period> &span) {
    return detail::pipe([span]<class A>(A &&work) { return try_timeout(std::forward<A>(work), span); });
}

} // namespace weft

#endif
