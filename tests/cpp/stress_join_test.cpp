// SPDX-License-Identifier: MIT
//
// Cancellation against completion for everything that joins others: when_all, when_any, timeout, async_scope, spawn and
// sync_wait. Whoever cancels also waits, so after each round nobody is left who could refer to it.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "stress_support.hpp"

using namespace test;
using namespace std::chrono_literals;

namespace {

/// Counts the frames of tasks that are alive.
struct counted {
    explicit counted(std::atomic<int> &where) : alive(where) { ++alive; }
    counted(const counted &) = delete;
    counted &operator=(const counted &) = delete;
    ~counted() { --alive; }
    std::atomic<int> &alive;
};

task<int> waits_for(weft::event &event, std::atomic<int> &alive, int result) {
    const counted here(alive);
    co_await event.wait();
    co_return result;
}

void when_all(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 300, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::event event;
        std::atomic<int> alive = 0;
        auto children = weft::when_all(waits_for(event, alive, 1), waits_for(event, alive, 2), weft::sleep_for(10us));
        const auto [both, s, r] = co_await weft::when_all(unless_cancelled(std::move(children), source.token()),
                                                          meanwhile(a, 0, [&] { event.set(); }), meanwhile_request(a, 1, source));
        static_cast<void>(s);
        static_cast<void>(r);
        CHECK(alive == 0);
        if (both) {
            CHECK(std::get<0>(*both) + std::get<1>(*both) == 3);
        }
    });
}

void when_any(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 300, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::event first;
        weft::event second;
        std::atomic<int> alive = 0;
        const auto any = [&]() -> task<std::size_t> {
            const auto won =
                co_await weft::when_any(waits_for(first, alive, 1), waits_for(second, alive, 2), weft::sleep_for(30us));
            CHECK(alive == 0);
            CHECK((won.index == 0 ? first.is_set() : won.index == 1 ? second.is_set() : won.index == 2));
            co_return won.index;
        };
        const auto [won, s, r] = co_await weft::when_all(unless_cancelled(any(), source.token()),
                                                         meanwhile(a, 0,
                                                                   [&] {
                                                                       first.set();
                                                                       second.set();
                                                                   }),
                                                         meanwhile_request(a, 1, source));
        static_cast<void>(won);
        static_cast<void>(s);
        static_cast<void>(r);
        CHECK(alive == 0);
    });
}

void timeout(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 300, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::event event;
        std::atomic<int> alive = 0;
        const std::chrono::nanoseconds span(a.below(50000));
        const bool asleep = a.below(4) == 0; // then child and time-out end together
        const auto limited = [&]() -> task<bool> {
            if (asleep) {
                co_return co_await weft::try_timeout(weft::sleep_for(span), span);
            }
            const std::optional<int> got = co_await weft::try_timeout(waits_for(event, alive, 7), span);
            CHECK(alive == 0);
            CHECK((!got || *got == 7));
            CHECK((!got || event.is_set()));
            co_return got.has_value();
        };
        const auto [in_time, s, r] = co_await weft::when_all(
            unless_cancelled(limited(), source.token()), meanwhile(a, 0, [&] { event.set(); }), meanwhile_request(a, 1, source));
        static_cast<void>(in_time);
        static_cast<void>(s);
        static_cast<void>(r);
        CHECK(alive == 0);
    });
}

/// The first that ends, the time-out and the request, all in one tree.
void nested(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 300, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::event event;
        weft::mutex mutex;
        std::atomic<int> alive = 0;
        const auto locks = [&]() -> task<int> {
            const weft::mutex::guard guard = co_await mutex.scoped_lock();
            const int got = co_await waits_for(event, alive, 1);
            co_return got;
        };
        const auto tree = [&]() -> task<int> {
            const auto won =
                co_await weft::when_any(weft::try_timeout(locks(), 20us), weft::try_timeout(locks(), 30us),
                                        weft::when_all(locks(), weft::schedule_on(a.elsewhere, waits_for(event, alive, 2))));
            co_return static_cast<int>(won.index);
        };
        const auto [index, s, r] = co_await weft::when_all(
            unless_cancelled(tree(), source.token()), meanwhile(a, 0, [&] { event.set(); }), meanwhile_request(a, 1, source));
        static_cast<void>(index);
        static_cast<void>(s);
        static_cast<void>(r);
        CHECK(alive == 0);
        CHECK(mutex.try_lock());
        mutex.unlock();
    });
}

