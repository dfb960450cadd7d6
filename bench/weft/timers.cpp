// SPDX-License-Identifier: MIT
//
// timers.cpp: sleepers, alone and under load.
#include <chrono>

#include "weft_works.hpp"

namespace {

weft::task<> sleeper(std::int64_t ns, std::atomic<std::uint64_t> &early) {
    std::int64_t due = bench_now_ns() + ns;
    co_await weft::sleep_for(std::chrono::nanoseconds(ns));
    if (bench_now_ns() < due) early++;
}

weft::task<> sleep_all(std::uint64_t n, std::uint64_t most, std::atomic<std::uint64_t> &early) {
    weft::async_scope scope;
    for (std::uint64_t i = 0; i < n; i++)
        scope.spawn(sleeper(bench_sleep_of(i, n, most), early));
    co_await scope.join();
}

bench::result sleeps(const bench::options &o, std::uint64_t full, std::uint64_t most) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(full);
    return bench::measure(1, [&] {
        std::atomic<std::uint64_t> early{0};
        weft::sync_wait(runtime.scheduler(), sleep_all(n, most, early));
        bench::check(early, 0, "sleepers that woke early");
    });
}

bench::result sleep1000(const bench::options &o) { return sleeps(o, 1000, 100); }
bench::result sleep100k(const bench::options &o) { return sleeps(o, 100'000, 50); }

weft::task<> burner(const std::atomic<bool> &stop) {
    while (!stop.load()) {
        bench_burn(20'000);
        co_await weft::this_task::yield();
    }
}

weft::task<> late_sleeper(std::uint64_t seed, std::int64_t *samples, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; i++) {
        auto span = static_cast<std::int64_t>(1 + bench_random(seed * count + i) % 10) * 1'000'000;
        std::int64_t due = bench_now_ns() + span;
        co_await weft::sleep_for(std::chrono::nanoseconds(span));
        samples[i] = bench_now_ns() - due;
    }
}

weft::task<> sleep_under_load(int burners, std::vector<std::int64_t> &samples, std::uint64_t sleepers) {
    std::atomic<bool> stop{false};
    weft::async_scope load, scope;
    for (int i = 0; i < burners; i++)
        load.spawn(burner(stop));
    std::uint64_t each = samples.size() / sleepers;
    for (std::uint64_t i = 0; i < sleepers; i++)
        scope.spawn(late_sleeper(i, &samples[i * each], each));
    co_await scope.join();
    stop = true;
    co_await load.join();
}

bench::result timer_lateness(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t sleepers = 100;
    std::vector<std::int64_t> samples(sleepers * o.count(100));
    weft::sync_wait(runtime.scheduler(), sleep_under_load(2 * o.workers, samples, sleepers));
    return bench::percentiles(samples);
}

} // namespace

const std::vector<bench::work> timer_works = {
    {"sleep1000", {1, 2}, sleep1000}, {"sleep100k", {1, 2}, sleep100k}, {"timer_lateness", {1, 2}, timer_lateness}};
