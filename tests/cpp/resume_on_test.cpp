// SPDX-License-Identifier: MIT
//
// weft/resume_on.hpp and weft/schedule_on.hpp: which part of a task runs where.
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include <weft/cancellation.hpp>
#include <weft/inline_scheduler.hpp>
#include <weft/resume_on.hpp>
#include <weft/runtime.hpp>
#include <weft/schedule_on.hpp>
#include <weft/sleep.hpp>
#include <weft/sync_wait.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

weft::task<std::uint64_t> where() { co_return test::here(); }

weft::task<std::unique_ptr<int>> made(std::uint64_t &ran) {
    ran = test::here();
    co_return std::make_unique<int>(4);
}

weft::task<> throws(std::uint64_t &ran) {
    ran = test::here();
    throw std::runtime_error("work");
    co_return;
}

// A scheduler of the user's own.
struct thread_scheduler {
    test::on_new_thread schedule() const noexcept { return {}; }
    bool operator==(const thread_scheduler &) const = default;
};
static_assert(weft::scheduler_like<thread_scheduler>);

} // namespace

TEST_CASE("schedule_on: the work runs there, its awaiter goes on here") {
    weft::runtime a;
    weft::runtime b;
    weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
        CHECK(co_await (where() | weft::schedule_on(b.scheduler())) == b.native().id);
        CHECK(test::here() == a.native().id);
        CHECK(co_await weft::schedule_on(b.scheduler(), where()) == b.native().id);
        CHECK(co_await (where() | weft::schedule_on(weft::inline_scheduler{})) == a.native().id);
        CHECK(co_await (where() | weft::schedule_on(thread_scheduler{})) == a.native().id); // a task lives on a runtime
        // The last one named is the outermost: it goes first, and the work is where the innermost says.
        CHECK(co_await (where() | weft::schedule_on(a.scheduler()) | weft::schedule_on(b.scheduler())) == a.native().id);
        std::uint64_t ran = 0;
        CHECK(*co_await (made(ran) | weft::schedule_on(b.scheduler())) == 4);
        CHECK(ran == b.native().id);
        bool caught = false;
        try {
            co_await (throws(ran) | weft::schedule_on(b.scheduler()));
        } catch (const std::runtime_error &) {
            caught = test::here() == a.native().id;
        }
        CHECK(caught);
        // Any awaitable.
        co_await (weft::sleep_for(1us) | weft::schedule_on(b.scheduler()));
        CHECK(test::here() == a.native().id);
    }());
}

TEST_CASE("schedule_on: work whose scheduler has stopped does not start") {
    weft::runtime a;
    weft::runtime b;
    b.stop();
    std::uint64_t ran = 0;
    weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
        bool stopped = false;
        try {
            co_await (made(ran) | weft::schedule_on(b.scheduler()));
        } catch (const weft::runtime_stopped &) {
            stopped = true;
        }
        CHECK(stopped);
        CHECK(test::here() == a.native().id);
    }());
    CHECK(ran == 0);
}

TEST_CASE("resume_on: moves the task, at most once") {
    weft::runtime a;
    weft::runtime b(weft::runtime_options{1, 0, ""});
    weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
        co_await weft::resume_on(b.scheduler());
        CHECK(test::here() == b.native().id);
        const std::uint64_t before = b.stats().ops_run;
        co_await weft::resume_on(b.scheduler()); // it is there already: no queue
        CHECK(b.stats().ops_run == before);
        co_await weft::sleep_for(1us);
        CHECK(test::here() == b.native().id);
        co_await weft::resume_on(a.scheduler());
        CHECK(test::here() == a.native().id);
    }());
}

TEST_CASE("resume_on: with work, which runs here, and its awaiter goes on there") {
    weft::runtime a;
    weft::runtime b;
    weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
        std::uint64_t ran = 0;
        CHECK(*co_await (made(ran) | weft::resume_on(b.scheduler())) == 4);
        CHECK(ran == a.native().id);
        CHECK(test::here() == b.native().id);
        co_await test::on_new_thread{};
        CHECK(test::here() == b.native().id);
        co_await weft::resume_on(a.scheduler(), weft::sleep_for(1us));
        CHECK(test::here() == a.native().id);
        bool caught = false;
        try {
            co_await (throws(ran) | weft::resume_on(b.scheduler()));
        } catch (const std::runtime_error &) {
            caught = test::here() == b.native().id;
        }
        CHECK(caught);
    }());
}

TEST_CASE("resume_on: a task that cannot move goes on where it was") {
    weft::runtime a;
    weft::runtime b;
    b.stop();
    weft::cancellation_source source;
    weft::sync_wait(a.scheduler(), [&]() -> weft::task<> {
        std::uint64_t ran = 0;
        int thrown = 0;
        try {
            co_await (made(ran) | weft::resume_on(b.scheduler()));
        } catch (const weft::runtime_stopped &) {
            ++thrown;
        }
        CHECK(ran == a.native().id);
        CHECK(test::here() == a.native().id);
        try {
            co_await weft::resume_on(b.scheduler());
        } catch (const weft::runtime_stopped &) {
            ++thrown;
        }
        CHECK(thrown == 2);
        co_await test::on_new_thread{};
        CHECK(test::here() == a.native().id);
        try {
            co_await weft::resume_on(a.scheduler(), weft::task<>());
        } catch (const std::logic_error &) {
            ++thrown;
        }
        CHECK(thrown == 3);
    }());
}
