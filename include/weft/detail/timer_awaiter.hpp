// SPDX-License-Identifier: MIT
//
// The wait for a point in time; sleep_for and scheduler::schedule_after are this. The timer is in the awaiter.
//
// Without a token the timer alone resumes the coroutine. With one, three parties meet in state_: the starter (in
// await_suspend), the timer's run and the token's callback. The callback is registered before the start, so that no
// request is missed; a timer can be cancelled only once it is started; and as soon as the coroutine is resumed, all of
// this may be gone. So:
//   run       sets fired. It resumes the coroutine only if it finds started: before that the starter is still at work here.
//   callback  sets requested. If it finds started it cancels the timer. The coroutine cannot go away meanwhile: before it goes on
//             it deregisters, which waits for the callback.
//   starter   starts the timer; cancels it if it finds requested; sets started as its last access, unless it finds
//             fired, and then it resumes the coroutine itself.
// Each pair is ordered by read-modify-writes of one word, so of any two parties the later sees the earlier: a request
// is acted on by the callback or by the starter, and the coroutine is resumed by run or by the starter, once.
#ifndef WEFT_DETAIL_TIMER_AWAITER_HPP
#define WEFT_DETAIL_TIMER_AWAITER_HPP

#include <atomic>
#include <coroutine>
#include <cstdint>

#include "../c/cancel.h"
#include "../c/timer.h"
#include "../error.hpp"
#include "delay.hpp"
#include "environment.hpp"
#include "operation.hpp"
#include "resume.hpp"
#include "token_watch.hpp"
#include "tsan.hpp"

namespace weft::detail {

class timer_awaiter : public native_awaiter {
public:
    /// target: where the coroutine lives afterwards; {0}: where it lives now.
    timer_awaiter(weft_runtime target, std::int64_t timeout_ns, const char *doing) noexcept
        : target_(target), timeout_ns_(timeout_ns), doing_(doing) {}
    timer_awaiter(const timer_awaiter &) = delete;
    timer_awaiter &operator=(const timer_awaiter &) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        WEFT_TEST_DELAY(timer_awaiter_suspends);
        const environment here = environment_of(coroutine);
        if (target_.id == 0) {
            target_ = here.home;
        }
        set_home(coroutine, target_);
        coroutine_ = coroutine;
        timer_ = weft_timer{};
        timer_.op.context = this;
        const bool suspended = here.token == nullptr ? start() : start_watched(here.token);
        if (!suspended) {
            set_home(coroutine, here.home);
        }
        return suspended;
    }

    void await_resume() {
        watch_.end();
        if (code_ == WEFT_OK) {
            code_ = timer_.status;
        }
        if (code_ != WEFT_OK) {
            throw_error(code_, doing_);
        }
    }

private:
    static constexpr std::uint32_t started = 1;
    static constexpr std::uint32_t fired = 2;
    static constexpr std::uint32_t requested = 4;

    bool start() noexcept {
        timer_.op.run = run;
        const weft_runtime target = target_;
        const std::int64_t timeout_ns = timeout_ns_;
        tsan_release(&timer_.op);
        const int code = weft_schedule_after(target, &timer_, timeout_ns);
        WEFT_TEST_DELAY(timer_awaiter_started);
        if (code != WEFT_OK) {
            code_ = stopped_if_gone(code, target_);
            return false;
        }
        return true;
    }

    bool start_watched(weft_cancel_token token) noexcept {
        state_.store(0, std::memory_order_relaxed); // nobody else knows of it yet
        watch_.begin(token, request, this);
        WEFT_TEST_DELAY(timer_awaiter_registered);
        if ((state_.load(std::memory_order_relaxed) & requested) != 0) {
            code_ = WEFT_ECANCELED;
            return false;
        }
        WEFT_TEST_DELAY(timer_awaiter_looked);
        timer_.op.run = run_watched;
        tsan_release(&timer_.op);
        code_ = stopped_if_gone(weft_schedule_after(target_, &timer_, timeout_ns_), target_);
        if (code_ != WEFT_OK) {
            return false;
        }
        WEFT_TEST_DELAY(timer_awaiter_started_watched);
        bool cancelled = false;
        std::uint32_t state = state_.load(std::memory_order_acquire);
        for (;;) {
            if ((state & fired) != 0) {
                resume_via(target_, coroutine_, timer_.op);
                return true;
            }
            if ((state & requested) != 0 && !cancelled) {
                weft_timer_cancel(&timer_);
                cancelled = true;
            }
            WEFT_TEST_DELAY(timer_awaiter_announcing);
            // release: run_watched and request, which acquire, see the started timer and code_. On failure acquire, for
            // what they wrote. Nothing here is touched after success.
            if (state_.compare_exchange_weak(state, state | started, std::memory_order_release, std::memory_order_acquire)) {
                return true;
            }
        }
    }

    static void run(weft_op *op) noexcept {
        tsan_acquire(op);
        resume_guarded(static_cast<timer_awaiter *>(op->context)->coroutine_);
    }

    static void run_watched(weft_op *op) noexcept {
        tsan_acquire(op);
        auto &self = *static_cast<timer_awaiter *>(op->context);
        const std::coroutine_handle<> coroutine = self.coroutine_;
        WEFT_TEST_DELAY(timer_awaiter_fires);
        // acq_rel: release gives timer_.status to the starter that finds fired; acquire pairs with its setting of
        // started.
        if ((self.state_.fetch_or(fired, std::memory_order_acq_rel) & started) != 0) {
            resume_guarded(coroutine);
        }
    }

    static void request(void *context) noexcept {
        auto &self = *static_cast<timer_awaiter *>(context);
        const callback_scope scope(self.watch_.registration());
        // acq_rel: acquire pairs with the setting of started, for the timer's own words.
        if ((self.state_.fetch_or(requested, std::memory_order_acq_rel) & started) != 0) {
            WEFT_TEST_DELAY(timer_awaiter_cancels);
            weft_timer_cancel(&self.timer_);
        }
    }

    weft_runtime target_;
    std::int64_t timeout_ns_;
    const char *doing_;
    int code_ = WEFT_OK;
    std::atomic<std::uint32_t> state_{0}; // see the head of this file
    std::coroutine_handle<> coroutine_;
    token_watch watch_;
    weft_timer timer_; // set in await_suspend
};

/// target, timeout_ns, doing: as in the awaiter's constructor.
using timer_operation = operation<timer_awaiter, weft_runtime, std::int64_t, const char *>;

} // namespace weft::detail

#endif
