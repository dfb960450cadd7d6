// SPDX-License-Identifier: MIT
//
// weft/inline_scheduler.hpp: the scheduler that runs everything where it is.
#ifndef WEFT_INLINE_SCHEDULER_HPP
#define WEFT_INLINE_SCHEDULER_HPP

#include <coroutine>

#include "concepts.hpp"
#include "detail/environment.hpp"

namespace weft {

/// For code that is generic over schedulers, and for tests: schedule() is ready at once, and moves nobody.
class inline_scheduler {
public:
    class [[nodiscard]] awaiter : public detail::native_awaiter {
    public:
        [[nodiscard]] bool await_ready() const noexcept { return true; }
        void await_suspend(std::coroutine_handle<>) const noexcept {}
        void await_resume() const noexcept {}
    };

    [[nodiscard]] awaiter schedule() const noexcept { return {}; }
    [[nodiscard]] awaiter yield() const noexcept { return {}; }

    [[nodiscard]] friend bool operator==(inline_scheduler, inline_scheduler) noexcept { return true; }
};

static_assert(scheduler_like<inline_scheduler>);

} // namespace weft

#endif
