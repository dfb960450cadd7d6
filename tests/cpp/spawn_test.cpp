// SPDX-License-Identifier: MIT
//
// weft/spawn.hpp: work that nobody waits for, and what becomes of its exceptions.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include <weft/cancellation.hpp>
#include <weft/event.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

weft::task<int> add(std::atomic<int> &total, int amount) { co_return total += amount; }

std::atomic<int> handled{0};
std::string handled_text;

void note(std::exception_ptr exception) {
    try {
        std::rethrow_exception(exception);
    } catch (const std::exception &e) {
        handled_text = e.what();
    }
    ++handled;
}

} // namespace

TEST_CASE("spawn: tasks, any awaitable, and functions, from outside and from inside") {
    weft::runtime pool;
    std::atomic<int> total{0};
    weft::spawn(pool.scheduler(), add(total, 1));
    weft::spawn(pool.scheduler(), weft::sleep_for(1ms));
    weft::spawn(pool.scheduler(), [&total] { return add(total, 10); });
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        weft::spawn(add(total, 100));
        co_return;
    }());
    pool.stop();
    CHECK(total == 111);
}

TEST_CASE("spawn: a function's captures live until its coroutine is done") {
    weft::runtime pool;
    auto witness = std::make_shared<int>(5);
    std::weak_ptr<int> watched = witness;
    std::atomic<int> seen{0};
    weft::event done;
    weft::spawn(pool.scheduler(), [held = std::move(witness), &seen, &done]() -> weft::task<> {
        co_await weft::sleep_for(2ms);
        seen = *held;
        done.set();
    });
    weft::sync_wait(done.wait());
    CHECK(seen == 5);
    pool.stop();
    CHECK(watched.expired());
}

TEST_CASE("spawn: outside of a runtime it needs a scheduler") {
    std::atomic<int> total{0};
    try {
        weft::spawn(add(total, 1));
        CHECK(false);
    } catch (const weft::error &e) {
        CHECK((e.code() == weft::errc::bad_handle));
    }
    weft::runtime pool;
    CHECK_THROWS_AS(weft::spawn(pool.scheduler(), weft::task<int>()), std::logic_error);
}

TEST_CASE("spawn: has no token but the one it is given") {
    weft::runtime pool;
    std::atomic<bool> cancelled{false};
    std::atomic<bool> inherits{true};
    weft::cancellation_source source;
    weft::sync_wait(pool.scheduler(), weft::with_token(source.token(), [&]() -> weft::task<> {
                        weft::spawn([&]() -> weft::task<> { inherits = (co_await weft::this_task::token()).can_be_requested(); });
                        co_return;
                    }()));
    weft::spawn(pool.scheduler(), weft::with_token(source.token(), [](std::atomic<bool> &flag) -> weft::task<> {
                    try {
                        co_await weft::sleep_for(1h);
                    } catch (const weft::operation_cancelled &) {
                        flag = true;
                    }
                }(cancelled)));
    source.request();
    pool.stop();
    CHECK(cancelled);
    CHECK_FALSE(inherits);
}

TEST_CASE("spawn: an exception reaches the handler; cancellation and stop are none") {
    const weft::unhandled_exception_handler before = weft::set_unhandled_exception_handler(note);
    handled = 0;
    {
        weft::runtime pool;
        weft::spawn(pool.scheduler(), []() -> weft::task<> {
            throw std::runtime_error("lost");
            co_return;
        });
        weft::spawn(pool.scheduler(), []() -> weft::task<> {
            throw weft::operation_cancelled();
            co_return;
        });
        weft::spawn(pool.scheduler(), []() -> weft::task<> {
            throw weft::runtime_stopped();
            co_return;
        });
    }
    CHECK(handled == 1);
    CHECK(handled_text == "lost");
    CHECK((weft::set_unhandled_exception_handler(before) == note));
}

TEST_CASE("spawn: without a handler an exception ends the program and says so") {
    const test::death end = test::dies("spawn: without a handler an exception ends the program and says so", [] {
        weft::runtime pool;
        weft::spawn(pool.scheduler(), []() -> weft::task<> {
            throw std::runtime_error("nobody caught me");
            co_return;
        });
        pool.stop();
    });
    CHECK(end.aborted);
    CHECK(end.says("weft: an exception escaped a spawned task: nobody caught me"));
}

TEST_CASE("spawn: an exception that escapes an op ends the program and says so") {
    const test::death end = test::dies("spawn: an exception that escapes an op ends the program and says so", [] {
        // A coroutine type that lets exceptions out of resume().
        struct leaky {
            struct promise_type {
                leaky get_return_object() { return {}; }
                std::suspend_never initial_suspend() { return {}; }
                std::suspend_never final_suspend() noexcept { return {}; }
                void return_void() {}
                void unhandled_exception() { throw; }
            };
        };
        weft::runtime pool;
        const auto leak = [](weft::scheduler where) -> leaky {
            co_await where.schedule();
            throw std::runtime_error("through the floor");
        };
        leak(pool.scheduler());
        pool.stop();
    });
    CHECK(end.aborted);
    CHECK(end.says("weft: an exception escaped an op: through the floor"));
}

TEST_CASE("spawn: many, from outside and from inside") {
    weft::runtime pool(weft::runtime_options{2, 0, ""});
    std::atomic<int> total{0};
    for (int i = 0; i < 20'000; ++i) {
        weft::spawn(pool.scheduler(), add(total, 1));
    }
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        for (int i = 0; i < 20'000; ++i) {
            weft::spawn(add(total, 1));
        }
        co_return;
    }());
    pool.stop();
    CHECK(total == 40'000);
}
