// SPDX-License-Identifier: MIT
//
// timers.cpp: sleepers, timers that are cancelled, and lateness under load, in Asio: a steady_timer each.
#include <chrono>
#include <latch>

#include "pool.hpp"

namespace {

using timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, executor>;

awaitable sleeper(asio::io_context &context, std::int64_t ns, std::atomic<std::uint64_t> &early, std::latch &end) {
    std::int64_t due = bench_now_ns() + ns;
    timer t(context.get_executor());
    t.expires_after(std::chrono::nanoseconds(ns));
    co_await t.async_wait(use_awaitable);
    if (bench_now_ns() < due) early++;
    end.count_down();
}

bench::result sleeps(const bench::options &o, std::uint64_t full, std::uint64_t most) {
    asio_pool pool(o.workers);
    std::uint64_t n = o.count(full);
    return bench::measure(1, [&] {
        std::latch end(static_cast<std::ptrdiff_t>(n));
        std::atomic<std::uint64_t> early{0};
        asio::post(pool.context, [&] {
            for (std::uint64_t i = 0; i < n; i++)
                asio::co_spawn(pool.context, sleeper(pool.context, bench_sleep_of(i, n, most), early, end), asio::detached);
        });
        end.wait();
        bench::check(early, 0, "sleepers that woke early");
    });
}

bench::result sleep1000(const bench::options &o) { return sleeps(o, 1000, 100); }
bench::result sleep100k(const bench::options &o) { return sleeps(o, 100'000, 50); }

// One timer after the other; the handler of each runs with operation_aborted.
bench::result timer_cancel(const bench::options &o) {
    asio_pool pool(o.workers);
    std::uint64_t n = o.count(200'000);
    return bench::measure(n, [&] {
        std::atomic<std::uint64_t> cancelled{0};
        std::latch end(static_cast<std::ptrdiff_t>(n));
        asio::post(pool.context, [&] {
            for (std::uint64_t i = 0; i < n; i++) {
                timer t(pool.context.get_executor());
                t.expires_after(std::chrono::seconds(10) + std::chrono::microseconds(i));
                t.async_wait([&](asio::error_code failed) {
                    cancelled.fetch_add(failed == asio::error::operation_aborted, std::memory_order_relaxed);
                    end.count_down();
                });
                t.cancel();
            }
        });
        end.wait();
        bench::check(cancelled, n, "cancelled timers");
    });
}

struct burner {
    asio::io_context *context;
    std::atomic<bool> *stop;
    std::latch *end;
    void operator()() const {
        bench_burn(20'000);
        if (stop->load())
            end->count_down();
        else
            asio::post(*context, *this);
    }
};

awaitable late_sleeper(asio::io_context &context, std::uint64_t seed, std::int64_t *samples, std::uint64_t count,
                       std::latch &end) {
    timer t(context.get_executor());
    for (std::uint64_t i = 0; i < count; i++) {
        auto span = static_cast<std::int64_t>(1 + bench_random(seed * count + i) % 10) * 1'000'000;
        std::int64_t due = bench_now_ns() + span;
        t.expires_after(std::chrono::nanoseconds(span));
        co_await t.async_wait(use_awaitable);
        samples[i] = bench_now_ns() - due;
    }
    end.count_down();
}

bench::result timer_lateness(const bench::options &o) {
    asio_pool pool(o.workers);
    constexpr std::uint64_t sleepers = 100;
    std::uint64_t each = o.count(100);
    std::vector<std::int64_t> samples(sleepers * each);
    std::atomic<bool> stop{false};
    std::latch burnt(2 * o.workers), end(sleepers);
    for (int i = 0; i < 2 * o.workers; i++)
        asio::post(pool.context, burner{&pool.context, &stop, &burnt});
    for (std::uint64_t i = 0; i < sleepers; i++)
        asio::co_spawn(pool.context, late_sleeper(pool.context, i, &samples[i * each], each, end), asio::detached);
    end.wait();
    stop = true;
    burnt.wait();
    return bench::percentiles(samples);
}

} // namespace

const std::vector<bench::work> timer_works = {
    {"sleep1000", {1, 2}, sleep1000},
    {"sleep100k", {1, 2}, sleep100k},
    {"timer_cancel", {1, 2}, timer_cancel},
    {"timer_lateness", {1, 2}, timer_lateness},
};
