// SPDX-License-Identifier: MIT
//
// calls.cpp: fork and join of plain functions, as oneTBB's are: nothing is allocated and nothing suspends.
#include <array>

#include "forkjoin.hpp"
#include "weft_works.hpp"

namespace {

/// Calls a function on a worker.
template <class F>
weft::task<> call(F &function) {
    function();
    co_return;
}

template <class F>
void on_worker(weft::runtime &runtime, F function) {
    weft::sync_wait(runtime.scheduler(), call(function));
}

std::uint64_t fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    auto [x, y] = weft::fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return x + y;
}

bench::result fib30(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    int n = bench::fib_size(o);
    return bench::measure(bench::fib_forks(n),
                          [&] { on_worker(runtime, [n] { bench::check(fib(n), bench::fib_sequential(n), "fib"); }); });
}

std::uint64_t skynet_node(std::uint64_t first, std::uint64_t leaves) {
    if (leaves == 1) return first;
    std::array<std::uint64_t, 10> parts;
    weft::parallel_for(std::size_t{0}, parts.size(), [&](std::size_t i) { parts[i] = skynet_node(first + i * (leaves / 10), leaves / 10); });
    std::uint64_t sum = 0;
    for (std::uint64_t part : parts)
        sum += part;
    return sum;
}

bench::result skynet(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t leaves = bench::skynet_leaves(o);
    return bench::measure(leaves, [&] {
        on_worker(runtime, [leaves] { bench::check(skynet_node(0, leaves), bench::skynet_sum(leaves), "skynet"); });
    });
}

std::uint64_t queens(int n, int row, bench::board b) {
    if (row == n) return 1;
    std::array<char, bench::queens_max> fitting;
    std::size_t count = 0;
    for (int column = 0; column < n; column++)
        if (bench::queen_fits(b, row, column)) fitting[count++] = static_cast<char>(column);
    std::array<std::uint64_t, bench::queens_max> parts{};
    weft::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
        bench::board next = b;
        next[static_cast<std::size_t>(row)] = fitting[i];
        parts[i] = queens(n, row + 1, next);
    });
    std::uint64_t sum = 0;
    for (std::uint64_t part : parts)
        sum += part;
    return sum;
}

bench::result nqueens(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    int n = bench::queens_size(o);
    return bench::measure(1, [&] {
        on_worker(runtime, [n] { bench::check(queens(n, 0, {}), bench::queens_solutions(n), "queens"); });
    });
}

void multiply(const int *a, const int *b, int *c, int n, int stride) {
    if (n <= bench::matrix_leaf) {
        bench::matrix_multiply_leaf(a, b, c, n, stride);
        return;
    }
    int half = n / 2, down = half * stride;
    auto both = [=](int k) { // the parts of the sum one after the other
        const int *left = a + k * half, *right = b + k * down;
        weft::fork_join([=] { multiply(left, right, c, half, stride); }, [=] { multiply(left, right + half, c + half, half, stride); },
                        [=] { multiply(left + down, right, c + down, half, stride); },
                        [=] { multiply(left + down, right + half, c + down + half, half, stride); });
    };
    both(0);
    both(1);
}

bench::result matmul(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    bench::matrices m(bench::matrix_size(o));
    return bench::measure(1, [&] {
        m.clear();
        on_worker(runtime, [&] { multiply(m.a.data(), m.b.data(), m.c.data(), m.n, m.n); });
        m.check();
    });
}

} // namespace

const std::vector<bench::work> calls_works = {
    {"fib30_calls", {1, 2}, fib30}, {"skynet_calls", {1, 2}, skynet}, {"nqueens_calls", {1, 2}, nqueens}, {"matmul_calls", {1, 2}, matmul}};
