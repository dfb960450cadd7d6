// SPDX-License-Identifier: MIT
//
// weft/blocking.hpp: results of every kind, exceptions, where one is before, inside and after, cancelling and stopping.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft.hpp>

#include "support.hpp"

using weft::task;
using namespace std::chrono_literals;

namespace {

/// Lets calls that hang go.
struct gate {
    std::atomic<bool> open{false};
    std::atomic<int> inside{0};
    void pass() {
        ++inside;
        while (!open) {
            std::this_thread::sleep_for(1ms);
        }
    }
    void wait_for(int count) const {
        while (inside < count) {
            std::this_thread::sleep_for(1ms);
        }
    }
};

/// Waits until so many calls wait for a thread.
void wait_for_waiting(weft_runtime runtime, std::uint64_t count) {
    weft_stats stats{};
    stats.size = sizeof stats;
    while (weft_runtime_stats(runtime, &stats) == WEFT_OK && stats.blocking_waiting != count) {
        std::this_thread::sleep_for(1ms);
    }
}

int free_function() { return 7; }

struct move_only_function {
    std::unique_ptr<int> value;
    std::unique_ptr<int> operator()() && { return std::move(value); }
};

} // namespace

TEST_CASE("blocking: gives values, references, move-only things and nothing") {
    test::run(2, []() -> task<> {
        int variable = 1;
        CHECK(co_await weft::blocking([] { return 42; }) == 42);
        int &same = co_await weft::blocking([&variable]() -> int & { return variable; });
        CHECK(&same == &variable);
        move_only_function once{std::make_unique<int>(5)}; // named, as the guide advises for GCC 12
        const std::unique_ptr<int> moved = co_await weft::blocking(std::move(once));
        auto captured = std::make_unique<int>(6);
        auto with_capture = [captured = std::move(captured)] { return *captured; };
        CHECK(co_await weft::blocking(std::move(with_capture)) == 6);
        CHECK(*moved == 5);
        co_await weft::blocking([&variable] { variable = 2; });
        CHECK(variable == 2);
        CHECK(co_await weft::blocking(free_function) == 7);
        std::string text = "moved";
        const std::string out = co_await weft::blocking([&text]() -> std::string && { return std::move(text); });
        CHECK(out == "moved");
        const auto kept = [] { return 3; }; // an lvalue is copied
        CHECK(co_await weft::blocking(kept, weft::blocking_kind::file) == 3);
    });
}

TEST_CASE("blocking: exceptions reach the awaiter") {
    test::run(2, []() -> task<> {
        bool caught = false;
        try {
            co_await weft::blocking([]() -> int { throw std::runtime_error("inside"); });
        } catch (const std::runtime_error &e) {
            caught = std::string(e.what()) == "inside";
        }
        CHECK(caught);
    });
}

TEST_CASE("blocking: runs on no worker and comes back to one") {
    test::run(1, []() -> task<> {
        const std::uint64_t home = test::here();
        const std::thread::id worker = std::this_thread::get_id();
        const auto [id, thread] = co_await weft::blocking([] { return std::pair(test::here(), std::this_thread::get_id()); });
        CHECK(id == 0);
        CHECK(thread != worker);
        CHECK(test::here() == home);
        CHECK(std::this_thread::get_id() == worker);
    });
}

TEST_CASE("blocking: a worker goes on meanwhile") {
    test::run(1, []() -> task<> {
        gate hung;
        int steps = 0;
        co_await weft::when_all(
            [&]() -> task<> { co_await weft::blocking([&] { hung.pass(); }); }(),
            [&]() -> task<> {
                for (; steps < 100; ++steps) {
                    co_await weft::this_task::yield();
                }
                CHECK(!hung.open);
                hung.open = true;
            }());
        CHECK(steps == 100);
    });
}

TEST_CASE("blocking: in another runtime's pool, home again, and from nowhere") {
    weft::runtime other({.workers = 1, .name = "other"});
    test::run(1, [&]() -> task<> {
        const std::uint64_t home = test::here();
        CHECK(co_await weft::blocking(other.scheduler(), [] { return 1; }) == 1);
        CHECK(test::here() == home);
    });
    const auto from_nowhere = [&]() -> task<int> { // no home: resumes in sync_wait's own loop
        co_return co_await weft::blocking(other.scheduler(), [] { return 2; });
    };
    CHECK(weft::sync_wait(from_nowhere()) == 2);
    const auto without_a_pool = []() -> task<int> { co_return co_await weft::blocking([] { return 2; }); };
    bool refused = false;
    try {
        weft::sync_wait(without_a_pool());
    } catch (const weft::error &e) {
        refused = e.code() == weft::errc::bad_handle;
    }
    CHECK(refused);
    CHECK(other.stats().blocking_calls == 2);
}

