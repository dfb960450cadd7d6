// SPDX-License-Identifier: MIT
//
// weft/stall.hpp: tasks that hold up their worker, who is told of them, and where they come from. tests/c/stall_test.c has the rest.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <weft/async_scope.hpp>
#include <weft/post.hpp>
#include <weft/runtime.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/stall.hpp>
#include <weft/sync_wait.hpp>

using namespace std::chrono_literals;

namespace {

struct reports {
    std::mutex mutex;
    std::vector<std::string> texts;

    static void take(const weft_stall *stall, void *context) {
        auto &self = *static_cast<reports *>(context);
        const std::lock_guard lock(self.mutex);
        self.texts.push_back(weft::describe(*stall));
    }

    /// Whether a report tells of a line of this file.
    bool tell_of(unsigned line) {
        const std::lock_guard lock(mutex);
        const std::string end = "stall_test.cpp:" + std::to_string(line);
        for (const std::string &text : texts) {
            if (text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0) {
                return true;
            }
        }
        return false;
    }
};

/// Holds up its worker until something else has run.
weft::task<> hold_up(std::atomic<bool> &gate) {
    while (!gate) {
        std::this_thread::sleep_for(1ms);
    }
    co_return;
}

weft::task<> again_and_again(std::atomic<int> &rounds) {
    for (; rounds < 20; ++rounds) {
        co_await weft::sleep_for(1ms);
    }
}

} // namespace

TEST_CASE("stall: reports name the place from which a task was spawned") {
    reports all;
    weft::runtime pool({.workers = 1, .on_stall = reports::take, .stall_context = &all});
    std::atomic<bool> gate{false};
    unsigned spawned = 0;
    unsigned posted = 0;
    unsigned scoped = 0;
    const auto open_late = [&](auto start) {
        gate = false;
        const auto before = pool.stats().stalls;
        start();
        // Things wait until the monitor has seen it. Then it goes on for longer than nobody is told of.
        while (pool.stats().stalls == before) {
            weft::sync_wait(pool.scheduler(), weft::sleep_for(1ms));
        }
        std::this_thread::sleep_for(15ms);
        gate = true;
    };
    open_late([&] { weft::spawn(pool.scheduler(), hold_up(gate)), spawned = __LINE__; });
    open_late([&] {
        weft::post(pool.scheduler(), [&gate] { // the line of the call
            while (!gate) {
                std::this_thread::sleep_for(1ms);
            }
        });
        posted = __LINE__ - 5;
    });
    weft::async_scope scope(pool.scheduler());
    open_late([&] { scope.spawn([&gate]() -> weft::task<> { return hold_up(gate); }), scoped = __LINE__; });
    weft::sync_wait(pool.scheduler(), scope.join());
    pool.stop();
    CHECK(all.tell_of(spawned));
    CHECK(all.tell_of(posted));
    CHECK(all.tell_of(scoped));
    CHECK(pool.stats().stalls >= 3);
    CHECK(pool.stats().replacements >= 1);
}

TEST_CASE("stall: a blocked runtime goes on with everything else") {
    weft::runtime pool({.workers = 2});
    std::atomic<bool> gate{false};
    weft::spawn(pool.scheduler(), hold_up(gate));
    weft::spawn(pool.scheduler(), hold_up(gate));
    std::atomic<int> rounds{0};
    weft::sync_wait(pool.scheduler(), again_and_again(rounds));
    CHECK(rounds == 20);
    CHECK_FALSE(gate);
    gate = true;
}

TEST_CASE("stall: a runtime without replacements is held up") {
    weft::runtime pool({.workers = 1, .max_workers = 1});
    std::atomic<bool> gate{false};
    std::atomic<bool> begun{false};
    std::atomic<bool> beside{false};
    weft::post(pool.scheduler(), [&] {
        begun = true;
        while (!gate) {
            std::this_thread::sleep_for(1ms);
        }
    });
    while (!begun) {
        std::this_thread::yield();
    }
    weft::post(pool.scheduler(), [&] { beside = true; });
    std::this_thread::sleep_for(30ms);
    CHECK_FALSE(beside);
    gate = true;
    pool.stop();
    CHECK(beside);
    CHECK(pool.stats().replacements == 0);
}

TEST_CASE("stall: descriptions") {
    weft_stall stall{};
    stall.offset = 0x1a2b;
    CHECK(weft::describe(stall) == "?+0x1a2b");
    stall.module = "program";
    CHECK(weft::describe(stall) == "program+0x1a2b");
    stall.name = "_ZN3foo3barEv.actor";
    CHECK(weft::describe(stall) == "foo::bar()");
    stall.name = "plain";
    stall.file = "main.cpp";
    stall.line = 7;
    CHECK(weft::describe(stall) == "plain, from main.cpp:7");
}
