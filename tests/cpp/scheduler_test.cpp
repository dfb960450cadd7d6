// SPDX-License-Identifier: MIT
//
// weft/scheduler.hpp, weft/inline_scheduler.hpp and weft/sleep.hpp: queues and time.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/async_scope.hpp>
#include <weft/cancellation.hpp>
#include <weft/inline_scheduler.hpp>
#include <weft/scheduler.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

template <class A>
bool throws_cancelled_sync(weft::runtime &pool, A &&work) {
    try {
        weft::sync_wait(pool.scheduler(), std::forward<A>(work));
    } catch (const weft::operation_cancelled &) {
        return true;
    }
    return false;
}

} // namespace

TEST_CASE("scheduler: handles compare, and an empty one leads nowhere") {
    weft::runtime a;
    weft::runtime b;
    CHECK(a.scheduler() == a.scheduler());
    CHECK(a.scheduler() != b.scheduler());
    CHECK(static_cast<bool>(a.scheduler()));
    CHECK_FALSE(static_cast<bool>(weft::scheduler()));
    CHECK(weft::scheduler(a.native()) == a.scheduler());
    CHECK_FALSE(static_cast<bool>(weft::current_scheduler()));
    weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
        CHECK(weft::current_scheduler() == a.scheduler());
        try {
            co_await weft::scheduler().schedule();
            CHECK(false);
        } catch (const weft::error &e) {
            CHECK((e.code() == weft::errc::bad_handle));
            CHECK(test::here() == a.native().id);
        }
    }());
}

TEST_CASE("scheduler: schedule moves a task, which lives there afterwards") {
    weft::runtime a;
    weft::runtime b;
    weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
        co_await b.scheduler().schedule();
        CHECK(test::here() == b.native().id);
        co_await test::on_new_thread{};
        CHECK(test::here() == b.native().id);
        co_await a.scheduler().yield();
        CHECK(test::here() == a.native().id);
        co_await b.scheduler().schedule_after(1ms);
        CHECK(test::here() == b.native().id);
        co_await weft::sleep_for(1ms);
        CHECK(test::here() == b.native().id);
    }());
}

TEST_CASE("scheduler: yield goes behind, schedule does not") {
    std::string order;
    test::run(1, [&]() -> weft::task<> {
        const auto letters = [&](char letter) -> weft::task<> {
            for (int i = 0; i < 3; ++i) {
                order += letter;
                co_await weft::this_task::yield();
            }
        };
        co_await weft::when_all(letters('a'), letters('b'));
    });
    CHECK((order == "bababa" || order == "ababab"));

    // schedule() puts the task on top of its worker's deque: nobody else gets in between, but for the turns that the
    // oldest gets. With a dozen steps there is at most one of those.
    order.clear();
    test::run(1, [&]() -> weft::task<> {
        const auto letters = [&](char letter) -> weft::task<> {
            for (int i = 0; i < 12; ++i) {
                order += letter;
                co_await weft::current_scheduler().schedule();
            }
        };
        co_await weft::when_all(letters('a'), letters('b'));
    });
    int changes = 0;
    for (std::size_t i = 1; i < order.size(); ++i) {
        changes += order[i] != order[i - 1] ? 1 : 0;
    }
    CHECK(order.size() == 24);
    CHECK(changes <= 3);
}

TEST_CASE("scheduler: after stop, and after the end, everything throws runtime_stopped and the task goes on where it was") {
    weft::runtime home;
    weft::scheduler gone;
    weft::runtime stopped;
    stopped.stop();
    {
        const weft::runtime destroyed;
        gone = destroyed.scheduler();
    }
    weft::sync_wait(home.scheduler(), [&]() -> weft::task<> {
        for (const weft::scheduler where : {stopped.scheduler(), gone}) {
            int thrown = 0;
            try {
                co_await where.schedule();
            } catch (const weft::runtime_stopped &) {
                ++thrown;
            }
            try {
                co_await where.yield();
            } catch (const weft::runtime_stopped &) {
                ++thrown;
            }
            CHECK(thrown == 2);
            CHECK(test::here() == home.native().id);
            CHECK_THROWS_AS(weft::spawn(where, []() -> weft::task<> { co_return; }), weft::runtime_stopped);
        }
        bool thrown = false;
        try {
            co_await stopped.scheduler().schedule_after(1ms);
        } catch (const weft::runtime_stopped &) {
            thrown = true;
        }
        CHECK(thrown);
        co_await test::on_new_thread{};
        CHECK(test::here() == home.native().id);
    }());
}

TEST_CASE("scheduler: a requested token keeps a task out of the queues") {
    weft::runtime pool;
    weft::runtime other;
    weft::cancellation_source source;
    source.request();
    int steps = 0;
    const auto work = [&](auto await) -> weft::task<> {
        try {
            ++steps;
            co_await await();
            steps += 100;
        } catch (const weft::operation_cancelled &) {
            CHECK(test::here() == pool.native().id);
            throw;
        }
    };
    CHECK(throws_cancelled_sync(pool, work([&] { return other.scheduler().schedule(); }) | weft::with_token(source.token())));
    CHECK(throws_cancelled_sync(pool, work([&] { return pool.scheduler().yield(); }) | weft::with_token(source.token())));
    CHECK(throws_cancelled_sync(pool, work([&] { return weft::this_task::yield(); }) | weft::with_token(source.token())));
    CHECK(throws_cancelled_sync(pool,
                                work([&] { return other.scheduler().schedule_after(1h); }) | weft::with_token(source.token())));
    CHECK(steps == 4);
}

