// SPDX-License-Identifier: MIT
//
// weft/scheduler.hpp: a copyable handle to a runtime, and the awaitables that put a task into its queues.
#ifndef WEFT_SCHEDULER_HPP
#define WEFT_SCHEDULER_HPP

#include <chrono>
#include <coroutine>
#include <cstdint>

#include "c/op.h"
#include "c/runtime.h"
#include "concepts.hpp"
#include "detail/delay.hpp"
#include "detail/environment.hpp"
#include "detail/operation.hpp"
#include "detail/resume.hpp"
#include "detail/time.hpp"
#include "detail/timer_awaiter.hpp"
#include "error.hpp"

namespace weft {

namespace detail {

/// Puts the coroutine into a runtime's queue.
class schedule_awaiter : public native_awaiter {
public:
    schedule_awaiter(weft_runtime target, bool behind) noexcept : target_(target), behind_(behind) {}
    schedule_awaiter(const schedule_awaiter &) = delete;
    schedule_awaiter &operator=(const schedule_awaiter &) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        const environment here = environment_of(coroutine);
        const weft_runtime target = target_; // the calls below might, for all that the compiler knows, write to the frame
        const bool behind = behind_;
        if (here.token != nullptr && weft_cancel_requested(here.token) != 0) {
            code_ = WEFT_ECANCELED;
            return false;
        }
        WEFT_TEST_DELAY(schedule_awaiter_looked);
        // The new home is written first: once the coroutine is queued, another worker may be running it.
        set_home(coroutine, target);
        const int code = schedule_via(target, coroutine, op_, behind);
        WEFT_TEST_DELAY(schedule_awaiter_queued);
        if (code == WEFT_OK) [[likely]] {
            return true;
        }
        set_home(coroutine, here.home);
        code_ = stopped_if_gone(code, target);
        return false;
    }

    void await_resume() const {
        if (code_ != WEFT_OK) [[unlikely]] {
            throw_error(code_, behind_ ? "yield" : "schedule");
        }
    }

protected:
    /// Aims at where the coroutine lives. One that lives nowhere has nobody to yield to.
    template <class Promise>
    [[nodiscard]] bool suspend_at_home(std::coroutine_handle<Promise> coroutine) noexcept {
        target_ = environment_of(coroutine).home;
        return target_.id != 0 && await_suspend(coroutine);
    }

private:
    weft_runtime target_;
    bool behind_;
    int code_ = WEFT_OK;
    weft_op op_; // set when the coroutine is handed over from another thread
};

using schedule_operation = operation<schedule_awaiter, weft_runtime, bool>;

} // namespace detail

/// A handle to a runtime: pass it by value, keep it, compare it. It does not keep the runtime alive; when that has
/// stopped, schedule() throws runtime_stopped.
class scheduler {
public:
    /// A scheduler of no runtime: its awaitables throw error(errc::bad_handle).
    scheduler() noexcept = default;
    explicit scheduler(weft_runtime runtime) noexcept : runtime_(runtime) {}

    /// Queues the coroutine on the runtime; it resumes on a worker, and lives there from now on. On a worker of this
    /// runtime it goes to that worker's own deque, which runs the newest first. Cancel: if the token was requested it
    /// is not queued, and operation_cancelled thrown. Throws runtime_stopped. Single use.
    [[nodiscard]] detail::schedule_operation schedule() const noexcept { return detail::schedule_operation(runtime_, false); }

    /// schedule(), but behind everything that is runnable on this worker.
    [[nodiscard]] detail::schedule_operation yield() const noexcept { return detail::schedule_operation(runtime_, true); }

    /// schedule() after a span of time. Cancel: ends early with operation_cancelled; stop does so too.
    template <class Rep, class Period>
    [[nodiscard]] detail::timer_operation schedule_after(const std::chrono::duration<Rep, Period> &span) const {
        return detail::timer_operation(runtime_, detail::timeout_ns(span), "schedule_after");
    }

    /// schedule() at a point in time of any clock, which is read once, now.
    template <class Clock, class Duration>
    [[nodiscard]] detail::timer_operation schedule_at(const std::chrono::time_point<Clock, Duration> &point) const {
        return detail::timer_operation(runtime_, detail::timeout_until_ns(point), "schedule_at");
    }

    /// The handle of the C interface.
    [[nodiscard]] weft_runtime native() const noexcept { return runtime_; }

    [[nodiscard]] explicit operator bool() const noexcept { return runtime_.id != 0; }

    [[nodiscard]] friend bool operator==(scheduler a, scheduler b) noexcept { return a.runtime_.id == b.runtime_.id; }

private:
    weft_runtime runtime_{0};
};

static_assert(scheduler_like<scheduler>);

/// The scheduler of the runtime that the calling thread is a worker of; an empty one on other threads.
[[nodiscard]] inline scheduler current_scheduler() noexcept { return scheduler(weft_runtime_current()); }

} // namespace weft

#endif
