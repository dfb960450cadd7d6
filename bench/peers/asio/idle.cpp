// SPDX-License-Identifier: MIT
//
// idle.cpp: Asio when nothing happens: waking it, what idling costs, what parked coroutines weigh (they wait on a channel).
#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>
#include <chrono>
#include <latch>

#include "pool.hpp"

namespace {

bench::result wake(const bench::options &o) {
    asio_pool pool(o.workers);
    return bench::wake(
        o, [&](std::atomic<std::int64_t> *began) { asio::post(pool.context, [began] { began->store(bench_now_ns()); }); });
}

bench::result idle_cpu(const bench::options &o) {
    asio_pool pool(o.workers);
    return bench::idle(o);
}

bench::result idle_cpu_timer(const bench::options &o) {
    asio_pool pool(o.workers);
    asio::steady_timer far(pool.context, std::chrono::hours(1));
    far.async_wait([](asio::error_code) {});
    return bench::idle(o);
}

template <class Channel>
awaitable waiter(Channel &gate, std::latch &parked, std::latch &end) {
    parked.count_down();
    co_await gate.async_receive(use_awaitable);
    end.count_down();
}

template <class Channel>
bench::result park(const bench::options &o) {
    asio_pool pool(o.workers);
    std::uint64_t n = o.count(1'000'000);
    Channel gate(pool.context, 0);
    std::latch parked(static_cast<std::ptrdiff_t>(n)), end(static_cast<std::ptrdiff_t>(n));
    return bench::parked(
        n,
        [&] {
            for (std::uint64_t i = 0; i < n; i++)
                asio::co_spawn(pool.context, waiter(gate, parked, end), asio::detached);
            parked.wait();
            bench_sleep_ns(1'000'000); // the last one is between its count and its wait
        },
        [&] {
            asio::post(pool.context, [&] {
                for (std::uint64_t i = 0; i < n; i++)
                    if (!gate.try_send(asio::error_code{}, 0)) bench_fail("a coroutine was not parked");
            });
            end.wait();
        });
}

bench::result parked(const bench::options &o) {
    if (o.workers == 1) return park<asio::experimental::channel<executor, void(asio::error_code, int)>>(o);
    return park<asio::experimental::concurrent_channel<executor, void(asio::error_code, int)>>(o);
}

} // namespace

const std::vector<bench::work> idle_works = {
    {"wake", {1, 2}, wake},
    {"idle_cpu", {1, 2}, idle_cpu},
    {"idle_cpu_timer", {1, 2}, idle_cpu_timer},
    {"parked", {1, 2}, parked},
};
