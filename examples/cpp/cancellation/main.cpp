// SPDX-License-Identifier: MIT
//
// Cancellation: a time-out that wins, one that loses, a race, and a source of one's own. Nothing is passed by hand: a task
// obeys the token of the task that awaits it. And nothing is abandoned: whoever cancels also waits, so clean-up is
// done when the await returns.
#include <chrono>
#include <cstdio>

#include <weft.hpp>

using namespace std::chrono_literals;

// Says when it goes, whichever way it goes.
struct tracer {
    const char* name;
    ~tracer() { std::printf("  %s has cleaned up\n", name); }
};

weft::task<int> compute(const char* name, std::chrono::milliseconds how_long) {
    tracer trace{name};
    co_await weft::sleep_for(how_long);
    co_return 42;
}

weft::task<> timeout_wins() {
    try {
        co_await weft::timeout(compute("slow", 1h), 20ms);
        std::puts("timeout wins: unexpected result");
    } catch (const weft::timed_out&) {
        std::puts("timeout wins: timed out");
    }
}

weft::task<> timeout_loses() {
    const int value = co_await weft::timeout(compute("fast", 5ms), 1h);
    std::printf("timeout loses: %d\n", value);
}

weft::task<> race() {
    const auto [winner, value] = co_await weft::when_any(compute("hare", 5ms), compute("tortoise", 1h));
    std::printf("race: number %zu wins with %d\n", winner, winner == 0 ? std::get<0>(value) : std::get<1>(value));
}

// A loop that waits for nothing asks for itself.
weft::task<> count(long long& rounds) {
    for (;; ++rounds) {
        co_await weft::this_task::throw_if_cancelled();
        co_await weft::this_task::yield(); // so that others get a turn on this worker
    }
}

weft::task<> by_hand() {
    weft::cancellation_source source;
    weft::async_scope scope;
    scope.spawn([source]() -> weft::task<> {
        co_await weft::sleep_for(10ms);
        source.request();
    });
    long long rounds = 0;
    try {
        co_await (count(rounds) | weft::with_token(source.token()));
    } catch (const weft::operation_cancelled&) {
        std::printf("by hand: cancelled after %s\n", rounds > 0 ? "some rounds" : "no round");
    }
    co_await scope.join();
}

weft::task<> async_main() {
    co_await timeout_wins();
    co_await timeout_loses();
    co_await race();
    co_await by_hand();
}

int main() { weft::run(async_main()); }
