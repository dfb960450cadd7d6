// SPDX-License-Identifier: MIT
//
// weft/when_any.hpp: the first one counts, and the others are over when it returns.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <variant>
#include <vector>

#include <weft/cancellation.hpp>
#include <weft/event.hpp>
#include <weft/runtime.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/when_any.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

template <class T>
weft::task<T> after(std::chrono::microseconds span, T value) {
    co_await weft::sleep_for(span);
    co_return value;
}

weft::task<int> throws_after(std::chrono::microseconds span, const char *what) {
    co_await weft::sleep_for(span);
    throw std::runtime_error(what);
}

} // namespace

TEST_CASE("when_any: the first to end wins") {
    test::run(2, []() -> weft::task<> {
        const auto start = test::clock::now();
        auto first = co_await weft::when_any(after(1h, std::string("slow")), after(1000us, 7), weft::sleep_for(2h));
        static_assert(std::is_same_v<decltype(first), weft::indexed<std::variant<std::string, int, std::monostate>>>);
        CHECK(first.index == 1);
        CHECK(first.value.index() == 1);
        CHECK(std::get<1>(first.value) == 7);
        CHECK(test::clock::now() - start < 30min);
        const std::size_t only_index = co_await weft::when_any(weft::sleep_for(1h), weft::sleep_for(1ms));
        CHECK(only_index == 1);
        const auto same = co_await weft::when_any(after(1us, 1), after(1h, 2)); // twice the same type
        CHECK(same.index == 0);
        CHECK(std::get<0>(same.value) == 1);
        int target = 0;
        const auto reference = [](int &to) -> weft::task<int &> { co_return to; };
        CHECK(&std::get<0>((co_await weft::when_any(reference(target))).value).get() == &target);
    });
}

TEST_CASE("when_any: ranges") {
    test::run(2, []() -> weft::task<> {
        std::vector<weft::task<std::unique_ptr<int>>> tasks;
        for (int i = 0; i < 10; ++i) {
            tasks.push_back([](int n) -> weft::task<std::unique_ptr<int>> {
                co_await weft::sleep_for(n == 6 ? std::chrono::microseconds(500) : std::chrono::microseconds(1h));
                co_return std::make_unique<int>(n);
            }(i));
        }
        const auto first = co_await weft::when_any(std::move(tasks));
        CHECK(first.index == 6);
        CHECK(*first.value == 6);
        std::vector<weft::task<>> voids;
        voids.push_back([]() -> weft::task<> { co_await weft::sleep_for(1h); }());
        voids.push_back([]() -> weft::task<> { co_return; }());
        CHECK(co_await weft::when_any(std::move(voids)) == 1);
        CHECK_THROWS_AS(static_cast<void>(weft::when_any(std::vector<weft::task<>>())), std::invalid_argument);
    });
}

TEST_CASE("when_any: the losers are cancelled and over before it returns") {
    test::run(2, []() -> weft::task<> {
        for (int i = 0; i < 20; ++i) {
            auto local = std::make_unique<std::atomic<int>>(0);
            const auto loser = [&local]() -> weft::task<int> {
                try {
                    co_await weft::sleep_for(1h);
                } catch (const weft::operation_cancelled &) {
                    local->fetch_add(1);
                }
                co_await (weft::sleep_for(1ms) | weft::with_token({})); // a clean-up that takes time
                local->fetch_add(10);
                co_return 0;
            };
            const auto first = co_await weft::when_any(loser(), after(100us, 1), loser());
            CHECK(first.index == 1);
            REQUIRE(local->load() == 22);
            local.reset();
        }
    });
}

TEST_CASE("when_any: the winner's exception comes out, the losers' do not") {
    test::run(2, []() -> weft::task<> {
        bool caught = false;
        try {
            co_await weft::when_any(after(1h, 1), throws_after(100us, "winner"));
        } catch (const std::runtime_error &e) {
            caught = std::string(e.what()) == "winner";
        }
        CHECK(caught);
        const auto loser = []() -> weft::task<int> {
            try {
                co_await weft::sleep_for(1h);
            } catch (const weft::operation_cancelled &) {
            }
            throw std::runtime_error("loser");
        };
        CHECK((co_await weft::when_any(after(100us, 3), loser())).index == 0);
    });
}

