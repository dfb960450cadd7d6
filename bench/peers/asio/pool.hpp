// SPDX-License-Identifier: MIT
//
// pool.hpp: Asio as its users run it on several threads: one io_context, the number of threads as its concurrency hint,
// and executors of a known type, which spares Asio the indirection of any_io_executor.
#ifndef WEFT_BENCH_ASIO_POOL_HPP
#define WEFT_BENCH_ASIO_POOL_HPP

#include <asio.hpp>
#include <thread>
#include <vector>

#include "bench.hpp"

using executor = asio::io_context::executor_type;
using awaitable = asio::awaitable<void, executor>;
inline constexpr asio::use_awaitable_t<executor> use_awaitable{};

class asio_pool {
public:
    explicit asio_pool(int workers) : context(workers), guard_(context.get_executor()) {
        for (int i = 0; i < workers; i++)
            threads_.emplace_back([this] { context.run(); });
    }

    ~asio_pool() {
        guard_.reset();
        context.stop();
        for (auto &t : threads_)
            t.join();
    }

    asio::io_context context;

private:
    asio::executor_work_guard<executor> guard_;
    std::vector<std::thread> threads_;
};

extern const std::vector<bench::work> task_works, channel_works, timer_works, idle_works, echo_works;

#endif
