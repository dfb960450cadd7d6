// SPDX-License-Identifier: MIT
//
// weft/async_scope.hpp: a set of tasks that are started at any time and waited for together.
//
// Life: spawn, ..., co_await join(), destroy. Destroying a scope with tasks outstanding ends the program: they may
// refer to what lives around it. The first exception that escapes a task (operation_cancelled apart) requests
// cancellation of the others, and comes out of join().
#ifndef WEFT_ASYNC_SCOPE_HPP
#define WEFT_ASYNC_SCOPE_HPP

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <source_location>
#include <stdexcept>
#include <utility>

#include "cancellation.hpp"
#include "detail/delay.hpp"
#include "detail/die.hpp"
#include "detail/linked_source.hpp"
#include "detail/operation.hpp"
#include "detail/promise.hpp"
#include "detail/token_watch.hpp"
#include "scheduler.hpp"
#include "spawn.hpp"
#include "task.hpp"

namespace weft {

class async_scope {
public:
    /// where: the scheduler of spawn(work).
    explicit async_scope(scheduler where = current_scheduler()) noexcept : where_(where), at_end_(*this) {}

    async_scope(const async_scope &) = delete;
    async_scope &operator=(const async_scope &) = delete;
    ~async_scope() {
        if (references_.load(std::memory_order_acquire) != 1) {
            detail::die("an async_scope was destroyed while tasks of it were outstanding; co_await join() first");
        }
    }

    /// Starts work on the scope's scheduler. work is an awaitable, or a function that makes one (which is kept until
    /// its coroutine is done). Its result is dropped; it obeys the scope's token. From any thread, also while join()
    /// waits if the caller is a task of the scope. Throws runtime_stopped. Reports of stalls name the place of the call.
    template <detail::spawnable W>
    void spawn(W &&work, std::source_location from = std::source_location::current()) {
        spawn(where_, std::forward<W>(work), from);
    }

    /// spawn on a given scheduler.
    template <detail::spawnable W>
    void spawn(scheduler where, W &&work, std::source_location from = std::source_location::current()) {
        task<void> task = drop_result(detail::to_task(std::forward<W>(work), from));
        // relaxed: the caller holds a reference (the scope is open, or a task of it runs), so nobody sees zero
        // meanwhile.
        references_.fetch_add(1, std::memory_order_relaxed);
        WEFT_TEST_DELAY(scope_counted);
        try {
            detail::start_new(std::move(task), where, at_end_, "async_scope::spawn");
        } catch (...) {
            if (release()) {
                wake_joiner();
            }
            throw;
        }
    }

    /// Requests cancellation of all tasks of the scope, now and later: a scope that was cancelled, or that a task has
    /// failed in, stays cancelled. Does not wait: join() does.
    void request_cancel() noexcept { source_.request(); }

    [[nodiscard]] bool cancel_requested() const noexcept { return weft_cancel_requested(source_.token()) != 0; }

    /// The token that the scope's tasks obey; good for as long as the scope.
    [[nodiscard]] cancellation_token token() const noexcept { return cancellation_token(source_.token()); }

    /// Tasks that have not ended.
    [[nodiscard]] std::size_t outstanding() const noexcept { return references_.load(std::memory_order_relaxed) - open_; }

    class join_awaiter : public detail::native_awaiter {
    public:
        explicit join_awaiter(async_scope &scope) noexcept : scope_(scope) {}
        [[nodiscard]] bool await_ready() const noexcept { return false; }

        template <class Promise>
        [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
            const detail::environment here = detail::environment_of(coroutine);
            if (scope_.open_.exchange(0, std::memory_order_relaxed) == 0) {
                twice_ = true;
                return false;
            }
            WEFT_TEST_DELAY(scope_joining);
            scope_.joiner_ = coroutine;
            scope_.joiner_home_ = here.home;
            watch_.begin(here.token, pass_on, this);
            WEFT_TEST_DELAY(scope_registered);
            return !scope_.release();
        }

