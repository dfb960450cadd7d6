// SPDX-License-Identifier: MIT
//
// weft/cancellation.hpp, weft/with_token.hpp, weft/this_task.hpp: sources, tokens, registrations, and how tokens flow.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <weft/cancellation.hpp>
#include <weft/runtime.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

TEST_CASE("cancellation: a source is requested once, and its tokens tell") {
    const weft::cancellation_source source;
    const weft::cancellation_source copy = source;
    const weft::cancellation_token token = source.token();
    CHECK(copy == source);
    CHECK(copy.token() == token);
    CHECK(token.can_be_requested());
    CHECK_FALSE(token.requested());
    CHECK_NOTHROW(token.throw_if_requested());
    CHECK(copy.request());
    CHECK_FALSE(source.request());
    CHECK(source.requested());
    CHECK(token.requested());
    CHECK_THROWS_AS(token.throw_if_requested(), weft::operation_cancelled);
    const weft::cancellation_token none;
    CHECK_FALSE(none.can_be_requested());
    CHECK_FALSE(none.requested());
    CHECK(none == weft::cancellation_token());
    CHECK_FALSE(none == token);
}

TEST_CASE("cancellation: a token outlives its source") {
    weft::cancellation_token token;
    {
        const weft::cancellation_source source;
        token = source.token();
        source.request();
    }
    CHECK(token.requested());
    weft::cancellation_token moved = std::move(token);
    CHECK(moved.requested());
    CHECK_FALSE(token.requested());
}

TEST_CASE("cancellation: registrations run once, newest first, or at once if they come late") {
    const weft::cancellation_source source;
    std::vector<int> order;
    const weft::cancellation_registration one(source.token(), [&] { order.push_back(1); });
    const weft::cancellation_registration two(source.token(), [&] { order.push_back(2); });
    {
        const weft::cancellation_registration gone(source.token(), [&] { order.push_back(3); });
    }
    CHECK(order.empty());
    source.request();
    CHECK(order == std::vector<int>{2, 1});
    const weft::cancellation_registration late(source.token(), [&] { order.push_back(4); });
    CHECK(order == std::vector<int>{2, 1, 4});
    const weft::cancellation_registration never(weft::cancellation_token(), [&] { order.push_back(5); });
    CHECK(order.size() == 3);
}

TEST_CASE("cancellation: a callback may destroy its own registration, and the last source") {
    auto source = std::make_unique<weft::cancellation_source>();
    int calls = 0;
    using registration = weft::cancellation_registration<std::function<void()>>;
    std::optional<registration> own;
    own.emplace(source->token(), std::function<void()>([&] {
                    ++calls;
                    source.reset();
                    own.reset();
                }));
    source->request();
    CHECK(calls == 1);
    CHECK_FALSE(own.has_value());
}

TEST_CASE("cancellation: the destructor of a registration waits for its callback on another thread") {
    const weft::cancellation_source source;
    std::atomic<bool> entered{false};
    std::atomic<bool> finished{false};
    std::thread requester;
    {
        const weft::cancellation_registration slow(source.token(), [&] {
            entered = true;
            std::this_thread::sleep_for(10ms);
            finished = true;
        });
        requester = std::thread([&] { source.request(); });
        while (!entered) {
            std::this_thread::yield();
        }
    }
    CHECK(finished);
    requester.join();
}

TEST_CASE("cancellation: an exception that escapes a callback ends the program and says so") {
    const test::death end = test::dies("cancellation: an exception that escapes a callback ends the program and says so", [] {
        const weft::cancellation_source source;
        const weft::cancellation_registration bad(source.token(), [] { throw std::runtime_error("callback"); });
        source.request();
    });
    CHECK(end.aborted);
    CHECK(end.says("weft: an exception escaped a cancellation callback: callback"));
}

TEST_CASE("cancellation: a source that follows another token") {
    const weft::cancellation_source parent;
    const weft::cancellation_source child(parent.token());
    const weft::cancellation_source grandchild(child.token());
    const weft::cancellation_source alone{weft::cancellation_token()};
    child.request();
    CHECK_FALSE(parent.requested());
    CHECK(grandchild.requested());
    const weft::cancellation_source second(parent.token());
    parent.request();
    CHECK(second.requested());
    CHECK_FALSE(alone.requested());
    CHECK(weft::cancellation_source(parent.token()).requested());
}

