// SPDX-License-Identifier: MIT
//
// Symmetric transfer that does not grow the stack. `return handle` from await_suspend is meant to resume it without a
// stack frame. clang does so at every level of optimisation, GCC only when it optimises. So on GCC every transfer looks
// at the stack: when too much has been used since the transfers of this thread began, the coroutine is queued instead,
// as the next thing that this worker's lane (or this thread's inline lane) runs, and the stack unwinds.
#ifndef WEFT_DETAIL_TRANSFER_HPP
#define WEFT_DETAIL_TRANSFER_HPP

#include <coroutine>
#include <cstdint>

#include "../c/runtime.h"
#include "inline_lane.hpp"
#include "resume.hpp"

namespace weft::detail {

inline constexpr std::uintptr_t transfer_stack_bytes = 32 * 1024; // half of the smallest stack that a worker may have

#if defined(__GNUC__) && !defined(__clang__)

[[gnu::noinline, gnu::cold]] inline std::coroutine_handle<> transfer_slow(std::coroutine_handle<> to, char *here) noexcept {
    // The base is only a hint: when it is unset, or deeper than this frame, what it measured has returned.
    if (here >= this_thread_stack_base) {
        this_thread_stack_base = here;
        return to;
    }
    resume_here(weft_runtime_current(), to);
    return std::noop_coroutine();
}

[[nodiscard, gnu::always_inline]] inline std::coroutine_handle<> transfer(std::coroutine_handle<> to) noexcept {
    char *const here = static_cast<char *>(__builtin_frame_address(0));
    const std::uintptr_t used = reinterpret_cast<std::uintptr_t>(this_thread_stack_base) - reinterpret_cast<std::uintptr_t>(here);
    if (used < transfer_stack_bytes) [[likely]] {
        return to;
    }
    return transfer_slow(to, here);
}

#else

[[nodiscard]] inline std::coroutine_handle<> transfer(std::coroutine_handle<> to) noexcept { return to; }

#endif

} // namespace weft::detail

#endif
