// SPDX-License-Identifier: MIT
//
// What all promises of weft share: who is resumed at the end, the environment, the memory of the frame.
//
// States of a task's coroutine: created (owned by its task object; nothing below is set) -> started (start has been
// called; on its way to, or past, its first resumption) -> finished (suspended at its final point; the result is there;
// links_ is dead and may serve as an op) -> destroyed, by whoever owns the task object, or by the completion.
#ifndef WEFT_DETAIL_PROMISE_HPP
#define WEFT_DETAIL_PROMISE_HPP

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "../concepts.hpp"
#include "delay.hpp"
#include "describe.hpp"
#include "die.hpp"
#include "environment.hpp"
#include "foreign.hpp"
#include "frame_pool.hpp"
#include "transfer.hpp"

namespace weft::detail {

class promise_base;

/// What happens at the end of a coroutine that no single coroutine awaits.
struct completion {
    /// Takes note that child is finished; returns what to resume next on this thread. May destroy child's coroutine.
    std::coroutine_handle<> (*complete)(completion *self, promise_base &child) noexcept;
};

/// The completion of a coroutine that begins as work of its own.
struct spawn_completion : completion {
    weft_cancel_token token; // what the coroutine obeys
};

class promise_base {
public:
    promise_base() noexcept { // start sets the links
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
        // GCC 12 misplaces the frame of a coroutine that declares no variable and awaits in a condition (GCC bug
        // 106188): the promise is found 8 bytes off, and the coroutine would be lost in silence. Frames are aligned to
        // 16 bytes, and promises stand 16 bytes into them.
        if (reinterpret_cast<std::uintptr_t>(this) % 16 != 0) [[unlikely]] {
            die("GCC 12 has misplaced the frame of a coroutine (GCC bug 106188): declare a variable in it, or take its "
                "co_await out of the condition");
        }
#endif
    }
    promise_base(const promise_base &) = delete;
    promise_base &operator=(const promise_base &) = delete;

    // Only these forms: the compiler passes the frame's size to both, and ignores the coroutine's parameters.
    [[nodiscard]] static void *operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void *memory, std::size_t size) noexcept { frame_free(memory, size); }

    [[nodiscard]] environment &weft_environment() noexcept { return links_.environment; }

    /// Starts with a coroutine to resume at the end, on the home that it has now.
    void start(std::coroutine_handle<> continuation, environment inherited) noexcept { start(continuation.address(), inherited); }

    /// Starts with a completion to call at the end.
    void start(completion &at_end, environment inherited) noexcept {
        static_assert(alignof(completion) >= 2);
        start(reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(&at_end) | 1U), inherited);
    }

    /// Calls another completion at the end. Before the coroutine runs.
    void end_with(completion &at_end) noexcept {
        links_.continuation = reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(&at_end) | 1U);
    }

    /// Lets the continuation resume somewhere else.
    void return_to(weft_runtime home) noexcept { links_.return_to = home; }

    /// Called by a finished coroutine: what to resume next on this thread.
    [[nodiscard]] std::coroutine_handle<> finish() noexcept {
        WEFT_TEST_DELAY(promise_finishes);
        const auto bits = reinterpret_cast<std::uintptr_t>(links_.continuation);
        if ((bits & 1U) != 0) {
            auto *at_end = reinterpret_cast<completion *>(bits & ~std::uintptr_t{1});
            return at_end->complete(at_end, *this);
        }
        return resume_parent(links_.return_to, std::coroutine_handle<>::from_address(links_.continuation));
    }

    /// Resumes what waits for this finished coroutine: by transfer if it lives where this coroutine is, else over
    /// there.
    [[nodiscard]] std::coroutine_handle<> resume_parent(weft_runtime home, std::coroutine_handle<> parent) noexcept {
        if (links_.environment.home.id == home.id) [[likely]] {
            return transfer(parent);
        }
        // The links are dead now, and have the size of an op. The parent destroys this frame, but not before it runs.
        resume_from_outside(home, parent, *std::construct_at(&op_));
        return std::noop_coroutine();
    }

    /// Queues a coroutine that has not been started as new work. Returns WEFT_OK, and then it may be gone already, or a
    /// negative code, and then nothing happened.
    template <std::derived_from<promise_base> Promise>
    [[nodiscard]] static int spawn(std::coroutine_handle<Promise> coroutine, weft_runtime home,
                                   spawn_completion &at_end) noexcept {
        promise_base &self = coroutine.promise();
#if !WEFT_DETAIL_TSAN
        self.start(at_end, environment{home, at_end.token});
        const int code = weft_schedule_local(home, coroutine.address(), 0);
        WEFT_TEST_DELAY(promise_spawned);
        if (code != WEFT_ENOTWORKER) [[likely]] {
            return code;
        }
#endif
        // The links are not needed before it runs, and give their place to the op that brings it to a worker.
        std::construct_at(&self.op_, weft_op{begin_spawned<Promise>, &at_end, nullptr, 0});
        tsan_release(&self.op_);
        return weft_schedule(home, &self.op_);
    }

    // Awaiters that must not move come out of an operator co_await, as prvalues; GCC 12 moves those that do not.
    template <native_awaitable T>
    decltype(auto) await_transform(T &&awaitable) {
        if constexpr (member_co_await<T> || free_co_await<T>) {
            return get_awaiter(static_cast<T &&>(awaitable));
        } else {
            return static_cast<std::remove_reference_t<T> &>(awaitable);
        }
    }

    template <awaitable T>
        requires(!native_awaitable<T>)
    foreign_awaiter<T> await_transform(T &&awaitable) {
        return foreign_awaiter<T>(static_cast<T &&>(awaitable));
    }

