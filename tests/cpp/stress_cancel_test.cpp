// SPDX-License-Identifier: MIT
//
// Cancellation against completion for every awaitable that waits for a scheduler, a timer, or another task: one of the two
// wins, nothing is lost or done twice, and no frame goes while somebody still refers to it.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "stress_support.hpp"

using namespace test;

namespace {

/// Takes a turn again and again until it is cancelled: nothing else ends it.
template <class Turn>
void until_cancelled(std::uint32_t workers, std::uint64_t *random, Turn turn) {
    rounds(workers, random, 100, [turn](arena &a) -> task<> {
        const weft::cancellation_source source;
        const auto loop = [&]() -> task<> {
            for (;;) {
                co_await turn(a);
            }
        };
        const auto [ended, nothing] =
            co_await weft::when_all(unless_cancelled(loop(), source.token()), meanwhile_request(a, 0, source));
        static_cast<void>(nothing);
        CHECK_FALSE(ended.has_value());
    });
}

void schedule(std::uint32_t workers, std::uint64_t *random) {
    until_cancelled(workers, random, [](arena &a) { return a.home.schedule(); });
}

void yield(std::uint32_t workers, std::uint64_t *random) {
    until_cancelled(workers, random, [](arena &) { return weft::this_task::yield(); });
}

void check_in_a_loop(std::uint32_t workers, std::uint64_t *random) {
    stress_unwatch(0);
    until_cancelled(workers, random, [](arena &) { return weft::this_task::throw_if_cancelled(); });
}

void elsewhere_and_back(std::uint32_t workers, std::uint64_t *random) {
    until_cancelled(workers, random, [](arena &a) -> task<> {
        const auto where = []() -> task<std::uint64_t> { co_return here(); };
        const std::uint64_t there = co_await (where() | weft::schedule_on(a.elsewhere));
        CHECK(there == a.elsewhere.native().id);
        CHECK(here() == a.home.native().id);
    });
}

void resume_on(std::uint32_t workers, std::uint64_t *random) {
    until_cancelled(workers, random, [](arena &a) -> task<> {
        co_await weft::resume_on(a.elsewhere);
        CHECK(here() == a.elsewhere.native().id);
        const auto stay = []() -> task<> { co_await weft::this_task::yield(); };
        co_await (stay() | weft::resume_on(a.home));
        CHECK(here() == a.home.native().id);
    });
}

void sleep(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        const std::chrono::nanoseconds span(a.below(40000));
        const bool scheduled = a.below(2) == 0;
        const auto begun = test::clock::now();
        const auto nap = [&]() -> task<> {
            if (scheduled) {
                co_await a.home.schedule_after(span);
            } else {
                co_await weft::sleep_for(span);
            }
        };
        const auto [slept, nothing] =
            co_await weft::when_all(unless_cancelled(nap(), source.token()), meanwhile_request(a, 0, source));
        static_cast<void>(nothing);
        if (slept) {
            CHECK(test::clock::now() - begun >= span);
        }
    });
}

void event(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        std::optional<weft::event> event(std::in_place);
        const auto all = [&]() -> task<> { // two waiters, of which one is cancelled
            const auto [first, second, s, r] =
                co_await weft::when_all(unless_cancelled(event->wait(), source.token()), unless_cancelled(event->wait(), {}),
                                        meanwhile(a, 0, [&] { event->set(); }), meanwhile_request(a, 1, source));
            static_cast<void>(first);
            CHECK(second.has_value());
            static_cast<void>(s);
            static_cast<void>(r);
        };
        co_await all();
        event.reset();
    });
}

void auto_reset_event(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::auto_reset_event event;
        const auto [first, s, r] =
            co_await weft::when_all(unless_cancelled(event.wait(), source.token()), meanwhile(a, 0, [&] { event.set(); }),
                                    meanwhile_request(a, 1, source));
        static_cast<void>(s);
        static_cast<void>(r);
        CHECK(event.try_wait() != first.has_value()); // the set is used by the waiter, or still there
    });
}

