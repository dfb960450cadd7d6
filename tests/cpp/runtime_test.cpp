// SPDX-License-Identifier: MIT
//
// weft/runtime.hpp: options, life and counters.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include <pthread.h>

#include <weft/cancellation.hpp>
#include <weft/event.hpp>
#include <weft/runtime.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/timeout.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

TEST_CASE("runtime: options") {
    weft::runtime_options options;
    options.workers = 3;
    options.stack_bytes = 3 * 1024 * 1024;
    options.name = "spinner";
    weft::runtime pool(options);
    CHECK(pool.stats().workers == 3);
    const auto stack = weft::sync_wait(pool.scheduler(), []() -> weft::task<std::size_t> {
        std::size_t bytes = 0;
#if defined(_WIN32)
        ULONG_PTR low, high;
        GetCurrentThreadStackLimits(&low, &high);
        bytes = high - low;
#else
        pthread_attr_t attributes;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            pthread_attr_getstacksize(&attributes, &bytes);
            pthread_attr_destroy(&attributes);
        }
#endif
        co_return bytes;
    }());
    CHECK(stack >= 3 * 1024 * 1024); // three times the default
    const auto name = weft::sync_wait(pool.scheduler(), []() -> weft::task<std::string> {
        char text[32] = {};
        pthread_getname_np(pthread_self(), text, sizeof text);
        co_return text;
    }());
    CHECK(name.substr(0, 8) == "spinner-");

    options.workers = 257;
    CHECK_THROWS_AS(weft::runtime{options}, weft::error);
    options.workers = 1;
    options.stack_bytes = 1000;
    CHECK_THROWS_AS(weft::runtime{options}, weft::error);
    options.stack_bytes = 0;
    options.name = "more than ten bytes";
    try {
        const weft::runtime refused(options);
        CHECK(false);
    } catch (const weft::error &e) {
        CHECK((e.code() == weft::errc::invalid_argument));
    }
}

TEST_CASE("runtime: stop, twice, and then destroy") {
    weft::runtime pool;
    std::atomic<int> ran{0};
    for (int i = 0; i < 1000; ++i) {
        weft::spawn(pool.scheduler(), [&]() -> weft::task<> {
            ++ran;
            co_return;
        });
    }
    pool.stop();
    CHECK(ran == 1000); // what was accepted has run
    pool.stop();
    CHECK(pool.stats().ops_run >= 1000);
}

TEST_CASE("runtime: stop from a worker begins it; a task that was accepted ends") {
    weft::runtime pool;
    std::atomic<int> step{0};
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        pool.stop();
        step = 1;
        bool stopped = false;
        try {
            co_await weft::this_task::yield();
        } catch (const weft::runtime_stopped &) {
            stopped = true;
        }
        CHECK(stopped);
        // What it waits for elsewhere still brings it back.
        co_await test::on_new_thread{1ms};
        step = 2;
    }());
    CHECK(step == 2);
    pool.stop();
}

TEST_CASE("runtime: the last handle may go inside a task") {
    auto pool = std::make_unique<weft::runtime>();
    weft::event done;
    weft::spawn(pool->scheduler(), [&]() -> weft::task<> {
        auto mine = std::move(pool);
        mine.reset();
        done.set();
        co_return;
    });
    weft::sync_wait(done.wait());
    CHECK(pool == nullptr);
}

TEST_CASE("runtime: moves") {
    weft::runtime a;
    const weft::scheduler first = a.scheduler();
    weft::runtime b(std::move(a));
    CHECK(b.scheduler() == first);
    CHECK_FALSE(static_cast<bool>(a.scheduler()));
    weft::runtime c;
    c = std::move(b); // what c had is stopped
    CHECK(c.scheduler() == first);
    CHECK(weft::sync_wait(c.scheduler(), []() -> weft::task<int> { co_return 1; }()) == 1);
}

TEST_CASE("runtime: a task that outlives its runtime is told that it has stopped") {
    weft::event event;
    int stopped = 0;
    const auto told = [&](auto operation) -> weft::task<> {
        try {
            co_await std::move(operation);
        } catch (const weft::runtime_stopped &) {
            ++stopped;
        }
    };
    const auto outlives = [&](weft::scheduler home) -> weft::task<> {
        const weft::cancellation_source source;
        co_await event.wait();
        co_await told(weft::sleep_for(1us));
        co_await told(weft::sleep_for(1us) | weft::with_token(source.token()));
        co_await told(home.schedule_after(1us));
        co_await told(weft::timeout(event.wait(), 1us));
        co_await told(weft::this_task::yield());
        co_await told(home.schedule());
    };
    {
        weft::runtime pool(weft::runtime_options{1, 0, ""});
        weft::spawn(pool.scheduler(), outlives(pool.scheduler()));
        weft::sync_wait(pool.scheduler(), weft::this_task::yield());
    }
    event.set(); // nobody is left to resume it, so it goes on here
    CHECK(stopped == 6);
}

TEST_CASE("runtime: counters") {
    weft::runtime pool(weft::runtime_options{2, 0, ""});
    const weft::runtime_stats before = pool.stats();
    weft::sync_wait(pool.scheduler(), []() -> weft::task<> {
        for (int i = 0; i < 10; ++i) {
            co_await weft::sleep_for(1us);
            co_await weft::this_task::yield();
        }
    }());
    const weft::runtime_stats after = pool.stats();
    CHECK(after.timers_started - before.timers_started == 10);
    CHECK(after.timers_fired - before.timers_fired == 10);
    CHECK(after.ops_run - before.ops_run >= 20);
    CHECK(pool.stats(0).workers == 1);
    CHECK(pool.stats(1).workers == 1);
    CHECK_THROWS_AS(static_cast<void>(pool.stats(static_cast<std::uint32_t>(after.max_workers))), weft::error);
}

TEST_CASE("runtime: many at once") {
    for (int i = 0; i < 20; ++i) {
        weft::runtime a(weft::runtime_options{2, 0, ""});
        weft::runtime b(weft::runtime_options{1, 0, ""});
        int hops = 0;
        weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
            for (int hop = 0; hop < 20; ++hop) {
                co_await b.scheduler().schedule();
                hops += test::here() == b.native().id ? 1 : 0;
                co_await a.scheduler().schedule();
                hops += test::here() == a.native().id ? 1 : 0;
            }
        }());
        REQUIRE(hops == 40);
    }
}