        void await_resume() {
            watch_.end();
            if (twice_) {
                throw std::logic_error("weft: async_scope::join while another join waits");
            }
            scope_.references_.store(1, std::memory_order_relaxed);
            scope_.open_.store(1, std::memory_order_relaxed);
            if (scope_.failure_ != nullptr) {
                scope_.failed_.store(false, std::memory_order_relaxed);
                std::rethrow_exception(std::exchange(scope_.failure_, nullptr));
            }
        }

    private:
        static void pass_on(void *context) noexcept {
            auto &self = *static_cast<join_awaiter *>(context);
            const detail::callback_scope scope(self.watch_.registration());
            WEFT_TEST_DELAY(scope_passes_on);
            self.scope_.request_cancel();
        }

        async_scope &scope_;
        bool twice_ = false;
        detail::token_watch watch_;
    };
    using join_operation = detail::operation<join_awaiter, async_scope &>;

    /// Waits until every task has ended; then the scope is empty, and may be used again or destroyed. Resumes on the
    /// awaiting task's home. Throws the first exception that escaped a task. Cancel: a request is passed on to the
    /// tasks, and join still waits for all of them, and returns as without it. One join at a time.
    [[nodiscard]] join_operation join() noexcept { return join_operation(*this); }

private:
    struct end_of_task : detail::spawn_completion {
        explicit end_of_task(async_scope &owner) noexcept : spawn_completion{{at_end}, owner.source_.token()}, scope(owner) {}

        static std::coroutine_handle<> at_end(completion *self, detail::promise_base &child) noexcept {
            async_scope &scope = static_cast<end_of_task *>(self)->scope;
            auto &promise = static_cast<detail::task_promise<void> &>(child);
            std::exception_ptr exception;
            if (promise.slot().failed()) {
                exception = promise.slot().exception();
            }
            // The frame goes first: what its locals and arguments do in their destructors belongs to the task.
            std::coroutine_handle<detail::task_promise<void>>::from_promise(promise).destroy();
            if (exception != nullptr && !detail::ends_quietly(exception)) {
                scope.fail(std::move(exception));
            }
            WEFT_TEST_DELAY(scope_task_ended);
            if (scope.release()) {
                scope.wake_joiner();
            }
            return std::noop_coroutine();
        }

        async_scope &scope;
    };

    static task<void> drop_result(task<void> work) noexcept { return work; }
    template <class T>
    static task<void> drop_result(task<T> work) {
        static_cast<void>(co_await std::move(work));
    }

    void fail(std::exception_ptr exception) noexcept {
        // relaxed: only one gets it; the release in release() hands failure_ to the joiner.
        if (!failed_.exchange(true, std::memory_order_relaxed)) {
            failure_ = std::move(exception);
            source_.request();
        }
    }

    /// Drops a reference; true for the last one, and then the joiner is the caller's to wake.
    [[nodiscard]] bool release() noexcept {
        // acq_rel: release hands on what the task wrote, and joiner_; acquire takes it from all others.
        return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

    /// The joiner may destroy the scope as soon as it runs: nothing of it is touched afterwards.
    void wake_joiner() noexcept { detail::resume_via(joiner_home_, joiner_, joiner_op_); }

    scheduler where_; // immutable
    detail::linked_source source_;
    end_of_task at_end_;                     // immutable
    std::atomic<std::size_t> references_{1}; // one per task, and one of the scope while no join waits
    std::atomic<std::size_t> open_{1};       // 0 while a join waits
    std::atomic<bool> failed_{false};        // somebody has set, or sets, failure_
    std::exception_ptr failure_;             // written once by who set failed_; read by the joiner
    std::coroutine_handle<> joiner_;         // set before the scope's own reference is dropped
    weft_runtime joiner_home_{0};
    weft_op joiner_op_{};
};

} // namespace weft

#endif
