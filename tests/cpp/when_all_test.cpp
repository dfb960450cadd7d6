// SPDX-License-Identifier: MIT
//
// weft/when_all.hpp: tuples and ranges, results of every kind, exceptions, and many joins at once.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <weft/event.hpp>
#include <weft/schedule_on.hpp>
#include <weft/sleep.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

weft::task<int> value(int v) { co_return v; }
weft::task<std::unique_ptr<int>> unique(int v) { co_return std::make_unique<int>(v); }
weft::task<int &> reference(int &to) { co_return to; }
weft::task<> nothing() { co_return; }
weft::task<int> fails(const char *what, std::chrono::microseconds after) {
    co_await weft::sleep_for(after);
    throw std::runtime_error(what);
}

weft::task<long> fib(int n) {
    if (n < 2) {
        co_return n;
    }
    const auto [a, b] = co_await weft::when_all(fib(n - 1), fib(n - 2));
    co_return a + b;
}

} // namespace

TEST_CASE("when_all: a tuple in the order of the arguments") {
    test::run(2, []() -> weft::task<> {
        int target = 0;
        auto all = co_await weft::when_all(value(1), unique(2), reference(target), nothing(), weft::sleep_for(1ms));
        static_assert(
            std::is_same_v<decltype(all),
                           std::tuple<int, std::unique_ptr<int>, std::reference_wrapper<int>, std::monostate, std::monostate>>);
        CHECK(std::get<0>(all) == 1);
        CHECK(*std::get<1>(all) == 2);
        CHECK(&std::get<2>(all).get() == &target);
        static_assert(std::is_void_v<weft::await_result<decltype(weft::when_all(nothing(), nothing()))>>);
        co_await weft::when_all(nothing(), weft::sleep_for(1us));
        const auto [one] = co_await weft::when_all(value(5));
        CHECK(one == 5);
        co_await weft::when_all();
    });
}

TEST_CASE("when_all: ranges") {
    test::run(2, []() -> weft::task<> {
        std::vector<weft::task<int>> tasks;
        for (int i = 0; i < 1000; ++i) {
            tasks.push_back(value(i));
        }
        const std::vector<int> got = co_await weft::when_all(std::move(tasks));
        CHECK(got.size() == 1000);
        bool in_order = true;
        for (int i = 0; i < 1000; ++i) {
            in_order = in_order && got[static_cast<std::size_t>(i)] == i;
        }
        CHECK(in_order);

        std::list<weft::task<>> voids;
        voids.push_back(nothing());
        voids.push_back(nothing());
        co_await weft::when_all(voids); // a range that is moved from
        CHECK_FALSE(static_cast<bool>(voids.front()));

        std::array<weft::task<std::unique_ptr<int>>, 2> moves{unique(3), unique(4)};
        CHECK(*(co_await weft::when_all(std::move(moves)))[1] == 4);

        int target = 0;
        std::vector<weft::task<int &>> references;
        references.push_back(reference(target));
        CHECK(&(co_await weft::when_all(std::move(references)))[0].get() == &target);

        CHECK((co_await weft::when_all(std::vector<weft::task<int>>())).empty());
    });
}

TEST_CASE("when_all: children run at once, not one after the other") {
    for (const std::uint32_t workers : {1U, 2U}) {
        test::run(workers, []() -> weft::task<> {
            weft::event a;
            weft::event b;
            const auto left = [&]() -> weft::task<int> {
                a.set();
                co_await b.wait();
                co_return 1;
            };
            const auto right = [&]() -> weft::task<int> {
                co_await a.wait();
                b.set();
                co_return 2;
            };
            const auto [x, y] = co_await weft::when_all(left(), right());
            CHECK(x + y == 3);
        });
    }
}

TEST_CASE("when_all: waits for all, and throws the exception of the first argument that has one") {
    test::run(2, []() -> weft::task<> {
        std::atomic<bool> slow_done{false};
        const auto slow = [&]() -> weft::task<> {
            co_await weft::sleep_for(5ms);
            slow_done = true;
        };
        bool caught = false;
        try {
            co_await weft::when_all(nothing(), fails("late", 2000us), fails("early", 10us), slow());
        } catch (const std::runtime_error &e) {
            caught = std::string(e.what()) == "late";
        }
        CHECK(caught);
        CHECK(slow_done);
        std::vector<weft::task<int>> tasks;
        tasks.push_back(value(1));
        tasks.push_back(fails("one", 1us));
        bool threw = false;
        try {
            co_await weft::when_all(std::move(tasks));
        } catch (const std::runtime_error &) {
            threw = true;
        }
        CHECK(threw);
        threw = false;
        try {
            co_await weft::when_all(value(1), weft::task<int>());
        } catch (const std::logic_error &) {
            threw = true;
        }
        CHECK(threw);
    });
}

TEST_CASE("when_all: on the thread of sync_wait, and across runtimes") {
    CHECK(weft::sync_wait(fib(12)) == 144);
    weft::runtime other;
    test::run(2, [&]() -> weft::task<> {
        const std::uint64_t home = test::here();
        for (int i = 0; i < 500; ++i) {
            const auto [a, b] = co_await weft::when_all(value(1) | weft::schedule_on(other.scheduler()), value(2));
            REQUIRE(a + b == 3);
            REQUIRE(test::here() == home);
        }
    });
}

TEST_CASE("when_all: a tree of joins that is stolen from") {
    for (const std::uint32_t workers : {1U, 2U, 4U}) {
        CHECK(test::run(workers, [] { return fib(20); }) == 6765);
    }
}

TEST_CASE("when_all: children that end on other workers than they began") {
    std::atomic<int> total{0};
    test::run(4, [&]() -> weft::task<> {
        const auto hop = [&](int n) -> weft::task<int> {
            for (int i = 0; i < n; ++i) {
                co_await weft::this_task::yield();
            }
            ++total;
            co_return n;
        };
        for (int i = 0; i < 2000; ++i) {
            const auto [a, b, c] = co_await weft::when_all(hop(i % 3), hop(i % 2), hop(0));
            REQUIRE(a + b + c == i % 3 + i % 2);
        }
    });
    CHECK(total == 6000);
}
