// SPDX-License-Identifier: MIT
//
// weft/sync_wait.hpp and weft/run.hpp: from a plain thread into coroutines and back.
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/event.hpp>
#include <weft/inline_scheduler.hpp>
#include <weft/run.hpp>
#include <weft/schedule_on.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>

#include "support.hpp"

namespace {

weft::task<int> seven() { co_return 7; }

} // namespace

TEST_CASE("sync_wait: results of every kind") {
    CHECK(weft::sync_wait(seven()) == 7);
    int target = 0;
    int &same = weft::sync_wait([](int &to) -> weft::task<int &> { co_return to; }(target));
    CHECK(&same == &target);
    CHECK(*weft::sync_wait([]() -> weft::task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); }()) == 3);
    CHECK_THROWS_WITH_AS(weft::sync_wait([]() -> weft::task<> {
                             throw std::runtime_error("no");
                             co_return;
                         }()),
                         "no", std::runtime_error);
    CHECK(weft::sync_wait(test::on_new_thread{}) == 42); // any awaitable
    weft::event set(true);
    weft::sync_wait(set.wait());
}

TEST_CASE("sync_wait: the work runs on the thread that waits, and comes back to it") {
    const std::thread::id me = std::this_thread::get_id();
    weft::runtime pool;
    weft::sync_wait([&]() -> weft::task<> {
        CHECK(std::this_thread::get_id() == me);
        CHECK(co_await weft::schedule_on(pool.scheduler(), seven()) == 7);
        CHECK(std::this_thread::get_id() == me);
        co_await test::on_new_thread{std::chrono::milliseconds(1)};
        CHECK(std::this_thread::get_id() == me);
        co_await weft::this_task::yield();
        CHECK(std::this_thread::get_id() == me);
        CHECK_FALSE(static_cast<bool>(co_await weft::this_task::scheduler()));
        // It may move for good.
        co_await pool.scheduler().schedule();
        CHECK(std::this_thread::get_id() != me);
        CHECK(co_await weft::this_task::scheduler() == pool.scheduler());
        CHECK(test::here() == pool.native().id);
    }());
}

TEST_CASE("sync_wait: two tasks of one thread wake each other") {
    weft::event first;
    weft::event second;
    std::string order;
    weft::runtime pool;
    std::thread setter;
    weft::sync_wait([&]() -> weft::task<> {
        setter = std::thread([&] { first.set(); });
        co_await first.wait();
        order += 'a';
        weft::spawn(pool.scheduler(), [&]() -> weft::task<> {
            second.set();
            co_return;
        });
        co_await second.wait();
        order += 'b';
    }());
    setter.join();
    CHECK(order == "ab");
}

TEST_CASE("sync_wait: without a runtime there are no timers") {
    try {
        weft::sync_wait(weft::sleep_for(std::chrono::milliseconds(1)));
        CHECK(false);
    } catch (const weft::error &e) {
        CHECK((e.code() == weft::errc::bad_handle));
    }
}

TEST_CASE("sync_wait: on a scheduler") {
    weft::runtime pool;
    const auto where = [&]() -> weft::task<std::uint64_t> {
        co_await weft::sleep_for(std::chrono::milliseconds(1));
        co_return test::here();
    };
    CHECK(weft::sync_wait(pool.scheduler(), where()) == pool.native().id);
    pool.stop();
    CHECK_THROWS_AS(weft::sync_wait(pool.scheduler(), where()), weft::runtime_stopped);
    CHECK_THROWS_AS(weft::sync_wait(weft::scheduler(), where()), weft::error);
}

TEST_CASE("sync_wait: on a worker it throws and does not block") {
    bool threw = false;
    test::run(1, [&]() -> weft::task<> {
        try {
            weft::sync_wait(seven());
        } catch (const std::logic_error &e) {
            threw = std::string(e.what()).find("worker") != std::string::npos;
        }
        co_return;
    });
    CHECK(threw);
}

TEST_CASE("sync_wait: inside a task of a thread that waits") {
    CHECK(weft::sync_wait([]() -> weft::task<int> { co_return weft::sync_wait(seven()) + 1; }()) == 8);
}

TEST_CASE("sync_wait: the loop may end at the moment in which another thread completes it") {
    weft::runtime pool(weft::runtime_options{2, 0, ""});
    int total = 0;
    for (int i = 0; i < 3000; ++i) {
        total += weft::sync_wait(pool.scheduler(), seven());
    }
    CHECK(total == 21'000);
}

TEST_CASE("run: a program in one line") {
    CHECK(weft::run(seven()) == 7);
    int calls = 0;
    weft::run([&calls]() -> weft::task<> { // the lambda outlives its coroutine
        co_await weft::this_task::yield();
        ++calls;
    });
    CHECK(calls == 1);
    CHECK_THROWS_WITH_AS(weft::run([]() -> weft::task<int> {
                             co_await weft::this_task::yield();
                             throw std::runtime_error("main");
                         }),
                         "main", std::runtime_error);
    weft::runtime_options options;
    options.workers = 1;
    options.name = "one";
    CHECK(weft::run(options, [&]() -> weft::task<std::uint64_t> {
              weft_stats stats{};
              stats.size = sizeof stats;
              weft_runtime_stats(weft_runtime_current(), &stats);
              co_return stats.workers;
          }) == 1);
}

TEST_CASE("run: what was spawned and not joined is cancelled by the end") {
    bool cancelled = false;
    weft::run([&]() -> weft::task<> {
        weft::spawn([&]() -> weft::task<> {
            try {
                co_await weft::sleep_for(std::chrono::hours(1));
            } catch (const weft::operation_cancelled &) {
                cancelled = true;
                throw;
            }
        });
        co_await weft::sleep_for(std::chrono::milliseconds(5));
    });
    CHECK(cancelled);
}
