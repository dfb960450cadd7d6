// SPDX-License-Identifier: MIT
//
// forkjoin.hpp: the fork-join problems without the forking: their sizes, their sequential parts and their right answers.
// They are the ones of the public runtime-benchmarks suite: fib, skynet, n queens, matrix multiplication.
#ifndef WEFT_BENCH_FORKJOIN_HPP
#define WEFT_BENCH_FORKJOIN_HPP

#include <array>
#include <cmath>
#include <vector>

#include "bench.hpp"

namespace bench {

// fib(n), forking at every n >= 2: fib(30) forks 1,346,268 times.
inline int fib_size(const options &o, int full = 30) {
    int n = full + static_cast<int>(std::log(o.scale < 1 ? o.scale : 1) / std::log(1.618));
    return n > 5 ? n : 5;
}

inline std::uint64_t fib_sequential(int n) {
    std::uint64_t a = 0, b = 1;
    for (int i = 0; i < n; i++)
        b = a + std::exchange(a, b);
    return a;
}

inline std::uint64_t fib_forks(int n) { return fib_sequential(n + 1) - 1; }

// skynet: a tree of tasks, ten children each; every leaf returns its number. 10^6 leaves.
inline std::uint64_t skynet_leaves(const options &o) {
    std::uint64_t leaves = 10;
    while (leaves * 10 <= o.count(1'000'000))
        leaves *= 10;
    return leaves;
}

inline std::uint64_t skynet_sum(std::uint64_t leaves) { return leaves * (leaves - 1) / 2; }

// n queens: a task for each way to place one more queen.
constexpr int queens_max = 16;
using board = std::array<char, queens_max>;

inline int queens_size(const options &o) { return o.scale < 1 ? 8 : 11; }
inline std::uint64_t queens_solutions(int n) { return n == 8 ? 92 : 2680; }

// This one and the matrices' leaf are not inlined, and stand at the same place in the lines of the cache: the same machine code for every peer, whatever it is
// called from.
__attribute__((noinline, aligned(64))) inline bool queen_fits(const board &b, int row, int column) {
    for (int r = 0; r < row; r++)
        if (b[r] == column || b[r] == column - (row - r) || b[r] == column + (row - r)) return false;
    return true;
}

// Matrix multiplication: quarters, twice four tasks, down to 32 x 32.
constexpr int matrix_leaf = 32;

inline int matrix_size(const options &o) { return o.scale < 1 ? 64 : 512; }

struct matrices {
    int n;
    std::vector<int> a, b, c;

    explicit matrices(int size) : n(size), a(squared(), 1), b(squared(), 1), c(squared(), 0) {}
    std::size_t squared() const { return static_cast<std::size_t>(n) * static_cast<std::size_t>(n); }
    void clear() { c.assign(squared(), 0); }
    void check() const {
        for (int value : c)
            bench::check(static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(n), "element of the product");
    }
};

__attribute__((noinline, aligned(64))) inline void matrix_multiply_leaf(const int *a, const int *b, int *c, int n, int stride) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                c[i * stride + j] += a[i * stride + k] * b[k * stride + j];
}

} // namespace bench
#endif
