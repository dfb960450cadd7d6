// SPDX-License-Identifier: MIT
//
// weft/event.hpp: both events: order, cancellation, lost signals, and destruction.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/async_scope.hpp>
#include <weft/cancellation.hpp>
#include <weft/event.hpp>
#include <weft/runtime.hpp>
#include <weft/sleep.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

template <class Event>
weft::task<> append_after(Event &event, std::string &order, char letter) {
    co_await event.wait();
    order += letter;
}

// Waits until nobody is runnable: with one worker, a yield comes back when the others have run.
weft::task<> settle() {
    for (int i = 0; i < 3; ++i) {
        co_await weft::this_task::yield();
    }
}

} // namespace

TEST_CASE("event: lets all go, in the order in which they came, and stays set") {
    test::run(1, []() -> weft::task<> {
        weft::event event;
        CHECK_FALSE(event.is_set());
        std::string order;
        weft::async_scope scope;
        for (const char letter : {'a', 'b', 'c', 'd'}) {
            scope.spawn(append_after(event, order, letter));
            co_await settle();
        }
        CHECK(order.empty());
        event.set();
        CHECK(event.is_set());
        co_await scope.join();
        CHECK(order == "abcd");
        co_await event.wait();
        event.set(); // no harm
        event.reset();
        CHECK_FALSE(event.is_set());
        scope.spawn(append_after(event, order, 'e'));
        co_await settle();
        CHECK(order == "abcd");
        event.set();
        co_await scope.join();
        CHECK(order == "abcde");
        const weft::event born_set(true);
        CHECK(born_set.is_set());
    });
}

TEST_CASE("event: set from a thread that is no worker resumes in order too") {
    weft::runtime pool(weft::runtime_options{1, 0, ""});
    weft::event event;
    std::string order;
    weft::async_scope scope(pool.scheduler());
    for (const char letter : {'a', 'b', 'c'}) {
        scope.spawn(append_after(event, order, letter));
        weft::sync_wait(pool.scheduler(), settle());
    }
    event.set();
    weft::sync_wait(scope.join());
    CHECK(order == "abc");
}

TEST_CASE("auto_reset_event: lets one go per set, and keeps one") {
    test::run(1, []() -> weft::task<> {
        weft::auto_reset_event event;
        std::string order;
        weft::async_scope scope;
        for (const char letter : {'a', 'b', 'c'}) {
            scope.spawn(append_after(event, order, letter));
            co_await settle();
        }
        for (const char *expected : {"a", "ab", "abc"}) {
            event.set();
            CHECK_FALSE(event.is_set()); // handed over
            co_await settle();
            CHECK(order == expected);
        }
        co_await scope.join();
        event.set();
        event.set();
        CHECK(event.is_set());
        CHECK(event.try_wait());
        CHECK_FALSE(event.try_wait()); // sets do not add up
        event.set();
        event.reset();
        CHECK_FALSE(event.try_wait());
        event.set();
        co_await event.wait();
        CHECK_FALSE(event.is_set());
        weft::auto_reset_event born_set(true);
        co_await born_set.wait();
    });
}

TEST_CASE("events: waits are cancelled before and while they wait; the others keep their order") {
    test::run(1, []() -> weft::task<> {
        const weft::cancellation_source source;
        weft::auto_reset_event automatic;
        weft::event manual;
        std::string order;
        int cancelled = 0;
        const auto cancellable = [&](auto &event, char letter) -> weft::task<> {
            try {
                co_await event.wait();
                order += letter;
            } catch (const weft::operation_cancelled &) {
                ++cancelled;
            }
        };
        weft::async_scope scope;
        scope.spawn(append_after(automatic, order, 'a'));
        co_await settle();
        scope.spawn(cancellable(automatic, 'x') | weft::with_token(source.token()));
        scope.spawn(cancellable(manual, 'y') | weft::with_token(source.token()));
        co_await settle();
        scope.spawn(append_after(automatic, order, 'b'));
        co_await settle();
        source.request();
        co_await settle();
        CHECK(cancelled == 2);
        co_await (cancellable(automatic, 'z') | weft::with_token(source.token())); // before
        CHECK(cancelled == 3);
        automatic.set();
        co_await settle();
        CHECK(order == "a");
        automatic.set();
        co_await scope.join();
        CHECK(order == "ab");
        CHECK_FALSE(automatic.is_set());
    });
}