TEST_CASE("when_any: a request from outside reaches the children") {
    test::run(2, []() -> weft::task<> {
        weft::cancellation_source source;
        std::atomic<int> cancelled{0};
        const auto child = [&]() -> weft::task<> {
            try {
                co_await weft::sleep_for(1h);
            } catch (const weft::operation_cancelled &) {
                ++cancelled;
                throw;
            }
        };
        const auto race = [&]() -> weft::task<bool> {
            try {
                co_await weft::when_any(child(), child());
            } catch (const weft::operation_cancelled &) {
                co_return true;
            }
            co_return false;
        };
        const auto requester = [&]() -> weft::task<> {
            co_await weft::sleep_for(2ms);
            source.request();
        };
        const auto [ended, none] = co_await weft::when_all(race() | weft::with_token(source.token()), requester());
        CHECK(ended);
        CHECK(cancelled == 2);
        // And one that came before.
        CHECK(co_await (race() | weft::with_token(source.token())));
        CHECK(cancelled == 4);
    });
}

TEST_CASE("when_any: children that end in the same moment") {
    test::run(4, []() -> weft::task<> {
        int wins[2] = {0, 0};
        const auto child = [](int spins) -> weft::task<int> {
            for (int i = 0; i < spins; ++i) {
                co_await weft::this_task::yield();
            }
            co_return spins;
        };
        for (int i = 0; i < 3000; ++i) {
            const auto first = co_await weft::when_any(child(1 + i % 3), child(1 + (i + 1) % 3));
            ++wins[first.index];
        }
        CHECK(wins[0] + wins[1] == 3000);
    });
}

TEST_CASE("when_any: nested, cancelled from the outermost, many times") {
    test::run(2, []() -> weft::task<> {
        std::atomic<int> ended{0};
        const auto leaf = [&]() -> weft::task<> {
            try {
                co_await weft::sleep_for(1h);
            } catch (const weft::operation_cancelled &) {
                ++ended;
                throw;
            }
        };
        const auto inner = [&]() -> weft::task<> { co_await weft::when_any(leaf(), leaf()); };
        for (int i = 0; i < 500; ++i) {
            const std::size_t first =
                co_await weft::when_any(inner(), inner(), weft::sleep_for(std::chrono::microseconds(i % 40)));
            REQUIRE(first == 2);
            REQUIRE(ended == 4 * (i + 1));
        }
    });
}

#if defined(WEFT_TEST_DELAYS)

extern "C" void weft_test_set_at_point(void (*at_point)(const char *point));

namespace {

// A thread that is no worker, and what it does.
struct outsider {
    std::atomic<bool> asleep{false};   // the child waits
    std::atomic<bool> took{false};     // the outsider has taken the timer out
    std::atomic<bool> stopped{false};  // and the runtime stops meanwhile
    std::atomic<int> deepest{0};       // requests that were under way when when_any was over
};
outsider *at_work = nullptr;
thread_local bool is_outsider = false;
thread_local int requests = 0;

void at_point(const char *point) {
    const std::string_view here = point;
    requests += here == "cancel_request_begun" ? 1 : here == "cancel_request_called" ? -1 : 0;
    if (is_outsider && here == "lane_timer_taken_out") {
        at_work->took = true;
        while (!at_work->stopped) {
            std::this_thread::yield();
        }
    }
}

weft::task<> waits_long(outsider &state) {
    state.asleep = true;
    co_await weft::sleep_for(1h);
}

weft::task<> first_of_two(outsider &state) {
    try {
        co_await weft::when_any(waits_long(state), waits_long(state));
    } catch (const weft::operation_cancelled &) {
        state.deepest = requests;
    }
}

} // namespace

// The last op of a stopping runtime may run on the thread that cancels it, inside its callbacks. There it must not go on to the
// end of when_any, whose source dies with it while the request is on its way through it.
TEST_CASE("when_any: cancelled from outside while its runtime stops") {
    outsider state;
    at_work = &state;
    weft_test_set_at_point(at_point);
    {
        weft::runtime runtime({.workers = 1});
        const weft::cancellation_source source;
        weft::spawn(runtime.scheduler(), first_of_two(state) | weft::with_token(source.token()));
        while (!state.asleep) {
            std::this_thread::yield();
        }
        std::this_thread::sleep_for(20ms);
        std::thread canceller([&] {
            is_outsider = true;
            source.request();
        });
        while (!state.took) {
            std::this_thread::yield();
        }
        std::thread late([&] {
            std::this_thread::sleep_for(200ms); // as long as stop takes when the op is not there
            state.stopped = true;
        });
        runtime.stop();
        canceller.join();
        late.join();
    }
    weft_test_set_at_point(nullptr);
    CHECK(state.deepest == 0);
}
#endif
