// SPDX-License-Identifier: MIT
//
// weft/timeout.hpp: limits that win, lose, and meet what they limit.
#include <doctest/doctest.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

#include <weft/cancellation.hpp>
#include <weft/event.hpp>
#include <weft/runtime.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/timeout.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

weft::task<std::unique_ptr<int>> slow(std::chrono::nanoseconds span) {
    co_await weft::sleep_for(span);
    co_return std::make_unique<int>(5);
}

} // namespace

TEST_CASE("timeout: work that is in time") {
    test::run(2, []() -> weft::task<> {
        CHECK(*co_await weft::timeout(slow(1ms), 1h) == 5);
        CHECK(*co_await (slow(1us) | weft::timeout(1h)) == 5);
        co_await weft::timeout(weft::sleep_for(1us), 1h);
        CHECK(co_await weft::try_timeout(weft::sleep_for(1us), 1h));
        std::optional<std::unique_ptr<int>> got = co_await (slow(1us) | weft::try_timeout(1h));
        REQUIRE(got.has_value());
        CHECK(**got == 5);
        int target = 0;
        const auto reference = [](int &to) -> weft::task<int &> { co_return to; };
        int &same = co_await weft::timeout(reference(target), 1h);
        CHECK(&same == &target);
        CHECK(&(co_await weft::try_timeout(reference(target), 1h))->get() == &target);
    });
}

TEST_CASE("timeout: work that is late is cancelled and waited for") {
    test::run(2, []() -> weft::task<> {
        for (int i = 0; i < 10; ++i) {
            std::atomic<int> local{0};
            const auto late = [&]() -> weft::task<int> {
                std::exception_ptr cancelled;
                try {
                    co_await weft::sleep_for(1h);
                } catch (const weft::operation_cancelled &) {
                    cancelled = std::current_exception();
                    ++local;
                }
                co_await (weft::sleep_for(1ms) | weft::with_token({})); // a clean-up that takes time
                ++local;
                if (cancelled != nullptr) {
                    std::rethrow_exception(cancelled);
                }
                co_return 1;
            };
            bool ran_out = false;
            const auto start = test::clock::now();
            try {
                co_await weft::timeout(late(), 1ms);
            } catch (const weft::timed_out &e) {
                ran_out = e.code() == weft::errc::timed_out;
            }
            CHECK(ran_out);
            CHECK(local == 2);
            CHECK(test::clock::now() - start >= 1ms);
            CHECK_FALSE((co_await weft::try_timeout(late(), 1ms)).has_value());
            CHECK(local == 4);
        }
        CHECK_FALSE(co_await weft::try_timeout(weft::sleep_for(1h), 1us));
        CHECK_FALSE(co_await weft::try_timeout(weft::sleep_for(1h), -1s));
    });
}

TEST_CASE("timeout: success counts, however late; other exceptions are themselves") {
    test::run(2, []() -> weft::task<> {
        const auto unyielding = []() -> weft::task<int> {
            co_await (weft::sleep_for(3ms) | weft::with_token({}));
            co_return 9;
        };
        CHECK(co_await weft::timeout(unyielding(), 1us) == 9);
        CHECK(co_await weft::try_timeout(unyielding(), 1us) == 9);
        const auto translates = []() -> weft::task<int> {
            try {
                co_await weft::sleep_for(1h);
            } catch (const weft::operation_cancelled &) {
            }
            throw std::runtime_error("own");
        };
        std::string what;
        try {
            co_await weft::timeout(translates(), 1ms);
        } catch (const std::runtime_error &e) {
            what = e.what();
        }
        CHECK(what == "own");
    });
}

TEST_CASE("timeout: a request from outside is a cancellation, not a timeout") {
    test::run(2, []() -> weft::task<> {
        weft::cancellation_source source;
        const auto limited = [&]() -> weft::task<std::string> {
            try {
                co_await weft::timeout(weft::sleep_for(2h), 1h);
            } catch (const weft::operation_cancelled &) {
                co_return "cancelled";
            } catch (const weft::timed_out &) {
                co_return "timed out";
            }
            co_return "done";
        };
        const auto requester = [&]() -> weft::task<> {
            co_await weft::sleep_for(1ms);
            source.request();
        };
        const auto [how, none] = co_await weft::when_all(limited() | weft::with_token(source.token()), requester());
        CHECK(how == "cancelled");
    });
}

TEST_CASE("timeout: nested, the inner one first and the outer one first") {
    test::run(2, []() -> weft::task<> {
        const auto inner = [](std::chrono::nanoseconds span) -> weft::task<std::string> {
            try {
                co_await weft::timeout(weft::sleep_for(1h), span);
            } catch (const weft::timed_out &) {
                co_return "inner";
            }
            co_return "done";
        };
        CHECK(co_await weft::timeout(inner(1ms), 1h) == "inner");
        bool outer = false;
        try {
            co_await weft::timeout(inner(1h), 1ms);
        } catch (const weft::timed_out &) {
            outer = true;
        }
        CHECK(outer);
    });
}

TEST_CASE("timeout: needs a runtime that runs") {
    try {
        weft::sync_wait(weft::timeout(slow(1us), 1s));
        CHECK(false);
    } catch (const weft::error &e) {
        CHECK((e.code() == weft::errc::bad_handle));
    }
    weft::runtime pool;
    bool stopped = false;
    weft::sync_wait(pool.scheduler(), [&]() -> weft::task<> {
        pool.stop();
        try {
            co_await weft::timeout(slow(1us), 1s);
        } catch (const weft::runtime_stopped &) {
            stopped = true;
        }
    }());
    CHECK(stopped);
}

TEST_CASE("timeout: work that outlives its runtime") {
    weft::event release;
    std::atomic<bool> ended{false};
    std::atomic<bool> waits{false};
    {
        weft::runtime pool;
        weft::spawn(pool.scheduler(), [&]() -> weft::task<> {
            co_await weft::timeout(
                [](weft::event &event, std::atomic<bool> &entered) -> weft::task<> {
                    entered = true;
                    co_await event.wait();
                }(release, waits),
                1h);
            ended = true;
        });
        while (!waits) {
            std::this_thread::yield();
        }
    }
    CHECK_FALSE(ended);
    release.set(); // nobody else is left to run it
    CHECK(ended);
}

TEST_CASE("timeout: a limit that meets the end of the work, many times") {
    std::atomic<int> done{0};
    std::atomic<int> late{0};
    test::run(2, [&]() -> weft::task<> {
        const auto limited = [&](int i) -> weft::task<> {
            if (co_await weft::try_timeout(weft::sleep_for(std::chrono::microseconds(i % 60)), std::chrono::microseconds(30))) {
                ++done;
            } else {
                ++late;
            }
        };
        for (int i = 0; i < 1500; ++i) {
            co_await weft::when_all(limited(i), limited(i + 30), limited(30));
        }
    });
    CHECK(done + late == 4500);
    CHECK(done > 0);
    CHECK(late > 0);
}