TEST_CASE("auto_reset_event: a cancelled waiter swallows no set, many times") {
    std::atomic<int> got{0};
    std::atomic<int> cancelled{0};
    int kept = 0;
    constexpr int rounds = 5000;
    weft::runtime pool(weft::runtime_options{2, 0, ""});
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        for (int i = 0; i < rounds; ++i) {
            const weft::cancellation_source source;
            weft::auto_reset_event event;
            const auto waiter = [&]() -> weft::task<> {
                try {
                    co_await event.wait();
                    ++got;
                } catch (const weft::operation_cancelled &) {
                    ++cancelled;
                }
            };
            const auto setter = [&]() -> weft::task<> {
                event.set();
                co_return;
            };
            const auto requester = [&]() -> weft::task<> {
                source.request();
                co_return;
            };
            co_await weft::when_all(waiter() | weft::with_token(source.token()), requester(), setter());
            kept += event.is_set() ? 1 : 0;
        }
    }());
    CHECK(got + cancelled == rounds);
    CHECK(kept == cancelled); // a set either woke the waiter or is still there
}

TEST_CASE("events: ping-pong between two tasks") {
    for (const std::uint32_t workers : {1U, 2U}) {
        int rounds = 0;
        test::run(workers, [&]() -> weft::task<> {
            weft::auto_reset_event ping;
            weft::auto_reset_event pong;
            const auto left = [&]() -> weft::task<> {
                for (int i = 0; i < 20'000; ++i) {
                    ping.set();
                    co_await pong.wait();
                }
            };
            const auto right = [&]() -> weft::task<> {
                for (int i = 0; i < 20'000; ++i) {
                    co_await ping.wait();
                    ++rounds;
                    pong.set();
                }
            };
            co_await weft::when_all(left(), right());
        });
        CHECK(rounds == 20'000);
    }
}

TEST_CASE("events: may be destroyed by those whom they have released") {
    test::run(2, []() -> weft::task<> {
        for (int i = 0; i < 5000; ++i) {
            auto event = std::make_unique<weft::event>();
            const auto waiter = [&]() -> weft::task<> {
                co_await event->wait();
                event.reset();
            };
            const auto setter = [](weft::event &to_set) -> weft::task<> {
                to_set.set();
                co_return;
            };
            co_await weft::when_all(waiter(), setter(*event));
            REQUIRE(event == nullptr);
        }
    });
}

TEST_CASE("events: the waiter goes home, whoever sets") {
    weft::runtime a;
    weft::runtime b;
    weft::event event;
    std::atomic<std::uint64_t> woken{0};
    weft::async_scope scope(a.scheduler());
    scope.spawn([&]() -> weft::task<> {
        co_await event.wait();
        woken = test::here();
    });
    weft::sync_wait(b.scheduler(), [&]() -> weft::task<> {
        co_await weft::sleep_for(1ms);
        event.set();
    }());
    weft::sync_wait(scope.join());
    CHECK(woken == a.native().id);
}

TEST_CASE("events: a waiter whose runtime has ended runs where it is released") {
    auto event = std::make_unique<weft::event>();
    std::atomic<bool> ended{false};
    weft::runtime pool;
    weft::spawn(pool.scheduler(), [&]() -> weft::task<> {
        co_await event->wait();
        ended = true;
    });
    weft::sync_wait(pool.scheduler(), weft::sleep_for(2ms));
    pool.stop();
    CHECK_FALSE(ended);
    event->set(); // nobody is left suspended for good
    CHECK(ended);
}

TEST_CASE("events: an await that is always ready lets others run") {
    bool other = false;
    test::run(1, [&]() -> weft::task<> {
        weft::async_scope scope;
        weft::event always(true);
        scope.spawn([&]() -> weft::task<> {
            other = true;
            co_return;
        });
        int rounds = 0;
        while (!other && rounds < 1'000'000) {
            co_await always.wait();
            ++rounds;
        }
        CHECK(rounds < 1'000'000);
        co_await scope.join();
    });
    CHECK(other);
}

TEST_CASE("event: destroyed while a task waits it ends the program and says so") {
    const test::death end = test::dies("event: destroyed while a task waits it ends the program and says so", [] {
        weft::runtime pool;
        auto event = std::make_unique<weft::event>();
        weft::spawn(pool.scheduler(), event->wait());
        weft::sync_wait(pool.scheduler(), weft::sleep_for(5ms));
        event.reset();
    });
    CHECK(end.aborted);
    CHECK(end.says("weft: an event was destroyed while a task waited for it"));
}
