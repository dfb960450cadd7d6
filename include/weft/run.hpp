// SPDX-License-Identifier: MIT
//
// weft/run.hpp: a whole program in one line.
//
//     int main() { return weft::run(async_main()); }
#ifndef WEFT_RUN_HPP
#define WEFT_RUN_HPP

#include <source_location>
#include <utility>

#include "concepts.hpp"
#include "runtime.hpp"
#include "spawn.hpp"
#include "sync_wait.hpp"

namespace weft {

/// Makes a runtime, runs work on it, stops it, and returns work's result or throws its exception. work is an awaitable,
/// or a function that makes one. What work has spawned and not joined is cancelled by the stop. Blocks; on a worker it
/// throws std::logic_error.
template <detail::spawnable W>
decltype(auto) run(const runtime_options &options, W &&work, std::source_location from = std::source_location::current()) {
    runtime runtime(options);
    return sync_wait(runtime.scheduler(), detail::to_task(std::forward<W>(work), from));
}

/// run with the default options.
template <detail::spawnable W>
decltype(auto) run(W &&work, std::source_location from = std::source_location::current()) {
    return run(runtime_options{}, std::forward<W>(work), from);
}

} // namespace weft

#endif
