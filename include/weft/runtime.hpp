// SPDX-License-Identifier: MIT
//
// weft/runtime.hpp: worker threads with their timers and poller, as an object.
#ifndef WEFT_RUNTIME_HPP
#define WEFT_RUNTIME_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "c/runtime.h"
#include "error.hpp"
#include "scheduler.hpp"

namespace weft {

/// Settings of a runtime. Zero and empty mean the default.
struct runtime_options {
    std::uint32_t workers = 0;   // threads, 1 to 256; 0: as many as the CPUs that this process may use
    std::size_t stack_bytes = 0; // stack of each worker, at least 65536; 0: 1 MiB
    std::string name = {};       // up to 10 bytes; threads are called NAME-0, NAME-1, ...
    std::uint32_t blocking_threads = 0; // blocking calls of each kind that run at once, 1 to 1024; 0: 64
    // With replacements for workers that an op holds up, at most 256; 0: 256. A runtime runs one task at a time, and none
    // beside a blocked one, only if this and workers are 1.
    std::uint32_t max_workers = 0;
    bool log_stalls = false;                // a line on standard error for each stall that is told
    std::chrono::nanoseconds keep{};        // how long a replacement's thread is kept when it is not needed; 0: 10 s
    weft_stall_fn on_stall = nullptr;       // is told of stalls, on the monitor's thread: weft/c/stall.h. It must not throw
    void *stall_context = nullptr;          // passed to it
    std::chrono::nanoseconds stall_after{}; // of stalls that are shorter nobody is told; 0: 10 ms
};

/// Counters of a runtime or of one worker: weft/c/runtime.h explains each.
using runtime_stats = weft_stats;

/// Owns a runtime of the C interface. Movable; several may live in one process.
class runtime {
public:
    /// Starts the workers. Throws error.
    explicit runtime(const runtime_options &options = {}) {
        weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
        config.workers = options.workers;
        config.stack_bytes = options.stack_bytes;
        config.name = options.name.empty() ? nullptr : options.name.c_str();
        config.blocking_threads = options.blocking_threads;
        config.max_workers = options.max_workers;
        config.flags = options.log_stalls ? WEFT_RUNTIME_LOG_STALLS : 0;
        config.keep_ns = options.keep.count();
        config.on_stall = options.on_stall;
        config.stall_context = options.stall_context;
        config.stall_ns = options.stall_after.count();
        if (const int code = weft_runtime_create(&config, &runtime_); code != WEFT_OK) {
            throw_error(code, "runtime");
        }
    }

    runtime(runtime &&other) noexcept : runtime_(std::exchange(other.runtime_, weft_runtime{0})) {}
    runtime &operator=(runtime &&other) noexcept {
        if (this != &other) {
            weft_runtime_destroy(runtime_);
            runtime_ = std::exchange(other.runtime_, weft_runtime{0});
        }
        return *this;
    }

    /// Stops, as stop() does, and gives everything back. On a worker of this runtime it returns at once, and the rest
    /// happens when the last worker ends.
    ~runtime() { weft_runtime_destroy(runtime_); }

    [[nodiscard]] weft::scheduler scheduler() const noexcept { return weft::scheduler(runtime_); }

    /// Refuses new work, cancels pending timers, I/O, lookups and blocking calls that have not begun (their awaits throw
    /// operation_cancelled), waits for blocking calls that have, runs what is queued, and joins the threads. On a worker of this runtime, or in a blocking call of it, it only begins that. May be called twice.
    void stop() noexcept { weft_runtime_stop(runtime_); }

    /// The counters of the whole runtime. Throws error.
    [[nodiscard]] runtime_stats stats() const {
        runtime_stats stats{};
        stats.size = sizeof stats;
        if (const int code = weft_runtime_stats(runtime_, &stats); code != WEFT_OK) {
            throw_error(code, "runtime::stats");
        }
        return stats;
    }

    /// The counters of one worker. Throws error.
    [[nodiscard]] runtime_stats stats(std::uint32_t worker) const {
        runtime_stats stats{};
        stats.size = sizeof stats;
        if (const int code = weft_worker_stats(runtime_, worker, &stats); code != WEFT_OK) {
            throw_error(code, "runtime::stats");
        }
        return stats;
    }

    /// The handle of the C interface.
    [[nodiscard]] weft_runtime native() const noexcept { return runtime_; }

private:
    weft_runtime runtime_{0};
};

} // namespace weft

#endif