TEST_CASE("inline_scheduler: moves nobody") {
    weft::runtime pool;
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        const auto thread = std::this_thread::get_id();
        co_await weft::inline_scheduler{}.schedule();
        co_await weft::inline_scheduler{}.yield();
        CHECK(std::this_thread::get_id() == thread);
        CHECK(weft::inline_scheduler{} == weft::inline_scheduler{});
    }());
}

TEST_CASE("sleep: never early") {
    test::run(2, []() -> weft::task<> {
        for (const auto span : {0ns, 1ns, 999ns, 16384ns, 999'000ns, 5'000'000ns}) {
            const auto start = test::clock::now();
            co_await weft::sleep_for(span);
            CHECK(test::clock::now() - start >= span);
        }
        const auto until = test::clock::now() + 3ms;
        co_await weft::sleep_until(until);
        CHECK(test::clock::now() >= until);
        const auto wall = std::chrono::system_clock::now() + 2ms;
        co_await weft::sleep_until(wall);
        CHECK(std::chrono::system_clock::now() >= wall);
        const auto at = test::clock::now() + 2ms;
        co_await weft::current_scheduler().schedule_at(at);
        CHECK(test::clock::now() >= at);
    });
}

TEST_CASE("sleep: what is not positive is due at once; what is too far never") {
    test::run(1, []() -> weft::task<> {
        const auto start = test::clock::now();
        co_await weft::sleep_for(-1h);
        co_await weft::sleep_for(std::chrono::nanoseconds::min());
        co_await weft::sleep_for(-1.5s);
        co_await weft::sleep_until(test::clock::time_point::min());
        CHECK(test::clock::now() - start < 1h);
        weft::async_scope scope;
        std::atomic<int> woken{0};
        const auto never = [&](auto sleep) -> weft::task<> {
            co_await std::move(sleep);
            ++woken;
        };
        scope.spawn(never(weft::sleep_for(std::chrono::nanoseconds::max())));
        scope.spawn(never(weft::sleep_for(std::chrono::hours::max())));
        scope.spawn(never(weft::sleep_for(std::chrono::duration<double>(1e300))));
        scope.spawn(never(weft::sleep_until(test::clock::time_point::max())));
        co_await weft::sleep_for(5ms);
        CHECK(woken == 0);
        CHECK(scope.outstanding() == 4);
        scope.request_cancel();
        co_await scope.join();
        CHECK(woken == 0);
    });
}

TEST_CASE("sleep: spans are rounded up and saturate") {
    using weft::detail::timeout_ns;
    CHECK(timeout_ns(1ns) == 1);
    CHECK(timeout_ns(std::chrono::duration<std::int64_t, std::pico>(1)) == 1);
    CHECK(timeout_ns(std::chrono::duration<double, std::nano>(1.5)) == 2);
    CHECK(timeout_ns(0s) == 0);
    CHECK(timeout_ns(-5s) == 0);
    CHECK(timeout_ns(std::chrono::nanoseconds::max()) == WEFT_NEVER);
    CHECK(timeout_ns(std::chrono::hours::max()) == WEFT_NEVER);
    CHECK(timeout_ns(std::chrono::duration<std::int8_t, std::ratio<3600>>(100)) == 360'000'000'000'000);
    CHECK(timeout_ns(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())) == WEFT_NEVER);
    CHECK(timeout_ns(std::chrono::duration<float>(std::numeric_limits<float>::infinity())) == WEFT_NEVER);
}

TEST_CASE("sleep: cancelled before, while it waits, and too late") {
    weft::runtime pool;
    weft::cancellation_source before;
    before.request();
    const auto start = test::clock::now();
    CHECK(throws_cancelled_sync(pool, weft::with_token(before.token(), weft::sleep_for(1h))));

    weft::cancellation_source during;
    std::thread canceller([&] {
        std::this_thread::sleep_for(5ms);
        during.request();
    });
    CHECK(throws_cancelled_sync(pool, weft::with_token(during.token(), weft::sleep_for(1h))));
    canceller.join();
    CHECK(test::clock::now() - start < 30min);

    weft::cancellation_source late;
    CHECK_FALSE(throws_cancelled_sync(pool, weft::with_token(late.token(), weft::sleep_for(1ms))));
    CHECK(late.request());
}

TEST_CASE("sleep: a cancellation that meets the timer, many times") {
    weft::runtime pool(weft::runtime_options{2, 0, ""});
    std::atomic<int> fired{0};
    std::atomic<int> cancelled{0};
    constexpr int rounds = 4000;
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        const auto sleeper = [&](std::chrono::nanoseconds span) -> weft::task<> {
            try {
                co_await weft::sleep_for(span);
                ++fired;
            } catch (const weft::operation_cancelled &) {
                ++cancelled;
            }
        };
        const auto requester = [](weft::cancellation_source source, int spins) -> weft::task<> {
            for (int i = 0; i < spins; ++i) {
                std::atomic_signal_fence(std::memory_order_seq_cst); // a loop that stays a loop
            }
            source.request();
            co_return;
        };
        for (int i = 0; i < rounds; ++i) {
            weft::cancellation_source source;
            co_await weft::when_all(sleeper(std::chrono::microseconds(i % 50)) | weft::with_token(source.token()),
                                    requester(source, i % 777));
        }
    }());
    CHECK(fired + cancelled == rounds);
}

TEST_CASE("sleep: stop ends it with operation_cancelled") {
    weft::runtime pool;
    std::atomic<bool> cancelled{false};
    weft::spawn(pool.scheduler(), [&]() -> weft::task<> {
        try {
            co_await weft::sleep_for(1h);
        } catch (const weft::operation_cancelled &) {
            cancelled = true;
        }
    });
    while (pool.stats().timers_started == 0) {
        std::this_thread::yield();
    }
    pool.stop();
    CHECK(cancelled);
}
