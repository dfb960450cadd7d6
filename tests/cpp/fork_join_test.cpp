// SPDX-License-Identifier: MIT
//
// weft/fork_join.hpp: results of every kind, exceptions, ranges; in tasks and where there is no worker.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <weft/fork_join.hpp>
#include <weft/sleep.hpp>
#include <weft/when_all.hpp>

#include "support.hpp"

namespace {

long fib(int n) {
    if (n < 2) {
        return n;
    }
    const auto [a, b] = weft::fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return a + b;
}

/// Does it on one worker, on some, and on a thread that is none.
template <class F>
void everywhere(F f) {
    f();
    for (const std::uint32_t workers : {1U, 2U, 8U}) {
        test::run(workers, [&]() -> weft::task<> {
            f();
            co_return;
        });
    }
}

} // namespace

TEST_CASE("fork_join: a tuple in the order of the arguments") {
    everywhere([] {
        int target = 0;
        int ran = 0;
        auto all = weft::fork_join([] { return 1; }, [] { return std::make_unique<int>(2); }, [&]() -> int & { return target; }, [&] { ++ran; },
                                   [text = std::string("moved")]() mutable { return std::move(text); });
        static_assert(std::is_same_v<decltype(all), std::tuple<int, std::unique_ptr<int>, std::reference_wrapper<int>, std::monostate, std::string>>);
        CHECK(std::get<0>(all) == 1);
        CHECK(*std::get<1>(all) == 2);
        CHECK(&std::get<2>(all).get() == &target);
        CHECK(ran == 1);
        CHECK(std::get<4>(all) == "moved");
        static_assert(std::is_void_v<decltype(weft::fork_join([] {}, [] {}))>);
        CHECK(weft::fork_join([] { return 7; }) == std::tuple(7));
    });
}

TEST_CASE("fork_join: trees") {
    everywhere([] { CHECK(fib(18) == 2584); });
}

TEST_CASE("fork_join: the first exception in the order of the arguments comes out, when all have ended") {
    everywhere([] {
        std::atomic<int> ended = 0;
        const auto fails = [&](const char *what) {
            return [&ended, what] {
                ++ended;
                throw std::runtime_error(what);
            };
        };
        CHECK_THROWS_WITH(weft::fork_join([&] { ++ended; }, fails("second"), fails("third"), [&] { ++ended; }), "second");
        CHECK(ended == 4);
        CHECK_THROWS_WITH(weft::fork_join(fails("first"), fails("second")), "first");
        CHECK(ended == 6);
        CHECK_THROWS_WITH(static_cast<void>(weft::fork_join([&] { return ++ended; }, [&]() -> int { throw std::runtime_error("of a value"); })), "of a value");
    });
}

TEST_CASE("fork_join: what was returned and is not wanted after an exception is destroyed") {
    everywhere([] {
        const auto held = std::make_shared<int>(0);
        CHECK_THROWS(static_cast<void>(weft::fork_join([&] { return held; }, [] { throw std::runtime_error("no"); }, [&] { return held; })));
        CHECK(held.use_count() == 1);
    });
}

TEST_CASE("fork_join: between tasks that wait") {
    test::run(2, []() -> weft::task<> {
        const auto part = [](int n) -> weft::task<long> {
            co_await weft::sleep_for(std::chrono::microseconds(100));
            const long value = fib(n);
            co_await weft::sleep_for(std::chrono::microseconds(100));
            co_return value;
        };
        const auto [a, b, c] = co_await weft::when_all(part(16), part(17), part(18));
        CHECK(a == 987);
        CHECK(b == 1597);
        CHECK(c == 2584);
    });
}

TEST_CASE("parallel_for: each index once, for every size and grain") {
    everywhere([] {
        for (const int count : {0, 1, 2, 3, 7, 64, 1000}) {
            for (const int grain : {1, 2, 5, 1000, 5000}) {
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
                weft::parallel_for(0, count, [&](int i) { ++seen[static_cast<std::size_t>(i)]; }, grain);
                CHECK(std::accumulate(seen.begin(), seen.end(), 0) == count);
                CHECK(std::none_of(seen.begin(), seen.end(), [](const auto &n) { return n != 1; }));
            }
        }
    });
}

TEST_CASE("parallel_for: the ends of a type, and ranges that are none") {
    everywhere([] {
        std::atomic<int> calls = 0;
        std::atomic<int> sum = 0;
        const auto body = [&](std::int8_t i) {
            ++calls;
            sum += i;
        };
        weft::parallel_for(std::numeric_limits<std::int8_t>::min(), std::numeric_limits<std::int8_t>::max(), body);
        CHECK(calls == 255);
        CHECK(sum == -255);
        weft::parallel_for(std::int8_t{5}, std::int8_t{-5}, body);
        CHECK(calls == 255);
        CHECK_THROWS_AS(weft::parallel_for(0, 10, [](int) {}, 0), std::invalid_argument);
        CHECK_THROWS_AS(weft::parallel_for(0, 0, [](int) {}, -1), std::invalid_argument);
    });
}

TEST_CASE("parallel_for: the exception of the part that comes first") {
    everywhere([] {
        std::atomic<int> calls = 0;
        CHECK_THROWS_WITH(weft::parallel_for(0, 100,
                                             [&](int i) {
                                                 ++calls;
                                                 if (i % 10 == 5) {
                                                     throw std::runtime_error(std::to_string(i));
                                                 }
                                             }),
                          "5");
        CHECK(calls == 100);
    });
}
