// SPDX-License-Identifier: MIT
//
// std_async.cpp: std::async with launch::async, which is a thread per task. It has no workers (0), and the counts are small,
// because a thread costs what a thousand tasks cost; times are per operation all the same.
#include <chrono>
#include <future>
#include <thread>

#include "forkjoin.hpp"

namespace {

template <class F>
auto start(F &&f) {
    return std::async(std::launch::async, std::forward<F>(f));
}

std::uint64_t start_all(std::uint64_t n) {
    std::uint64_t sum = 0;
    std::vector<std::future<std::uint64_t>> futures;
    for (std::uint64_t from = 0; from < n; from += 1000) { // a thousand alive at once: there is a limit on threads
        futures.clear();
        for (std::uint64_t i = from, to = std::min(from + 1000, n); i < to; i++)
            futures.push_back(start([i] { return bench_value(i); }));
        for (auto &f : futures)
            sum += f.get();
    }
    return sum;
}

std::uint64_t sum_of(std::uint64_t n) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < n; i++)
        sum += bench_value(i);
    return sum;
}

bench::result micro_outside(const bench::options &o) {
    std::uint64_t n = o.count(5'000);
    return bench::measure(n, [&] { bench::check(start_all(n), sum_of(n), "sum of micro tasks"); });
}

bench::result micro_inside(const bench::options &o) {
    std::uint64_t n = o.count(5'000);
    return bench::measure(n, [&] { bench::check(start([n] { return start_all(n); }).get(), sum_of(n), "sum of micro tasks"); });
}

struct links {
    std::vector<std::future<void>> futures;
    std::uint64_t hops = 0;
    std::promise<void> end;

    void start_from(std::uint64_t i) {
        futures[i] = start([this, i] {
            hops++;
            if (i + 1 < futures.size())
                start_from(i + 1);
            else
                end.set_value();
        });
    }
};

bench::result chain(const bench::options &o) {
    std::uint64_t n = o.count(1'000);
    return bench::measure(n, [&] {
        links all{std::vector<std::future<void>>(n), 0, {}};
        all.start_from(0);
        all.end.get_future().wait();
        for (auto &f : all.futures)
            f.get();
        bench::check(all.hops, n, "hops");
    });
}

std::uint64_t fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    auto x = start([n] { return fib(n - 1); });
    std::uint64_t y = fib(n - 2);
    return x.get() + y;
}

bench::result fib30(const bench::options &o) {
    int n = bench::fib_size(o, 15);
    return bench::measure(bench::fib_forks(n), [&] { bench::check(fib(n), bench::fib_sequential(n), "fib"); });
}

bench::result sleep1000(const bench::options &o) {
    std::uint64_t n = o.count(1000);
    return bench::measure(1, [&] {
        std::vector<std::future<void>> futures;
        for (std::uint64_t i = 0; i < n; i++)
            futures.push_back(start([i, n] { bench_sleep_ns(bench_sleep_of(i, n, 100)); }));
        for (auto &f : futures)
            f.get();
    });
}

bench::result wake(const bench::options &o) {
    std::future<void> last;
    return bench::wake(o, [&](std::atomic<std::int64_t> *began) { last = start([began] { began->store(bench_now_ns()); }); });
}

const std::vector<bench::work> works = {
    {"micro_outside", {0}, micro_outside},
    {"micro_inside", {0}, micro_inside},
    {"chain", {0}, chain},
    {"fib30", {0}, fib30},
    {"sleep1000", {0}, sleep1000},
    {"wake", {0}, wake},
};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
