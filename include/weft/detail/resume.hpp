// SPDX-License-Identifier: MIT
//
// The one way in which coroutines go through queues. A coroutine frame is a runnable of the library by itself (op.h:
// its first word is the function that resumes it), so on the home's own workers no op is needed; from elsewhere an op
// carries it, which lives in the awaiter. After a successful handover the frame may already be running, or be gone: the
// caller touches nothing of it.
#ifndef WEFT_DETAIL_RESUME_HPP
#define WEFT_DETAIL_RESUME_HPP

#include <coroutine>
#include <exception>

#include "../c/op.h"
#include "../c/runtime.h"
#include "delay.hpp"
#include "die.hpp"
#include "frame_pool.hpp"
#include "inline_lane.hpp"
#include "run_loop.hpp"
#include "tsan.hpp"

namespace weft::detail {

/// Resumes a coroutine from a place that no exception may leave. When no worker is left, an op runs where it is completed, and
/// that may be a cancel callback: then the coroutine waits until the request that called it is over.
inline void resume_guarded(std::coroutine_handle<> coroutine) noexcept {
    if (this_thread_lane.open) [[unlikely]] {
        inline_lane_push(coroutine);
        return;
    }
    try {
        coroutine.resume();
    } catch (...) {
        die_of_exception("an exception escaped an op", std::current_exception());
    }
}

/// Runs an op that carries a coroutine.
inline void resume_op(weft_op *op) noexcept {
    tsan_acquire(op);
    resume_guarded(std::coroutine_handle<>::from_address(op->context));
}

inline void prepare_op(weft_op &op, std::coroutine_handle<> coroutine) noexcept {
    op = weft_op{resume_op, coroutine.address(), nullptr, 0};
    tsan_release(&op);
}

/// Resumes a coroutine whose wait is over from a thread that is no worker of its home: by an op; if its home has no
/// worker left, or it never had a home, as the next thing that this thread runs.
[[gnu::noinline]] inline void resume_from_outside(weft_runtime home, std::coroutine_handle<> coroutine, weft_op &op) noexcept {
    prepare_op(op, coroutine);
    WEFT_TEST_DELAY(resume_from_outside_prepared);
    if (run_loop *loop = run_loop::of(home); loop != nullptr) {
        loop->push(op);
        return;
    }
    if (home.id == 0) {
        home = weft_runtime_current();
    }
    if (home.id != 0 && weft_resume(home, &op) == WEFT_OK) {
        return;
    }
    inline_resume(coroutine);
}

/// Resumes a coroutine whose wait is over, on its home. op is in the coroutine's frame, and idle.
inline void resume_via(weft_runtime home, std::coroutine_handle<> coroutine, weft_op &op) noexcept {
    WEFT_TEST_DELAY(resume_via);
#if !WEFT_DETAIL_TSAN
    if (weft_resume_local(home, coroutine.address()) == WEFT_OK) [[likely]] {
        return;
    }
#endif
    resume_from_outside(home, coroutine, op);
}

#if WEFT_DETAIL_TSAN
/// An op that is freed when it runs, for a frame that has no room for one.
inline void resume_owned_op(weft_op *op) noexcept {
    tsan_acquire(op);
    const auto coroutine = std::coroutine_handle<>::from_address(op->context);
    frame_free(op, sizeof(weft_op));
    resume_guarded(coroutine);
}
#endif

/// Lets a coroutine run next on this worker of its home, unless another worker takes it first. On a thread that is no
/// worker of its home (a run loop's) it runs here.
inline void resume_here(weft_runtime home, std::coroutine_handle<> coroutine) noexcept {
#if WEFT_DETAIL_TSAN
    if (home.id != 0 && weft_runtime_current().id == home.id) {
        auto *op = static_cast<weft_op *>(frame_allocate(sizeof(weft_op)));
        *op = weft_op{resume_owned_op, coroutine.address(), nullptr, 0};
        tsan_release(op);
        if (weft_resume(home, op) == WEFT_OK) {
            return;
        }
        frame_free(op, sizeof(weft_op));
    }
#else
    if (weft_resume_local(home, coroutine.address()) == WEFT_OK) [[likely]] {
        return;
    }
#endif
    inline_resume(coroutine);
}

/// Takes back what resume_here queued, if it would be what this worker runs next: then it is the caller's to resume.
[[nodiscard]] inline bool take_back([[maybe_unused]] weft_runtime home, [[maybe_unused]] std::coroutine_handle<> coroutine) noexcept {
#if WEFT_DETAIL_TSAN
    return false; // an op carries it
#else
    return weft_take_local(home, coroutine.address()) != 0;
#endif
}

/// What a negative code of a call means that named the home of a coroutine: a runtime that is gone has stopped.
[[nodiscard]] inline int stopped_if_gone(int code, weft_runtime home) noexcept {
    return code == WEFT_EBADHANDLE && home.id != 0 && run_loop::of(home) == nullptr ? WEFT_ESTOPPED : code;
}

/// Queues a coroutine as new work, from any thread; op is in the coroutine's frame, and idle. Returns WEFT_OK (the
/// coroutine has been handed over) or a negative code (it has not been touched).
[[nodiscard]] inline int schedule_via(weft_runtime home, std::coroutine_handle<> coroutine, weft_op &op, bool behind) noexcept {
    WEFT_TEST_DELAY(schedule_via);
#if !WEFT_DETAIL_TSAN
    const int code = weft_schedule_local(home, coroutine.address(), behind ? 1 : 0);
    if (code != WEFT_ENOTWORKER) [[likely]] {
        return code;
    }
#endif
    prepare_op(op, coroutine);
    WEFT_TEST_DELAY(schedule_via_prepared);
    if (run_loop *loop = run_loop::of(home); loop != nullptr) {
        loop->push(op);
        return WEFT_OK;
    }
    return behind ? weft_yield(home, &op) : weft_schedule(home, &op);
}

} // namespace weft::detail

#endif
