// SPDX-License-Identifier: MIT
//
// weft/mutex.hpp: exclusion, fairness, guards, cancellation.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include <weft/async_scope.hpp>
#include <weft/cancellation.hpp>
#include <weft/mutex.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

TEST_CASE("mutex: lock, try_lock, unlock, guards") {
    weft::mutex mutex;
    CHECK(mutex.try_lock());
    CHECK_FALSE(mutex.try_lock());
    mutex.unlock();
    weft::sync_wait([&]() -> weft::task<> {
        co_await mutex.lock();
        CHECK_FALSE(mutex.try_lock());
        mutex.unlock();
        {
            const weft::mutex::guard guard = co_await mutex.scoped_lock();
            CHECK(static_cast<bool>(guard));
            CHECK_FALSE(mutex.try_lock());
        }
        CHECK(mutex.try_lock());
        mutex.unlock();
        weft::mutex::guard first = co_await mutex.scoped_lock();
        weft::mutex::guard second = std::move(first);
        CHECK_FALSE(static_cast<bool>(first));
        second.unlock();
        CHECK_FALSE(static_cast<bool>(second));
        second = co_await mutex.scoped_lock();
        weft::mutex other;
        second = co_await other.scoped_lock(); // unlocks what it had
        CHECK(mutex.try_lock());
        mutex.unlock();
    }());
}

TEST_CASE("mutex: one at a time, also across awaits and threads") {
    int inside = 0;
    int most = 0;
    int total = 0;
    test::run(4, [&]() -> weft::task<> {
        weft::mutex mutex;
        const auto worker = [&]() -> weft::task<> {
            for (int i = 0; i < 500; ++i) {
                const auto guard = co_await mutex.scoped_lock();
                most = ++inside > most ? inside : most;
                co_await weft::this_task::yield();
                ++total;
                --inside;
            }
        };
        co_await weft::when_all(worker(), worker(), worker(), worker());
    });
    CHECK(most == 1);
    CHECK(total == 2000);
}

TEST_CASE("mutex: is handed on in order; a cancelled waiter is left out") {
    std::string order;
    int cancelled = 0;
    test::run(1, [&]() -> weft::task<> {
        weft::mutex mutex;
        const weft::cancellation_source source;
        weft::async_scope scope;
        const auto locker = [&](char letter) -> weft::task<> {
            try {
                const auto guard = co_await mutex.scoped_lock();
                order += letter;
            } catch (const weft::operation_cancelled &) {
                ++cancelled;
            }
        };
        co_await mutex.lock();
        for (const char letter : {'a', 'b', 'c', 'd'}) {
            if (letter == 'b') {
                scope.spawn(locker(letter) | weft::with_token(source.token()));
            } else {
                scope.spawn(locker(letter));
            }
            co_await weft::this_task::yield();
            co_await weft::this_task::yield();
        }
        source.request();
        co_await weft::this_task::yield();
        CHECK(cancelled == 1);
        mutex.unlock();
        co_await scope.join();
        CHECK(mutex.try_lock());
        mutex.unlock();
    });
    CHECK(order == "acd");
}

TEST_CASE("mutex: cancellation that meets the unlock, many times") {
    int locked = 0;
    int cancelled = 0;
    test::run(2, [&]() -> weft::task<> {
        weft::mutex mutex;
        for (int i = 0; i < 3000; ++i) {
            const weft::cancellation_source source;
            co_await mutex.lock();
            const auto locker = [&]() -> weft::task<> {
                try {
                    const auto guard = co_await mutex.scoped_lock();
                    ++locked;
                } catch (const weft::operation_cancelled &) {
                    ++cancelled;
                }
            };
            const auto unlocker = [&]() -> weft::task<> {
                mutex.unlock();
                co_return;
            };
            const auto requester = [&]() -> weft::task<> {
                source.request();
                co_return;
            };
            co_await weft::when_all(locker() | weft::with_token(source.token()), requester(), unlocker());
            REQUIRE(mutex.try_lock());
            mutex.unlock();
        }
    });
    CHECK(locked + cancelled == 3000);
}

TEST_CASE("mutex: destroyed while a task waits it ends the program and says so") {
    const test::death end = test::dies("mutex: destroyed while a task waits it ends the program and says so", [] {
        weft::runtime pool;
        auto mutex = std::make_unique<weft::mutex>();
        static_cast<void>(mutex->try_lock());
        weft::spawn(pool.scheduler(), mutex->lock());
        weft::sync_wait(pool.scheduler(), weft::sleep_for(5ms));
        mutex.reset();
    });
    CHECK(end.aborted);
    CHECK(end.says("weft: a mutex was destroyed while a task waited for it"));
}
