// SPDX-License-Identifier: MIT
//
// weft/sleep.hpp: waiting for a span or a point of time, without blocking a thread.
#ifndef WEFT_SLEEP_HPP
#define WEFT_SLEEP_HPP

#include <chrono>

#include "detail/time.hpp"
#include "detail/timer_awaiter.hpp"

namespace weft {

/// Waits for a span of time, by a timer of the runtime that the task lives on; never shorter, longer by about 20
/// microseconds. A span that is not positive is due at once, but goes through the queue. Cancel: ends early with
/// operation_cancelled; stopping the runtime does so too. Throws runtime_stopped; error(errc::bad_handle) if the task
/// lives on no runtime. Single use.
template <class Rep, class Period>
[[nodiscard]] detail::timer_operation sleep_for(const std::chrono::duration<Rep, Period> &span) {
    return detail::timer_operation(weft_runtime{0}, detail::timeout_ns(span), "sleep_for");
}

/// sleep_for until a point of any clock. The clock is read once, now: a clock that is set later does not move the end.
template <class Clock, class Duration>
[[nodiscard]] detail::timer_operation sleep_until(const std::chrono::time_point<Clock, Duration> &point) {
    return detail::timer_operation(weft_runtime{0}, detail::timeout_until_ns(point), "sleep_until");
}

} // namespace weft

#endif
