// SPDX-License-Identifier: MIT
//
// Where tasks come from, for the reports of stalls. A function is described once: nothing is stored per task, and spawning pays
// for a look into a small table.
#ifndef WEFT_DETAIL_DESCRIBE_HPP
#define WEFT_DETAIL_DESCRIBE_HPP

#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "../c/stall.h"

namespace weft::detail {

using any_function = void (*)();

/// The function that resumes a suspended coroutine: the first word of its frame, by the ABI of all compilers that weft knows.
[[nodiscard]] inline any_function function_of(std::coroutine_handle<> coroutine) noexcept {
    return *static_cast<any_function *>(coroutine.address());
}

// relaxed: an entry that is lost or old costs a call that changes nothing.
constinit inline std::array<std::atomic<any_function>, 256> described{};

inline void describe(any_function function, const std::source_location &from) noexcept {
    auto &known = described[reinterpret_cast<std::uintptr_t>(function) / 16 % described.size()];
    if (known.load(std::memory_order_relaxed) != function) [[unlikely]] {
        known.store(function, std::memory_order_relaxed);
        static_cast<void>(weft_describe(function, nullptr, from.file_name(), from.line()));
    }
}

} // namespace weft::detail

#endif