TEST_CASE("cancellation: std::stop_token in and out") {
    std::stop_source stop;
    const weft::cancellation_token in(stop.get_token());
    CHECK(in.can_be_requested());
    CHECK_FALSE(in.requested());
    stop.request_stop();
    CHECK(in.requested());
    CHECK(weft::cancellation_token(stop.get_token()).requested());
    CHECK_FALSE(weft::cancellation_token(std::stop_token()).can_be_requested());

    const weft::cancellation_source source;
    const std::stop_token out = source.stop_token();
    CHECK(out == source.stop_token());
    int calls = 0;
    const std::stop_callback callback(out, [&] { ++calls; });
    CHECK_FALSE(out.stop_requested());
    source.request();
    CHECK(out.stop_requested());
    CHECK(calls == 1);

    const weft::cancellation_source other;
    const weft::linked_stop_source linked(other.token());
    CHECK_FALSE(linked.get_token().stop_requested());
    other.request();
    CHECK(linked.get_token().stop_requested());
}

TEST_CASE("cancellation: requests that meet the end of what follows, many times") {
    for (int i = 0; i < 2000; ++i) {
        auto parent = std::make_unique<weft::cancellation_source>();
        auto child = std::make_unique<weft::cancellation_source>(parent->token());
        const weft::cancellation_token token = child->token();
        std::atomic<int> ready{0};
        std::thread requester([&] {
            ++ready;
            while (ready < 2) {
            }
            parent->request();
        });
        ++ready;
        while (ready < 2) {
        }
        child.reset(); // the token still holds the state, or is the last
        {
            const weft::cancellation_token last = token;
        }
        requester.join();
        REQUIRE(token.requested());
    }
}

TEST_CASE("this_task: a token is inherited down the tree of awaits") {
    weft::runtime pool;
    const weft::cancellation_source source;
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        CHECK_FALSE((co_await weft::this_task::token()).can_be_requested());
        const auto leaf = [&]() -> weft::task<bool> { co_return co_await weft::this_task::token() == source.token(); };
        const auto middle = [&]() -> weft::task<bool> {
            const auto [a, b] = co_await weft::when_all(leaf(), leaf());
            co_return a &&b &&co_await leaf();
        };
        CHECK(co_await (middle() | weft::with_token(source.token())));
        CHECK(co_await weft::with_token(source.token(), middle()));
        CHECK_FALSE(co_await middle()); // it went with the child
        // Another one, and none, further down.
        const weft::cancellation_source inner;
        const auto outer = [&]() -> weft::task<bool> {
            const bool other = co_await weft::with_token(inner.token(), []() -> weft::task<weft::cancellation_token> {
                                   co_return co_await weft::this_task::token();
                               }()) == inner.token();
            const bool none = !(co_await (leaf() | weft::with_token({})));
            co_return other &&none &&co_await leaf();
        };
        CHECK(co_await (outer() | weft::with_token(source.token())));
    }());
}

TEST_CASE("this_task: throw_if_cancelled, for those who compute") {
    weft::runtime pool;
    const weft::cancellation_source source;
    int rounds = 0;
    const auto compute = [&]() -> weft::task<> {
        for (;;) {
            co_await weft::this_task::throw_if_cancelled();
            if (++rounds == 5) {
                source.request();
            }
        }
    };
    CHECK_THROWS_AS(weft::sync_wait(pool.scheduler(), compute() | weft::with_token(source.token())), weft::operation_cancelled);
    CHECK(rounds == 5);
}

TEST_CASE("this_task: a linked source obeys both") {
    weft::runtime pool;
    const weft::cancellation_source outer;
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        const weft::cancellation_source both(co_await weft::this_task::token());
        bool cancelled = false;
        const auto requester = [&]() -> weft::task<> {
            co_await weft::sleep_for(1ms);
            outer.request();
        };
        const auto sleeper = [&]() -> weft::task<> {
            try {
                co_await (weft::sleep_for(1h) | weft::with_token(both.token()));
            } catch (const weft::operation_cancelled &) {
                cancelled = true;
            }
        };
        co_await weft::when_all(sleeper(), requester());
        CHECK(cancelled);
    }() | weft::with_token(outer.token()));
}

TEST_CASE("this_task: the scheduler, and yield") {
    weft::runtime pool;
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        CHECK(co_await weft::this_task::scheduler() == pool.scheduler());
        co_await weft::this_task::yield();
        CHECK(test::here() == pool.native().id);
    }());
}
