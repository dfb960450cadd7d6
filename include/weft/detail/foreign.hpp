// SPDX-License-Identifier: MIT
//
// Awaiting what is not weft's. A foreign awaiter resumes whatever handle it was given on whatever thread it completes;
// a weft task must come back to its home. So the foreign awaiter gets the handle of a frame that is none: two function
// pointers, as every coroutine frame begins (Itanium and MSVC ABIs), which send the real coroutine home.
#ifndef WEFT_DETAIL_FOREIGN_HPP
#define WEFT_DETAIL_FOREIGN_HPP

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

#include "../concepts.hpp"
#include "delay.hpp"
#include "environment.hpp"
#include "resume.hpp"
#include "transfer.hpp"

namespace weft::detail {

/// The beginning of every coroutine frame.
struct frame_head {
    void (*resume)(void *);
    void (*destroy)(void *);
};

/// Stands in for a coroutine whose home is elsewhere than where it will be resumed.
class proxy_frame {
public:
    proxy_frame() noexcept = default;
    proxy_frame(const proxy_frame &) = delete;
    proxy_frame &operator=(const proxy_frame &) = delete;

    /// A handle that sends coroutine home when it is resumed.
    [[nodiscard]] std::coroutine_handle<> stand_in(std::coroutine_handle<> coroutine, weft_runtime home) noexcept {
        head_ = frame_head{resume, destroy};
        coroutine_ = coroutine;
        home_ = home;
        return std::coroutine_handle<>::from_address(this);
    }

private:
    static void resume(void *memory) {
        auto &self = *static_cast<proxy_frame *>(memory);
        WEFT_TEST_DELAY(proxy_resumes);
        const std::coroutine_handle<> coroutine = self.coroutine_;
        if (self.home_.id != 0 && self.home_.id != weft_runtime_current().id) {
            resume_from_outside(self.home_, coroutine, self.op_);
            return;
        }
        // A loop over foreign awaits must not grow the stack here either.
        void *const next = transfer(coroutine).address();
#if defined(__clang__)
        [[clang::musttail]] return static_cast<frame_head *>(next)->resume(next);
#else
        static_cast<frame_head *>(next)->resume(next);
#endif
    }

    static void destroy(void *memory) { static_cast<proxy_frame *>(memory)->coroutine_.destroy(); }

    alignas(16) frame_head head_; // first: what a handle points to
    std::coroutine_handle<> coroutine_;
    weft_runtime home_;
    weft_op op_;
};

template <class T>
concept native_awaitable = awaitable<T> && std::derived_from<std::remove_cvref_t<awaiter_of<T>>, native_awaiter>;

/// Awaits a foreign awaitable and resumes at home.
template <awaitable T>
class foreign_awaiter : public native_awaiter {
public:
    explicit foreign_awaiter(T &&awaitable) : awaiter_(get_awaiter(static_cast<T &&>(awaitable))) {}
    foreign_awaiter(const foreign_awaiter &) = delete;
    foreign_awaiter &operator=(const foreign_awaiter &) = delete;

    [[nodiscard]] bool await_ready() { return static_cast<bool>(awaiter_.await_ready()); }

    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> coroutine) {
        WEFT_TEST_DELAY(foreign_suspends);
        using result = decltype(awaiter_.await_suspend(std::coroutine_handle<>()));
        const std::coroutine_handle<> proxy = proxy_.stand_in(coroutine, environment_of(coroutine).home);
        if constexpr (is_handle<result>) {
            // Afterwards *this may be gone; a handle that comes back equal to the proxy means that it is not.
            const std::coroutine_handle<> next = awaiter_.await_suspend(proxy);
            return transfer(next.address() == proxy.address() ? std::coroutine_handle<>(coroutine) : next);
        } else {
            return awaiter_.await_suspend(proxy);
        }
    }

    decltype(auto) await_resume() { return awaiter_.await_resume(); }

private:
    awaiter_of<T> awaiter_;
    proxy_frame proxy_;
};

} // namespace weft::detail

#endif
