// SPDX-License-Identifier: MIT
//
// bench.cpp: command line, timing and checks for all C++ benchmark programs.
#include "bench.hpp"

#include <algorithm>
#include <mutex>

namespace bench {
namespace {

constexpr int slots_max = 256;

struct alignas(128) slot {
    std::atomic<std::uint64_t> sum{0};   // owner: one thread; the waiter reads
    std::atomic<std::uint64_t> count{0}; // owner: one thread; the waiter reads
};

slot slots[slots_max];
std::atomic<int> slots_used{0};

slot &own_slot() {
    thread_local slot *mine = [] {
        int i = slots_used.fetch_add(1);
        if (i >= slots_max) bench_fail("more than %d threads did micro tasks", slots_max);
        return &slots[i];
    }();
    return *mine;
}

} // namespace

// Not inlined: a micro task is a call, in every peer.
__attribute__((noinline)) void tally::add(std::uint64_t i) {
    slot &mine = own_slot();
    mine.sum.store(mine.sum.load(std::memory_order_relaxed) + bench_value(i), std::memory_order_relaxed);
    // Release, pairs with the acquire in wait_for: who sees the count sees the sum.
    mine.count.store(mine.count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void tally::wait_for(std::uint64_t n) {
    static std::uint64_t seen_count = 0, seen_sum = 0; // of earlier rounds
    static std::uint64_t known = 0, want = 0;          // the sum of `known` tasks; kept, so that only the warm-up pays for it
    for (;;) {
        std::uint64_t count = 0, sum = 0;
        for (int i = 0, used = std::min(slots_used.load(), slots_max); i < used; i++) {
            count += slots[i].count.load(std::memory_order_acquire);
            sum += slots[i].sum.load(std::memory_order_relaxed);
        }
        if (count - seen_count >= n) {
            if (known != n) {
                known = n;
                want = 0;
                for (std::uint64_t i = 0; i < n; i++)
                    want += bench_value(i);
            }
            check(count - seen_count, n, "micro tasks done");
            check(sum - seen_sum, want, "sum of micro tasks");
            seen_count = count;
            seen_sum = sum;
            return;
        }
        bench_sleep_ns(100'000);
    }
}

result measure_(std::uint64_t operations, void (*body)(void *), void *context) {
    body(context);
    std::vector<double> times;
    std::int64_t total = 0;
    std::int64_t cpu = bench_cpu_ns();
    do {
        std::int64_t begin = bench_now_ns();
        body(context);
        std::int64_t took = bench_now_ns() - begin;
        total += took;
        times.push_back(static_cast<double>(took) / static_cast<double>(operations));
    } while (total < 100'000'000 && times.size() < 9);
    cpu = bench_cpu_ns() - cpu;
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], {{"cpu_ns", static_cast<double>(cpu) / static_cast<double>(times.size() * operations)}}};
}

result percentiles(std::vector<std::int64_t> &samples) {
    bench_sort(samples.data(), samples.size());
    auto at = [&](double share) { return static_cast<double>(bench_percentile(samples.data(), samples.size(), share)); };
    return {at(0.5), {{"p99_ns", at(0.99)}}};
}

result wake_(const options &o, void (*submit)(void *, std::atomic<std::int64_t> *), void *context) {
    std::vector<std::int64_t> samples(o.count(1000));
    std::atomic<std::int64_t> began;
    for (std::size_t i = 0; i < samples.size(); i++) {
        bench_sleep_ns(500'000 + static_cast<std::int64_t>(bench_random(i) % 1'000'000));
        began.store(0);
        std::int64_t submitted = bench_now_ns();
        submit(context, &began);
        /* Asleep and not in a loop: where the system wakes the worker on this CPU, a loop would measure the rest of its time slice. */
        while (began.load() == 0) bench_sleep_ns(100'000);
        samples[i] = began.load() - submitted;
    }
    return percentiles(samples);
}

result idle(const options &o) {
    bench_sleep_ns(200'000'000); // the start is over
    std::int64_t begin = bench_now_ns();
    std::int64_t cpu = bench_cpu_ns();
    bench_sleep_ns(static_cast<std::int64_t>(5e9 * o.scale));
    cpu = bench_cpu_ns() - cpu;
    double seconds = static_cast<double>(bench_now_ns() - begin) / 1e9;
    return {static_cast<double>(cpu) / seconds, {{"cpu_percent", static_cast<double>(cpu) / seconds / 1e7}}};
}

result parked_(std::uint64_t n, void (*park)(void *), void *park_context, void (*release)(void *), void *release_context) {
    std::int64_t before = bench_resident_bytes();
    std::int64_t begin = bench_now_ns();
    park(park_context);
    std::int64_t parked = bench_now_ns() - begin;
    std::int64_t bytes = bench_resident_bytes() - before;
    begin = bench_now_ns();
    release(release_context);
    std::int64_t released = bench_now_ns() - begin;
    auto each = [&](std::int64_t all) { return static_cast<double>(all) / static_cast<double>(n); };
    return {each(parked + released), {{"bytes", each(bytes)}, {"park_ns", each(parked)}, {"release_ns", each(released)}}};
}

int run_program(int argc, char **argv, std::initializer_list<std::vector<work>> works) {
    bench_raise_file_limit();
    if (argc == 2 && std::string(argv[1]) == "list") {
        for (auto &group : works)
            for (auto &w : group)
                for (int n : w.workers)
                    std::printf("%s %d\n", w.name, n);
        return 0;
    }
    if (argc == 5 && std::string(argv[1]) == "run") {
        options asked{std::atoi(argv[3]), std::atof(argv[4])};
        for (auto &group : works)
            for (auto &w : group)
                if (std::string(argv[2]) == w.name &&
                    std::find(w.workers.begin(), w.workers.end(), asked.workers) != w.workers.end()) {
                    result r = w.run(asked);
                    std::printf("ns=%.6g", r.ns);
                    for (auto &[name, value] : r.extra)
                        std::printf(" %s=%.6g", name.c_str(), value);
                    std::printf("\n");
                    return 0;
                }
        bench_fail("no work %s for %d workers", argv[2], asked.workers);
    }
    std::fprintf(stderr, "usage: %s list | run WORK WORKERS SCALE\n", argv[0]);
    return 2;
}

} // namespace bench
