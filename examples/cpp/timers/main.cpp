// SPDX-License-Identifier: MIT
//
// Timers: a pause, a beat that does not drift, ten thousand sleeps at once on two threads, and a sleep that ends early.
#include <chrono>
#include <cstdio>
#include <vector>

#include <weft.hpp>

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

static long long milliseconds_since(clock_type::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - begin).count();
}

// Sleeps until points in time, not for spans, so that the time between two beats does not add up what each one costs.
weft::task<> metronome(int beats, std::chrono::milliseconds period) {
    const auto begin = clock_type::now();
    for (int beat = 1; beat <= beats; ++beat) {
        co_await weft::sleep_until(begin + beat * period);
        std::printf("beat %d at %lld ms\n", beat, milliseconds_since(begin));
    }
}

weft::task<> many(int sleepers) {
    const auto begin = clock_type::now();
    std::vector<weft::task<>> sleeps;
    for (int i = 0; i < sleepers; ++i) {
        sleeps.push_back([](int i) -> weft::task<> { co_await weft::sleep_for(std::chrono::milliseconds(i % 50)); }(i));
    }
    co_await weft::when_all(std::move(sleeps));
    std::printf("%d sleeps of up to 49 ms took %lld ms\n", sleepers, milliseconds_since(begin));
}

weft::task<> woken_early() {
    const auto begin = clock_type::now();
    const bool finished = co_await weft::try_timeout(weft::sleep_for(1h), 30ms);
    std::printf("a sleep of an hour %s after %lld ms\n", finished ? "ended" : "was cancelled", milliseconds_since(begin));
}

weft::task<> async_main() {
    const auto begin = clock_type::now();
    co_await weft::sleep_for(15ms);
    std::printf("a pause of 15 ms took %lld ms\n", milliseconds_since(begin));
    co_await metronome(3, 10ms);
    co_await many(10000);
    co_await woken_early();
}

int main() {
    weft::runtime_options options;
    options.workers = 2;
    weft::run(options, async_main());
}