/// Tasks that spawn others into their scope, a join that is cancelled or not, and a cancel of the scope.
void scope(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 300, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::event event;
        std::atomic<int> alive = 0;
        {
            weft::async_scope scope(a.home);
            const auto leaf = [&]() -> task<> { static_cast<void>(co_await waits_for(event, alive, 0)); };
            const auto spawns = [&]() -> task<> {
                const counted here(alive);
                co_await weft::this_task::yield();
                scope.spawn(leaf());
                scope.spawn(a.elsewhere, leaf());
            };
            for (std::uint64_t n = a.below(4); n > 0; --n) {
                scope.spawn(spawns());
            }
            const bool cancels = a.below(2) == 0;
            const auto [joined, s, r] = co_await weft::when_all(unless_cancelled(scope.join(), source.token()),
                                                                meanwhile(a, 0,
                                                                          [&] {
                                                                              if (cancels) {
                                                                                  scope.request_cancel();
                                                                              }
                                                                              event.set();
                                                                          }),
                                                                meanwhile_request(a, 1, source));
            static_cast<void>(s);
            static_cast<void>(r);
            CHECK(joined.has_value()); // join waits for all, and returns as without a request
            CHECK(scope.outstanding() == 0);
        }
        CHECK(alive == 0);
    });
}

void spawn(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 300, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::event event;
        weft::event ended;
        std::atomic<int> left = 4;
        for (int i = 0; i < 4; ++i) {
            const weft::scheduler where = i % 2 == 0 ? a.home : a.elsewhere;
            weft::spawn(where, [&event, &ended, &left, token = source.token()]() -> task<> {
                static_cast<void>(co_await unless_cancelled(event.wait(), token));
                if (--left == 0) {
                    ended.set();
                }
            });
        }
        co_await weft::when_all(meanwhile(a, 0, [&] { event.set(); }), meanwhile_request(a, 1, source));
        co_await ended.wait();
        CHECK(left == 0);
    });
}

/// Threads that block until work on the runtime, or on themselves, ends or is cancelled.
void sync_wait(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 200, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::event event;
        bool ended = false;
        const bool there = a.below(2) == 0;
        const bool sets = a.below(2) == 0;
        const auto blocks = [&] {
            auto work = unless_cancelled(event.wait(), source.token());
            if (there) {
                static_cast<void>(weft::sync_wait(a.home, std::move(work)));
            } else {
                static_cast<void>(weft::sync_wait(std::move(work)));
            }
            ended = true;
        };
        const auto ends = [&] {
            if (sets) {
                event.set();
            } else {
                source.request();
            }
        };
        co_await weft::when_all(a.threads[0].run(blocks), meanwhile(a, 1, ends));
        CHECK(ended);
    });
}

/// Stop and destruction of a runtime while its tasks wait for a timer, an event and another runtime.
void stop(std::uint32_t workers, std::uint64_t *random) {
    for (long i = 0; i < 30 * stress_scale(); ++i) {
        std::atomic<int> alive = 0;
        weft::event event;
        weft::runtime other = stressed(1);
        const auto there = []() -> task<> { co_await weft::sleep_for(1us); };
        const auto sleeps = [&]() -> task<> {
            const counted here(alive);
            for (;;) { // until runtime_stopped, or operation_cancelled
                co_await weft::sleep_for(5us);
                co_await (there() | weft::schedule_on(other.scheduler()));
            }
        };
        const auto waits = [&]() -> task<> { static_cast<void>(co_await waits_for(event, alive, 0)); };
        {
            weft::runtime pool = stressed(workers);
            stress_watch_runtime(pool.native());
            for (int n = 0; n < 4; ++n) {
                weft::spawn(pool.scheduler(), sleeps());
                weft::spawn(pool.scheduler(), waits());
            }
            stress_wait(random, 300000);
            pool.stop();
            event.set(); // those who waited resume on this thread: their runtime has no worker left
        }
        for (std::uint32_t spins = 0; alive != 0;) {
            stress_pause(&spins);
        }
        stress_progress();
    }
}

} // namespace

STRESS("stress join: when_all", when_all)
STRESS("stress join: when_any", when_any)
STRESS("stress join: timeout", timeout)
STRESS("stress join: a tree of them", nested)
STRESS("stress join: async_scope", scope)
STRESS("stress join: spawn", spawn)
STRESS("stress join: sync_wait", sync_wait)
STRESS("stress join: the stop of a runtime", stop)
