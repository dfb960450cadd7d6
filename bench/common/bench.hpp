// SPDX-License-Identifier: MIT
//
// bench.hpp: the frame of a C++ benchmark program. A program is a list of works; `program list` prints their names with
// the numbers of workers that make sense, `program run WORK WORKERS SCALE` runs one and prints one line of results,
// "ns=12.3 cpu_ns=4.5". The driver starts one process for each such line.
#ifndef WEFT_BENCH_HPP
#define WEFT_BENCH_HPP

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench.h"

namespace bench {

/// What the driver asked for.
struct options {
    int workers = 1;
    double scale = 1;

    /// A work's own count, scaled: never less than one.
    std::uint64_t count(std::uint64_t full) const {
        auto scaled = static_cast<std::uint64_t>(static_cast<double>(full) * scale);
        return scaled > 0 ? scaled : 1;
    }
};

/// One line of results; every value is a number with its unit in its name.
struct result {
    double ns = 0;
    std::vector<std::pair<std::string, double>> extra{};
};

struct work {
    const char *name;
    std::vector<int> workers; // which numbers of workers make sense for it
    result (*run)(const options &);
};

int run_program(int argc, char **argv, std::initializer_list<std::vector<work>> works);

inline void check(std::uint64_t got, std::uint64_t want, const char *what) {
    if (got != want)
        bench_fail("%s: got %llu, want %llu", what, static_cast<unsigned long long>(got), static_cast<unsigned long long>(want));
}

/// Runs the body once to warm caches and allocators, then until 100 ms are full (at most 9 times), and tells the median time
/// per operation and the mean CPU time.
result measure_(std::uint64_t operations, void (*body)(void *), void *context);

template <class Body>
result measure(std::uint64_t operations, Body &&body) {
    return measure_(
        operations, [](void *context) { (*static_cast<Body *>(context))(); }, static_cast<void *>(std::addressof(body)));
}

/// p50 as ns, and p99, of a set of samples.
result percentiles(std::vector<std::int64_t> &samples);

/// The time from submit until the op begins, in a pool that has had the time to fall asleep. `submit` hands over an op that
/// stores bench_now_ns() where it is told to.
result wake_(const options &o, void (*submit)(void *, std::atomic<std::int64_t> *), void *context);

template <class Submit>
result wake(const options &o, Submit &&submit) {
    return wake_(
        o, [](void *context, std::atomic<std::int64_t> *began) { (*static_cast<Submit *>(context))(began); },
        static_cast<void *>(std::addressof(submit)));
}

/// CPU time that the process uses per second, while nobody does anything for 5 seconds.
result idle(const options &o);

/// Time and memory of parked coroutines: `park` is called once and ends when all are parked, `release` when all have ended.
result parked_(std::uint64_t n, void (*park)(void *), void *park_context, void (*release)(void *), void *release_context);

template <class Park, class Release>
result parked(std::uint64_t n, Park &&park, Release &&release) {
    return parked_(
        n, [](void *c) { (*static_cast<Park *>(c))(); }, static_cast<void *>(std::addressof(park)),
        [](void *c) { (*static_cast<Release *>(c))(); }, static_cast<void *>(std::addressof(release)));
}

/// What micro tasks add to: a slot per thread, so that counting costs no cache line that others write.
class tally {
public:
    static void add(std::uint64_t i);      ///< does the i-th micro task
    static void wait_for(std::uint64_t n); ///< from outside: sleeps until n tasks were done since the last call, checks their sum
};

} // namespace bench
#endif
