// SPDX-License-Identifier: MIT
//
// weft/post.hpp: functions as ops.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include <weft/event.hpp>
#include <weft/post.hpp>
#include <weft/runtime.hpp>
#include <weft/sync_wait.hpp>
#include <weft/task.hpp>

#include "support.hpp"

TEST_CASE("post: calls functions once, from outside and from inside") {
    std::atomic<int> calls{0};
    {
        weft::runtime runtime({.workers = 2});
        for (int i = 0; i < 1000; ++i) {
            weft::post(runtime.scheduler(), [&calls, runtime = runtime.scheduler()] {
                ++calls;
                weft::post(runtime, [&calls] { ++calls; });
            });
        }
        while (calls < 2000) {
            std::this_thread::yield();
        }
    }
    CHECK(calls == 2000);
}

TEST_CASE("post: runs on a worker of the runtime, and takes functions that can only be moved") {
    weft::runtime runtime({.workers = 1});
    weft::event done;
    std::uint64_t where = 0;
    int value = 0;
    weft::post(runtime.scheduler(), [&, box = std::make_unique<int>(42)] {
        where = test::here();
        value = *box;
        done.set();
    });
    weft::sync_wait([&]() -> weft::task<> { co_await done.wait(); }());
    CHECK(where == runtime.scheduler().native().id);
    CHECK(value == 42);
}

TEST_CASE("post: a refused function is destroyed and not called") {
    auto alive = std::make_shared<int>(1);
    weft::runtime runtime({.workers = 1});
    runtime.stop();
    bool called = false;
    CHECK_THROWS_AS(weft::post(runtime.scheduler(), [alive, &called] { called = true; }), weft::runtime_stopped);
    CHECK_THROWS_AS(weft::post(weft::scheduler(), [alive, &called] { called = true; }), weft::error);
    CHECK_FALSE(called);
    CHECK(alive.use_count() == 1);
}

TEST_CASE("post: what was accepted runs before the runtime has stopped") {
    std::atomic<int> calls{0};
    weft::runtime runtime({.workers = 2});
    for (int i = 0; i < 500; ++i) {
        weft::post(runtime.scheduler(), [&calls] { ++calls; });
    }
    runtime.stop();
    CHECK(calls == 500);
}

TEST_CASE("post: an exception that escapes ends the program and says so") {
    const test::death death = test::dies("post: an exception that escapes ends the program and says so", [] {
        weft::runtime runtime({.workers = 1});
        weft::post(runtime.scheduler(), [] { throw std::runtime_error("out of cheese"); });
        std::this_thread::sleep_for(std::chrono::seconds(5));
    });
    CHECK(death.aborted);
    CHECK(death.says("an exception escaped an op: out of cheese"));
}
