// SPDX-License-Identifier: MIT
//
// tbb.cpp: oneTBB. From outside: task_arena::enqueue into an arena without a place for the submitter. Fork-join and the
// works from inside: task_group, in an arena that the calling thread joins as one of the workers.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "forkjoin.hpp"

namespace {

struct outside {
    tbb::global_control limit;
    tbb::task_arena arena;
    explicit outside(int workers)
        : limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(workers) + 1), arena(workers, 0) {}
};

struct joined {
    tbb::global_control limit;
    tbb::task_arena arena;
    explicit joined(int workers)
        : limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(workers)), arena(workers, 1) {}
};

bench::result micro_outside(const bench::options &o) {
    outside pool(o.workers);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        for (std::uint64_t i = 0; i < n; i++)
            pool.arena.enqueue([i] { bench::tally::add(i); });
        bench::tally::wait_for(n);
    });
}

// oneTBB's nearest to a batch: one task that splits a range down to single items, a task each.
bench::result micro_outside_batch(const bench::options &o) {
    outside pool(o.workers);
    std::uint64_t n = o.count(1'000'000), batch = 1000;
    return bench::measure(n, [&] {
        for (std::uint64_t from = 0; from < n; from += batch)
            pool.arena.enqueue([from, to = std::min(from + batch, n)] {
                tbb::parallel_for(
                    tbb::blocked_range<std::uint64_t>(from, to, 1),
                    [](const tbb::blocked_range<std::uint64_t> &range) {
                        for (std::uint64_t i = range.begin(); i < range.end(); i++)
                            bench::tally::add(i);
                    },
                    tbb::simple_partitioner());
            });
        bench::tally::wait_for(n);
    });
}

bench::result micro_inside(const bench::options &o) {
    joined pool(o.workers);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        pool.arena.execute([n] {
            tbb::task_group group;
            for (std::uint64_t i = 0; i < n; i++)
                group.run([i] { bench::tally::add(i); });
            group.wait();
        });
        bench::tally::wait_for(n);
    });
}

void link(tbb::task_group &group, std::uint64_t left, std::uint64_t &hops) {
    hops++;
    if (left > 1) group.run([&group, left, &hops] { link(group, left - 1, hops); });
}

bench::result chain(const bench::options &o) {
    joined pool(o.workers);
    std::uint64_t n = o.count(100'000);
    return bench::measure(n, [&] {
        std::uint64_t hops = 0;
        pool.arena.execute([&] {
            tbb::task_group group;
            group.run([&] { link(group, n, hops); });
            group.wait();
        });
        bench::check(hops, n, "hops");
    });
}

std::uint64_t fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    std::uint64_t x = 0;
    tbb::task_group group;
    group.run([&x, n] { x = fib(n - 1); });
    std::uint64_t y = fib(n - 2);
    group.wait();
    return x + y;
}

bench::result fib30(const bench::options &o) {
    joined pool(o.workers);
    int n = bench::fib_size(o);
    return bench::measure(bench::fib_forks(n), [&] {
        std::uint64_t got = 0;
        pool.arena.execute([&] { got = fib(n); });
        bench::check(got, bench::fib_sequential(n), "fib");
    });
}

std::uint64_t skynet_node(std::uint64_t first, std::uint64_t leaves) {
    if (leaves == 1) return first;
    std::array<std::uint64_t, 10> parts;
    tbb::task_group group;
    for (std::uint64_t i = 0; i < 10; i++)
        group.run([&parts, i, first, leaves] { parts[i] = skynet_node(first + i * (leaves / 10), leaves / 10); });
    group.wait();
    std::uint64_t sum = 0;
    for (std::uint64_t part : parts)
        sum += part;
    return sum;
}

bench::result skynet(const bench::options &o) {
    joined pool(o.workers);
    std::uint64_t leaves = bench::skynet_leaves(o);
    return bench::measure(leaves, [&] {
        std::uint64_t got = 0;
        pool.arena.execute([&] { got = skynet_node(0, leaves); });
        bench::check(got, bench::skynet_sum(leaves), "skynet");
    });
}

std::uint64_t queens(int n, int row, bench::board b) {
    if (row == n) return 1;
    std::array<std::uint64_t, bench::queens_max> parts{};
    tbb::task_group group;
    for (int column = 0; column < n; column++)
        if (bench::queen_fits(b, row, column)) {
            b[static_cast<std::size_t>(row)] = static_cast<char>(column);
            group.run([n, row, b, &part = parts[static_cast<std::size_t>(column)]] { part = queens(n, row + 1, b); });
        }
    group.wait();
    std::uint64_t sum = 0;
    for (std::uint64_t part : parts)
        sum += part;
    return sum;
}

bench::result nqueens(const bench::options &o) {
    joined pool(o.workers);
    int n = bench::queens_size(o);
    return bench::measure(1, [&] {
        std::uint64_t got = 0;
        pool.arena.execute([&] { got = queens(n, 0, {}); });
        bench::check(got, bench::queens_solutions(n), "queens");
    });
}

void multiply(const int *a, const int *b, int *c, int n, int stride) {
    if (n <= bench::matrix_leaf) return bench::matrix_multiply_leaf(a, b, c, n, stride);
    int half = n / 2, down = half * stride;
    tbb::task_group group;
    group.run([=] { multiply(a, b, c, half, stride); });
    group.run([=] { multiply(a, b + half, c + half, half, stride); });
    group.run([=] { multiply(a + down, b, c + down, half, stride); });
    group.run([=] { multiply(a + down, b + half, c + down + half, half, stride); });
    group.wait();
    group.run([=] { multiply(a + half, b + down, c, half, stride); });
    group.run([=] { multiply(a + half, b + down + half, c + half, half, stride); });
    group.run([=] { multiply(a + down + half, b + down, c + down, half, stride); });
    group.run([=] { multiply(a + down + half, b + down + half, c + down + half, half, stride); });
    group.wait();
}

bench::result matmul(const bench::options &o) {
    joined pool(o.workers);
    bench::matrices m(bench::matrix_size(o));
    return bench::measure(1, [&] {
        m.clear();
        pool.arena.execute([&] { multiply(m.a.data(), m.b.data(), m.c.data(), m.n, m.n); });
        m.check();
    });
}

bench::result wake(const bench::options &o) {
    outside pool(o.workers);
    return bench::wake(o,
                       [&](std::atomic<std::int64_t> *began) { pool.arena.enqueue([began] { began->store(bench_now_ns()); }); });
}

bench::result idle_cpu(const bench::options &o) {
    outside pool(o.workers);
    pool.arena.enqueue([] { bench::tally::add(0); });
    bench::tally::wait_for(1); // its threads start with the first task
    return bench::idle(o);
}

const std::vector<bench::work> works = {
    {"micro_outside", {1, 2}, micro_outside},
    {"micro_outside_batch", {1, 2}, micro_outside_batch},
    {"micro_inside", {1, 2}, micro_inside},
    {"chain", {1, 2}, chain},
    {"fib30", {1, 2}, fib30},
    {"skynet", {1, 2}, skynet},
    {"nqueens", {1, 2}, nqueens},
    {"matmul", {1, 2}, matmul},
    {"wake", {1, 2}, wake},
    {"idle_cpu", {1, 2}, idle_cpu},
};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
