// SPDX-License-Identifier: MIT
//
// forkjoin.cpp: fork and join with when_all.
#include "forkjoin.hpp"
#include "weft_works.hpp"

namespace {

weft::task<std::uint64_t> fib(int n) {
    if (n < 2) co_return static_cast<std::uint64_t>(n);
    auto [x, y] = co_await weft::when_all(fib(n - 1), fib(n - 2));
    co_return x + y;
}

bench::result fib30(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    int n = bench::fib_size(o);
    return bench::measure(bench::fib_forks(n),
                          [&] { bench::check(weft::sync_wait(runtime.scheduler(), fib(n)), bench::fib_sequential(n), "fib"); });
}

std::uint64_t sum(const std::vector<std::uint64_t> &parts) {
    std::uint64_t total = 0;
    for (auto part : parts)
        total += part;
    return total;
}

weft::task<std::uint64_t> skynet_node(std::uint64_t first, std::uint64_t leaves) {
    if (leaves == 1) co_return first;
    std::vector<weft::task<std::uint64_t>> children;
    children.reserve(10);
    for (std::uint64_t i = 0; i < 10; i++)
        children.push_back(skynet_node(first + i * (leaves / 10), leaves / 10));
    co_return sum(co_await weft::when_all(std::move(children)));
}

bench::result skynet(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t leaves = bench::skynet_leaves(o);
    return bench::measure(leaves, [&] {
        bench::check(weft::sync_wait(runtime.scheduler(), skynet_node(0, leaves)), bench::skynet_sum(leaves), "skynet");
    });
}

weft::task<std::uint64_t> queens(int n, int row, bench::board b) {
    if (row == n) co_return 1;
    std::vector<weft::task<std::uint64_t>> children;
    for (int column = 0; column < n; column++)
        if (bench::queen_fits(b, row, column)) {
            b[static_cast<std::size_t>(row)] = static_cast<char>(column);
            children.push_back(queens(n, row + 1, b));
        }
    co_return sum(co_await weft::when_all(std::move(children)));
}

bench::result nqueens(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    int n = bench::queens_size(o);
    return bench::measure(
        1, [&] { bench::check(weft::sync_wait(runtime.scheduler(), queens(n, 0, {})), bench::queens_solutions(n), "queens"); });
}

weft::task<> multiply(const int *a, const int *b, int *c, int n, int stride) {
    if (n <= bench::matrix_leaf) {
        bench::matrix_multiply_leaf(a, b, c, n, stride);
        co_return;
    }
    int half = n / 2, down = half * stride;
    co_await weft::when_all(multiply(a, b, c, half, stride), multiply(a, b + half, c + half, half, stride),
                            multiply(a + down, b, c + down, half, stride),
                            multiply(a + down, b + half, c + down + half, half, stride));
    co_await weft::when_all(multiply(a + half, b + down, c, half, stride),
                            multiply(a + half, b + down + half, c + half, half, stride),
                            multiply(a + down + half, b + down, c + down, half, stride),
                            multiply(a + down + half, b + down + half, c + down + half, half, stride));
}

bench::result matmul(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    bench::matrices m(bench::matrix_size(o));
    return bench::measure(1, [&] {
        m.clear();
        weft::sync_wait(runtime.scheduler(), multiply(m.a.data(), m.b.data(), m.c.data(), m.n, m.n));
        m.check();
    });
}

} // namespace

const std::vector<bench::work> forkjoin_works = {
    {"fib30", {1, 2}, fib30}, {"skynet", {1, 2}, skynet}, {"nqueens", {1, 2}, nqueens}, {"matmul", {1, 2}, matmul}};
