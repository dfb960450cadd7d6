// SPDX-License-Identifier: MIT
//
// weft/concepts.hpp and weft/detail/foreign.hpp: weft's awaitables in coroutines that are not weft's, and the other way.
#include <doctest/doctest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <weft/async_scope.hpp>
#include <weft/concepts.hpp>
#include <weft/event.hpp>
#include <weft/inline_scheduler.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/sleep.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/timeout.hpp>
#include <weft/when_all.hpp>
#include <weft/when_any.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

// Starts at once and goes by itself; tells when it is over.
struct fire {
    struct promise_type {
        fire get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

// An awaitable by operator co_await, as a member and as a free function.
struct by_member {
    int value;
    auto operator co_await() const {
        struct awaiter {
            int value;
            bool await_ready() const noexcept { return true; }
            void await_suspend(std::coroutine_handle<>) const noexcept {}
            int await_resume() const noexcept { return value; }
        };
        return awaiter{value};
    }
};
struct by_function {
    explicit by_function(const char *text) : value(text) {} // GCC 12 copies an aggregate bit by bit
    std::string value;
};
auto operator co_await(by_function &&awaitable) {
    struct awaiter {
        std::string value;
        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
        std::string await_resume() { return std::move(value); }
    };
    return awaiter{std::move(awaitable.value)};
}

struct self_transfer {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) const noexcept { return h; }
    int await_resume() const noexcept { return 3; }
};

struct throws_in_suspend {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const { throw std::runtime_error("suspend"); }
    void await_resume() const noexcept {}
};

struct suspends_for_good {
    std::coroutine_handle<> *handle;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { *handle = h; }
    void await_resume() const noexcept {}
};

struct not_awaitable {};
struct half {
    bool await_ready();
    void await_resume();
};

static_assert(weft::awaiter<std::suspend_always> && weft::awaitable<std::suspend_always>);
static_assert(weft::awaitable<by_member> && !weft::awaiter<by_member>);
static_assert(weft::awaitable<by_function> && !weft::awaitable<by_function &>);
static_assert(!weft::awaitable<not_awaitable> && !weft::awaitable<int> && !weft::awaitable<half>);
static_assert(std::is_same_v<weft::await_result<by_member>, int>);
static_assert(weft::scheduler_like<weft::scheduler> && weft::scheduler_like<weft::inline_scheduler>);
static_assert(!weft::scheduler_like<int> && !weft::scheduler_like<weft::runtime>);

} // namespace

TEST_CASE("foreign: a task awaits awaitables of every shape") {
    weft::runtime pool;
    weft::sync_wait(pool.scheduler(), []() -> weft::task<> {
        CHECK(co_await by_member{4} == 4);
        const by_member named{5};
        CHECK(co_await named == 5);
        CHECK(co_await by_function("free") == "free");
        CHECK(co_await self_transfer{} == 3);
        co_await std::suspend_never{};
        bool caught = false;
        try {
            co_await throws_in_suspend{};
        } catch (const std::runtime_error &) {
            caught = true;
        }
        CHECK(caught);
        const auto [a, b] = co_await weft::when_all(by_member{1}, test::on_new_thread{});
        CHECK(a + b == 43);
    }());
}

TEST_CASE("foreign: resuming and destroying through the handle that a foreign awaiter got") {
    std::coroutine_handle<> handle;
    auto witness = std::make_shared<int>(0);
    const std::weak_ptr<int> watched = witness;
    weft::runtime pool;
    weft::event ended;
    weft::spawn(pool.scheduler(), [&handle, &ended]() -> weft::task<> {
        co_await suspends_for_good{&handle};
        CHECK(test::here() != 0);
        ended.set();
    });
    weft::sync_wait(pool.scheduler(), weft::sleep_for(2ms));
    REQUIRE(handle != nullptr);
    CHECK_FALSE(handle.done());
    handle.resume(); // from here, which is no worker
    weft::sync_wait(ended.wait());
    // A library that gives up a coroutine destroys its handle; that reaches the real one.
    weft::task<> dropped = [](std::shared_ptr<int>, std::coroutine_handle<> &h) -> weft::task<> {
        co_await suspends_for_good{&h};
    }(std::move(witness), handle);
    handle = nullptr;
    const auto frame = dropped.release();
    frame.resume();
    REQUIRE(handle != nullptr);
    CHECK_FALSE(watched.expired());
    handle.destroy();
    CHECK(watched.expired());
}

TEST_CASE("foreign: weft's awaitables in another coroutine type, which lives where its awaits bring it") {
    weft::runtime pool;
    weft::event done;
    std::atomic<int> steps{0};
    const auto work = [&](weft::scheduler where) -> fire {
        co_await where.schedule();
        steps += test::here() == pool.native().id ? 1 : 0;
        co_await weft::sleep_for(1ms);
        steps += test::here() == pool.native().id ? 1 : 0;
        co_await where.schedule_after(1ms);
        co_await weft::this_task::yield();
        steps += (co_await weft::this_task::token()).can_be_requested() ? 0 : 1;
        steps += co_await weft::this_task::scheduler() == where ? 1 : 0;
        weft::event set(true);
        co_await set.wait();
        weft::mutex mutex;
        const auto guard = co_await mutex.scoped_lock();
        const auto child = []() -> weft::task<int> {
            co_await weft::sleep_for(1us);
            co_return 1;
        };
        steps += co_await child();
        const auto [a, b] = co_await weft::when_all(child(), child());
        steps += a + b;
        steps += (co_await weft::when_any(child(), weft::sleep_for(1h))).index == 0 ? 1 : 0;
        steps += co_await weft::timeout(child(), 1h);
        weft::async_scope scope;
        scope.spawn(child());
        co_await scope.join();
        steps += test::here() == pool.native().id ? 1 : 0;
        done.set();
    };
    work(pool.scheduler());
    weft::sync_wait(done.wait());
    CHECK(steps == 10);
}

TEST_CASE("foreign: a coroutine without a home is resumed by whoever releases it") {
    weft::event event;
    std::thread::id woken;
    const auto waits = [&]() -> fire {
        co_await event.wait();
        woken = std::this_thread::get_id();
    };
    waits();
    std::thread setter([&] { event.set(); });
    const std::thread::id expected = setter.get_id();
    setter.join();
    CHECK(woken == expected);
}