private:
    // A word at a time: a struct that is built and then copied is written in halves and read whole, which stalls.
    void start(void *continuation, environment inherited) noexcept {
        links_.continuation = continuation;
        links_.environment.home = inherited.home;
        links_.environment.token = inherited.token;
        links_.return_to = inherited.home;
    }

    template <class Promise>
    static void begin_spawned(weft_op *op) noexcept {
        tsan_acquire(op);
        static_assert(std::is_standard_layout_v<promise_base>, "the op stands at the address of the promise_base");
        auto &promise = static_cast<Promise &>(*reinterpret_cast<promise_base *>(op));
        auto &at_end = *static_cast<spawn_completion *>(op->context);
        promise.start(at_end, environment{weft_runtime_current(), at_end.token});
        weft_goes_on_as(function_of(std::coroutine_handle<Promise>::from_promise(promise)));
        resume_guarded(std::coroutine_handle<Promise>::from_promise(promise));
    }

    struct links {
        void *continuation; // a frame's address, or a completion's with bit 0 set
        detail::environment environment;
        weft_runtime return_to; // home of the continuation
    };

    union {
        links links_; // from start to finish
        weft_op op_;  // before and afterwards, on the way to a worker
    };
};

/// Awaiter of initial suspension: a task is lazy.
struct initial_awaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const noexcept {}
};

/// Awaiter of final suspension.
struct final_awaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> coroutine) const noexcept {
        return coroutine.promise().finish();
    }
    void await_resume() const noexcept {}
};

/// The place of a coroutine's result: nothing yet, a value, a reference, or an exception.
template <class T>
class result_slot {
public:
    result_slot() noexcept {}
    result_slot(const result_slot &) = delete;
    result_slot &operator=(const result_slot &) = delete;
    ~result_slot() {
        if (state_ == state::value) {
            std::destroy_at(&value_);
        } else if (state_ == state::exception) {
            std::destroy_at(&exception_);
        }
    }

    template <class U>
    void set_value(U &&value) {
        std::construct_at(&value_, std::forward<U>(value));
        state_ = state::value;
    }

    void set_exception(std::exception_ptr exception) noexcept {
        std::construct_at(&exception_, std::move(exception));
        state_ = state::exception;
    }

    [[nodiscard]] bool failed() const noexcept { return state_ == state::exception; }
    [[nodiscard]] const std::exception_ptr &exception() const noexcept { return exception_; }

    /// The value, to be moved from; throws the exception if there is one.
    [[nodiscard]] T &&take() {
        if (state_ == state::exception) [[unlikely]] {
            std::rethrow_exception(exception_);
        }
        return static_cast<T &&>(value_);
    }

private:
    enum class state : unsigned char { empty, value, exception };
    union {
        T value_;
        std::exception_ptr exception_;
    };
    state state_ = state::empty;
};

template <class T>
class result_slot<T &> {
public:
    void set_value(T &value) noexcept { value_ = std::addressof(value); }
    void set_exception(std::exception_ptr exception) noexcept { exception_ = std::move(exception); }
    [[nodiscard]] bool failed() const noexcept { return exception_ != nullptr; }
    [[nodiscard]] const std::exception_ptr &exception() const noexcept { return exception_; }
    [[nodiscard]] T &take() {
        if (exception_ != nullptr) [[unlikely]] {
            std::rethrow_exception(exception_);
        }
        return *value_;
    }

private:
    T *value_ = nullptr;
    std::exception_ptr exception_;
};

template <>
class result_slot<void> {
public:
    void set_exception(std::exception_ptr exception) noexcept { exception_ = std::move(exception); }
    [[nodiscard]] bool failed() const noexcept { return exception_ != nullptr; }
    [[nodiscard]] const std::exception_ptr &exception() const noexcept { return exception_; }
    void take() {
        if (exception_ != nullptr) [[unlikely]] {
            std::rethrow_exception(exception_);
        }
    }

private:
    std::exception_ptr exception_;
};

} // namespace weft::detail

#endif
