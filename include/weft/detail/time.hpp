// SPDX-License-Identifier: MIT
//
// std::chrono in, nanoseconds of the C interface out: saturating, rounded up, so that nothing is ever early.
#ifndef WEFT_DETAIL_TIME_HPP
#define WEFT_DETAIL_TIME_HPP

#include <chrono>
#include <cstdint>

#include "../c/timer.h"

namespace weft::detail {

/// A span as timeout_ns: 0 if it is not positive; WEFT_NEVER from 291 years on.
template <class Rep, class Period>
[[nodiscard]] constexpr std::int64_t timeout_ns(const std::chrono::duration<Rep, Period> &span) {
    const auto about = std::chrono::duration<long double, std::nano>(span).count(); // only to tell the range
    if (about <= 0) {
        return 0;
    }
    if (!(about < 9.2e18L)) {
        return WEFT_NEVER;
    }
    return static_cast<std::int64_t>(std::chrono::ceil<std::chrono::duration<std::int64_t, std::nano>>(span).count());
}

/// The span until a point of any clock. The point's clock is read first and weft's afterwards: late by that, never
/// early.
template <class Clock, class Duration>
[[nodiscard]] std::int64_t timeout_until_ns(const std::chrono::time_point<Clock, Duration> &point) {
    const auto now = Clock::now();
    return point <= now ? 0 : timeout_ns(point - now);
}

} // namespace weft::detail

#endif