void mutex(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::mutex mutex;
        int inside = 0; // guarded by mutex
        const auto locks = [&]() -> task<> {
            const weft::mutex::guard guard = co_await mutex.scoped_lock();
            ++inside;
        };
        CHECK(mutex.try_lock());
        const auto [first, second, u, r] =
            co_await weft::when_all(unless_cancelled(locks(), source.token()), unless_cancelled(locks(), {}),
                                    meanwhile(a, 0, [&] { mutex.unlock(); }), meanwhile_request(a, 1, source));
        static_cast<void>(u);
        static_cast<void>(r);
        CHECK(second.has_value());
        CHECK(inside == 1 + (first ? 1 : 0));
        CHECK(mutex.try_lock());
        mutex.unlock();
    });
}

/// Both ends of a channel under tokens: what was sent is received or still there.
void channel(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source sender;
        const weft::cancellation_source receiver;
        weft::channel<int> channel(a.below(3));
        const auto send_all = [&]() -> task<int> {
            int sent = 0;
            for (int i = 0; i < 4; ++i) {
                const auto done = co_await unless_cancelled(channel.send(i), sender.token());
                sent += done ? 1 : 0;
            }
            co_return sent;
        };
        const auto receive_all = [&]() -> task<int> {
            int received = 0;
            for (int i = 0; i < 4; ++i) {
                const auto value = co_await unless_cancelled(channel.receive(), receiver.token());
                received += value ? 1 : 0;
            }
            co_return received;
        };
        const auto [sent, received, s, r] = co_await weft::when_all(send_all(), receive_all(), meanwhile_request(a, 0, sender),
                                                                    meanwhile_request(a, 1, receiver));
        static_cast<void>(s);
        static_cast<void>(r);
        int left = 0;
        while (channel.try_receive()) {
            ++left;
        }
        CHECK(sent == received + left);
    });
}

/// A close instead of a second request.
void channel_close(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        weft::channel<int> channel(0);
        const auto [got, sent, c, r] = co_await weft::when_all(
            unless_cancelled(channel.receive(), source.token()), unless_cancelled(channel.send(1), source.token()),
            meanwhile(a, 0, [&] { channel.close(); }), meanwhile_request(a, 1, source));
        static_cast<void>(c);
        static_cast<void>(r);
        const bool received = got && got->has_value();
        CHECK(received == (sent && *sent));
    });
}

/// Registrations whose callbacks destroy each other: of two, exactly one is called.
void registrations_that_destroy_each_other(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        using registration = weft::cancellation_registration<std::function<void()>>;
        std::optional<registration> one;
        std::optional<registration> two;
        std::atomic<int> calls = 0;
        one.emplace(source.token(), std::function<void()>([&] {
                        ++calls;
                        two.reset();
                    }));
        two.emplace(source.token(), std::function<void()>([&] {
                        ++calls;
                        one.reset();
                    }));
        co_await weft::when_all(meanwhile_request(a, 0, source), meanwhile_request(a, 1, source));
        CHECK(calls == 1);
        CHECK(one.has_value() != two.has_value());
    });
}

/// A source that follows another one, and goes while that is requested.
void linked_sources(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 400, [](arena &a) -> task<> {
        const weft::cancellation_source parent;
        std::optional<weft::cancellation_source> child(std::in_place, parent.token());
        const weft::cancellation_token token = child->token();
        co_await weft::when_all(meanwhile_request(a, 0, parent), meanwhile(a, 1, [&] { child.reset(); }));
        CHECK(token.requested());
    });
}

} // namespace

STRESS("stress cancel: schedule", schedule)
STRESS("stress cancel: yield", yield)
STRESS("stress cancel: throw_if_cancelled", check_in_a_loop)
STRESS("stress cancel: schedule_on", elsewhere_and_back)
STRESS("stress cancel: resume_on", resume_on)
STRESS("stress cancel: sleep_for and schedule_after", sleep)
STRESS("stress cancel: event", event)
STRESS("stress cancel: auto_reset_event", auto_reset_event)
STRESS("stress cancel: mutex", mutex)
STRESS("stress cancel: channel", channel)
STRESS("stress cancel: channel that closes", channel_close)
STRESS("stress cancel: registrations that destroy each other", registrations_that_destroy_each_other)
STRESS("stress cancel: linked sources", linked_sources)
