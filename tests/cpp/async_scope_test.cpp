// SPDX-License-Identifier: MIT
//
// weft/async_scope.hpp: spawn, join, cancel, failure, and the rule that a scope outlives its tasks.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <weft/async_scope.hpp>
#include <weft/cancellation.hpp>
#include <weft/event.hpp>
#include <weft/sleep.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

weft::task<int> count(std::atomic<int> &total) {
    co_await weft::this_task::yield();
    co_return ++total;
}

// Waits until it is cancelled, and takes its time to end.
weft::task<> stubborn(std::atomic<int> &ended) {
    try {
        co_await weft::sleep_for(1h);
    } catch (const weft::operation_cancelled &) {
    }
    co_await (weft::sleep_for(3ms) | weft::with_token({}));
    ++ended;
}

} // namespace

TEST_CASE("async_scope: join waits for all") {
    std::atomic<int> total{0};
    test::run(2, [&]() -> weft::task<> {
        weft::async_scope scope;
        CHECK(scope.outstanding() == 0);
        co_await scope.join(); // of nothing
        for (int i = 0; i < 100; ++i) {
            scope.spawn(count(total));
            scope.spawn([&total]() -> weft::task<> { // captures live in the scope's task
                co_await weft::sleep_for(1ms);
                ++total;
            });
        }
        scope.spawn(weft::sleep_for(1ms));
        const std::uint64_t home = test::here();
        co_await scope.join();
        CHECK(test::here() == home);
        CHECK(total == 200);
        CHECK(scope.outstanding() == 0);
        scope.spawn(count(total)); // may be used again
        co_await scope.join();
    });
    CHECK(total == 201);
}

TEST_CASE("async_scope: from outside it has the scheduler that it was given") {
    weft::runtime pool;
    weft::runtime other;
    std::atomic<int> total{0};
    weft::async_scope scope(pool.scheduler());
    std::atomic<std::uint64_t> first{0};
    std::atomic<std::uint64_t> second{0};
    scope.spawn([&]() -> weft::task<> {
        first = test::here();
        co_return;
    });
    scope.spawn(other.scheduler(), [&]() -> weft::task<> {
        second = test::here();
        co_return;
    });
    scope.spawn(count(total));
    weft::sync_wait(scope.join());
    CHECK(first == pool.native().id);
    CHECK(second == other.native().id);
    CHECK(total == 1);
    pool.stop();
    CHECK_THROWS_AS(scope.spawn(count(total)), weft::runtime_stopped);
    CHECK(scope.outstanding() == 0);
    weft::sync_wait(scope.join());
}

TEST_CASE("async_scope: tasks may spawn while join waits") {
    std::atomic<int> total{0};
    test::run(2, [&]() -> weft::task<> {
        weft::async_scope scope;
        struct tree {
            static weft::task<> grow(weft::async_scope &scope, std::atomic<int> &total, int depth) {
                ++total;
                if (depth > 0) {
                    scope.spawn(grow(scope, total, depth - 1));
                    scope.spawn(grow(scope, total, depth - 1));
                }
                co_return;
            }
        };
        scope.spawn(tree::grow(scope, total, 10));
        co_await scope.join();
    });
    CHECK(total == 2047);
}

TEST_CASE("async_scope: cancel reaches all, and join waits for their ends") {
    std::atomic<int> ended{0};
    test::run(2, [&]() -> weft::task<> {
        weft::async_scope scope;
        for (int i = 0; i < 10; ++i) {
            scope.spawn(stubborn(ended));
        }
        CHECK_FALSE(scope.cancel_requested());
        scope.request_cancel();
        CHECK(scope.cancel_requested());
        CHECK(scope.token().requested());
        scope.spawn(stubborn(ended)); // finds the request
        co_await scope.join();
        CHECK(ended == 11);
    });
}

TEST_CASE("async_scope: a request to the one who joins is passed on, and join still waits") {
    std::atomic<int> ended{0};
    test::run(2, [&]() -> weft::task<> {
        weft::cancellation_source source;
        const auto joiner = [&]() -> weft::task<> {
            weft::async_scope scope;
            scope.spawn(stubborn(ended));
            scope.spawn(stubborn(ended));
            co_await scope.join(); // returns: there is nothing left to cancel
            CHECK(ended == 2);
        };
        const auto requester = [&]() -> weft::task<> {
            co_await weft::sleep_for(2ms);
            source.request();
        };
        co_await weft::when_all(joiner() | weft::with_token(source.token()), requester());
    });
    CHECK(ended == 2);
}

TEST_CASE("async_scope: the first exception cancels the others and comes out of join") {
    std::atomic<int> ended{0};
    test::run(2, [&]() -> weft::task<> {
        weft::async_scope scope;
        scope.spawn(stubborn(ended));
        scope.spawn([]() -> weft::task<> {
            co_await weft::sleep_for(1ms);
            throw std::runtime_error("first");
        });
        bool caught = false;
        try {
            co_await scope.join();
        } catch (const std::runtime_error &e) {
            caught = std::string(e.what()) == "first";
        }
        CHECK(caught);
        CHECK(ended == 1);
        co_await scope.join(); // it is told once
    });
}

TEST_CASE("async_scope: operation_cancelled is not a failure") {
    test::run(2, []() -> weft::task<> {
        weft::async_scope scope;
        scope.spawn([]() -> weft::task<> {
            throw weft::operation_cancelled();
            co_return;
        });
        co_await scope.join();
        CHECK_FALSE(scope.cancel_requested());
    });
}

TEST_CASE("async_scope: two joins at once are an error of the second") {
    test::run(1, []() -> weft::task<> {
        weft::async_scope scope;
        weft::event go;
        scope.spawn(go.wait());
        const auto first = [&]() -> weft::task<bool> {
            co_await scope.join();
            co_return true;
        };
        const auto second = [&]() -> weft::task<bool> {
            co_await weft::this_task::yield();
            bool threw = false;
            try {
                co_await scope.join();
            } catch (const std::logic_error &) {
                threw = true;
            }
            go.set();
            co_return threw;
        };
        const auto [joined, threw] = co_await weft::when_all(second(), first());
        CHECK(joined);
        CHECK(threw);
    });
}

TEST_CASE("async_scope: may be destroyed as soon as join returns") {
    std::atomic<int> total{0};
    test::run(2, [&]() -> weft::task<> {
        for (int i = 0; i < 3000; ++i) {
            auto scope = std::make_unique<weft::async_scope>();
            scope->spawn(count(total));
            scope->spawn(count(total));
            co_await scope->join();
            scope.reset();
        }
    });
    CHECK(total == 6000);
}

TEST_CASE("async_scope: destroyed with tasks outstanding it ends the program and says so") {
    const test::death end = test::dies("async_scope: destroyed with tasks outstanding it ends the program and says so", [] {
        weft::runtime pool;
        weft::event never;
        weft::async_scope scope(pool.scheduler());
        scope.spawn(never.wait());
    });
    CHECK(end.aborted);
    CHECK(end.says("weft: an async_scope was destroyed while tasks of it were outstanding"));
}