TEST_CASE("blocking: a hundred calls that hang do not delay one of another kind") {
    weft::runtime_options options;
    options.workers = 1;
    options.blocking_threads = 2;
    weft::run(options, []() -> task<> {
        gate hung;
        weft::async_scope scope;
        for (int i = 0; i < 100; ++i) {
            scope.spawn([&hung]() -> task<> { co_await weft::blocking([&hung] { hung.pass(); }); });
        }
        co_await weft::blocking([&hung] { hung.wait_for(2); }, weft::blocking_kind::other);
        CHECK(co_await weft::blocking([] { return 1; }, weft::blocking_kind::file) == 1);
        CHECK(hung.inside == 2);
        hung.open = true;
        co_await scope.join();
        CHECK(hung.inside == 100);
    });
}

TEST_CASE("blocking: cancelled before it begins, it never does; afterwards its result counts") {
    weft::runtime_options options;
    options.workers = 1;
    options.blocking_threads = 1;
    weft::run(options, []() -> task<> {
        gate hung;
        std::atomic<bool> called{false};
        const weft::cancellation_source source;
        const auto waits = [&]() -> task<bool> {
            co_await weft::blocking([&] { hung.wait_for(1); }, weft::blocking_kind::other);
            try {
                co_await weft::blocking([&] { called = true; });
            } catch (const weft::operation_cancelled &) {
                co_return true;
            }
            co_return false;
        };
        const auto runs = [&]() -> task<int> {
            co_return co_await weft::blocking([&] {
                hung.pass();
                return 9;
            });
        };
        const auto [result, cancelled, nothing] =
            co_await weft::when_all(runs() | weft::with_token(source.token()), waits() | weft::with_token(source.token()),
                                    [&]() -> task<> {
                                        const weft_runtime here = weft_runtime_current();
                                        co_await weft::blocking([here] { wait_for_waiting(here, 1); }, weft::blocking_kind::file);
                                        source.request();
                                        hung.open = true;
                                    }());
        static_cast<void>(nothing);
        CHECK(result == 9);
        CHECK(cancelled);
        CHECK(!called);
    });
}

TEST_CASE("blocking: a function that takes a token can end early") {
    test::run(1, []() -> task<> {
        const auto polls = [](weft::cancellation_token token) {
            int rounds = 0;
            while (!token.requested()) {
                std::this_thread::sleep_for(1ms);
                ++rounds;
            }
            return rounds;
        };
        const auto ended = co_await weft::when_any(weft::blocking(polls), weft::sleep_for(5ms));
        CHECK(ended.index == 1);
    });
}

TEST_CASE("blocking: stop cancels what waits and waits for what runs") {
    weft::runtime_options options;
    options.workers = 2;
    options.blocking_threads = 1;
    weft::runtime runtime(options);
    std::atomic<int> cancelled{0}, returned{0};
    gate hung;
    for (int i = 0; i < 4; ++i) {
        weft::spawn(runtime.scheduler(), [&]() -> task<> {
            try {
                co_await weft::blocking([&] { hung.pass(); });
                ++returned;
            } catch (const weft::operation_cancelled &) {
                ++cancelled;
            }
        });
    }
    hung.wait_for(1);
    wait_for_waiting(runtime.native(), 3);
    std::thread opener([&] {
        while (cancelled != 3) {
            std::this_thread::sleep_for(1ms);
        }
        hung.open = true;
    });
    runtime.stop();
    CHECK(returned == 1);
    CHECK(cancelled == 3);
    opener.join();
    bool stopped = false;
    try {
        weft::sync_wait([&]() -> task<int> { co_return co_await weft::blocking(runtime.scheduler(), [] { return 1; }); }());
    } catch (const weft::runtime_stopped &) {
        stopped = true;
    }
    CHECK(stopped);
}

TEST_CASE("blocking: many at once, with cancellation at random") {
    test::run(2, []() -> task<> {
        std::atomic<int> calls{0}, given{0}, cancelled{0};
        constexpr int rounds = 300;
        for (int i = 0; i < rounds; ++i) {
            const weft::cancellation_source source;
            const auto one = [&]() -> task<> {
                try {
                    co_await weft::blocking([&] { ++calls; });
                    ++given;
                } catch (const weft::operation_cancelled &) {
                    ++cancelled;
                }
            };
            const auto canceller = [&]() -> task<> {
                co_await weft::this_task::yield();
                source.request();
            };
            co_await weft::when_all(one() | weft::with_token(source.token()), one() | weft::with_token(source.token()), canceller());
        }
        CHECK(calls == given);
        CHECK(given + cancelled == 2 * rounds);
    });
}
