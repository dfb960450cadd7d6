// SPDX-License-Identifier: MIT
//
// weft/task.hpp: laziness, results, exceptions, ownership, and where a task goes on.
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/inline_scheduler.hpp>
#include <weft/schedule_on.hpp>
#include <weft/scheduler.hpp>
#include <weft/sync_wait.hpp>
#include <weft/task.hpp>

#include "support.hpp"

namespace {

static_assert(!std::is_copy_constructible_v<weft::task<int>>);
static_assert(std::is_nothrow_move_constructible_v<weft::task<int>> && std::is_nothrow_move_assignable_v<weft::task<int>>);
static_assert(std::is_same_v<weft::task<>, weft::task<void>>);
static_assert(std::is_same_v<weft::task<int &>::value_type, int &>);
static_assert(weft::awaitable<weft::task<int>>);
static_assert(!weft::awaitable<weft::task<int> &>, "a task is awaited as an rvalue");
static_assert(std::is_same_v<weft::await_result<weft::task<int &>>, int &>);

// Counts its live objects.
struct tracked {
    explicit tracked(int &counter) : count(&counter) { ++*count; }
    tracked(const tracked &other) : count(other.count) { ++*count; }
    tracked(tracked &&other) noexcept : count(other.count) { ++*count; }
    tracked &operator=(const tracked &) = delete;
    ~tracked() { --*count; }
    int *count;
};

struct no_default {
    explicit no_default(int v) : value(v) {}
    no_default(no_default &&) noexcept = default;
    int value;
};

weft::task<int> answer(bool *ran = nullptr) {
    if (ran != nullptr) {
        *ran = true;
    }
    co_return 42;
}

weft::task<std::unique_ptr<int>> unique() { co_return std::make_unique<int>(7); }
weft::task<no_default> made() { co_return no_default(9); }
weft::task<std::string> braces() { co_return {"abcd", 2}; }
weft::task<int &> reference(int &to) { co_return to; }
weft::task<const std::string &> constant(const std::string &to) { co_return to; }
weft::task<> nothing(int &calls) {
    ++calls;
    co_return;
}
weft::task<int> throws(const char *what) {
    throw std::runtime_error(what);
    co_return 0;
}
weft::task<int> keeps(tracked) { co_return 1; }

weft::task<int> depth(int n) {
    if (n == 0) {
        co_return 0;
    }
    co_return 1 + co_await depth(n - 1);
}

weft::task<int> sum(int n) {
    int total = 0;
    for (int i = 0; i < n; ++i) {
        total += co_await answer();
    }
    co_return total;
}

} // namespace

TEST_CASE("task: starts only when it is awaited") {
    bool ran = false;
    weft::task<int> t = answer(&ran);
    CHECK(static_cast<bool>(t));
    CHECK_FALSE(ran);
    CHECK(weft::sync_wait(std::move(t)) == 42);
    CHECK(ran);
    CHECK_FALSE(static_cast<bool>(t));
}

TEST_CASE("task: results of every kind") {
    weft::sync_wait([]() -> weft::task<> {
        CHECK(co_await answer() == 42);
        CHECK(*co_await unique() == 7);
        CHECK((co_await made()).value == 9);
        CHECK(co_await braces() == "ab");
        int target = 5;
        int &same = co_await reference(target);
        CHECK(&same == &target);
        const std::string text = "t";
        CHECK(&co_await constant(text) == &text);
        int calls = 0;
        co_await nothing(calls);
        CHECK(calls == 1);
    }());
}

TEST_CASE("task: an exception reaches the awaiter, through tasks that let it pass") {
    const auto outer = []() -> weft::task<int> { co_return co_await throws("deep") + 1; };
    bool caught = false;
    weft::sync_wait([&]() -> weft::task<> {
        try {
            co_await outer();
        } catch (const std::runtime_error &e) {
            caught = std::string(e.what()) == "deep";
        }
    }());
    CHECK(caught);
    CHECK_THROWS_WITH_AS(weft::sync_wait(outer()), "deep", std::runtime_error);
}

TEST_CASE("task: an exception while the result is being made is an exception of the task") {
    struct fragile {
        fragile() = default;
        fragile(const fragile &) { throw std::runtime_error("copy"); }
        fragile(fragile &&) = default;
    };
    const auto make = [](const fragile &from) -> weft::task<fragile> { co_return from; };
    const fragile original;
    CHECK_THROWS_WITH_AS(weft::sync_wait(make(original)), "copy", std::runtime_error);
}

TEST_CASE("task: arguments live in the frame, and go with it whether it ran or not") {
    int live = 0;
    {
        weft::task<int> dropped = keeps(tracked(live));
        CHECK(live == 1);
        weft::task<int> moved = std::move(dropped);
        CHECK(live == 1);
        moved = keeps(tracked(live)); // the first one goes
        CHECK(live == 1);
    }
    CHECK(live == 0);
    CHECK(weft::sync_wait(keeps(tracked(live))) == 1);
    CHECK(live == 0);
}

TEST_CASE("task: results are destroyed with the task") {
    int live = 0;
    const auto make = [](int &counter) -> weft::task<tracked> { co_return tracked(counter); };
    weft::sync_wait([&]() -> weft::task<> {
        {
            const tracked got = co_await make(live);
            CHECK(live == 1);
        }
        CHECK(live == 0);
    }());
    CHECK(live == 0);
}

TEST_CASE("task: an empty task throws") {
    weft::task<int> empty;
    CHECK_FALSE(static_cast<bool>(empty));
    CHECK_THROWS_AS(weft::sync_wait([&]() -> weft::task<int> { co_return co_await std::move(empty); }()), std::logic_error);
    CHECK_THROWS_AS(weft::sync_wait(std::move(empty)), std::logic_error);
}

TEST_CASE("task: swap, release and handle") {
    weft::task<int> a = answer();
    weft::task<int> b;
    const auto frame = a.handle();
    a.swap(b);
    CHECK_FALSE(static_cast<bool>(a));
    CHECK(b.handle() == frame);
    const auto released = b.release();
    CHECK(released == frame);
    CHECK_FALSE(static_cast<bool>(b));
    released.destroy();
}

TEST_CASE("task: deep recursion and long loops") {
    CHECK(weft::sync_wait(depth(50'000)) == 50'000);
    CHECK(weft::sync_wait(sum(100'000)) == 4'200'000);
    CHECK(test::run(2, [] { return depth(50'000); }) == 50'000);
}

TEST_CASE("task: comes back to its runtime after a child that moved away") {
    weft::runtime other;
    test::run(2, [&]() -> weft::task<> {
        const std::uint64_t home = test::here();
        CHECK(home != 0);
        std::uint64_t there = 0;
        const auto child = [&]() -> weft::task<int> {
            co_await other.scheduler().schedule();
            there = test::here();
            co_return 3;
        };
        CHECK(co_await child() == 3);
        CHECK(there == other.native().id);
        CHECK(test::here() == home);
        // The same when it ends with an exception.
        const auto thrower = [&]() -> weft::task<> {
            co_await other.scheduler().schedule();
            throw std::runtime_error("there");
        };
        try {
            co_await thrower();
            CHECK(false);
        } catch (const std::runtime_error &) {
            CHECK(test::here() == home);
        }
    });
}

TEST_CASE("task: comes back to its runtime after awaiting what is not weft's") {
    test::run(2, []() -> weft::task<> {
        const std::uint64_t home = test::here();
        for (int i = 0; i < 100; ++i) {
            CHECK(co_await test::on_new_thread{} == 42);
            REQUIRE(test::here() == home);
        }
    });
}

TEST_CASE("task: many tasks at once between two runtimes") {
    weft::runtime other;
    const auto ping = [&](int rounds) -> weft::task<int> {
        int wrong = 0;
        const std::uint64_t home = test::here();
        for (int i = 0; i < rounds; ++i) {
            wrong += (co_await weft::schedule_on(other.scheduler(), answer())) == 42 ? 0 : 1;
            wrong += test::here() == home ? 0 : 1;
        }
        co_return wrong;
    };
    std::vector<weft::task<int>> tasks;
    for (int i = 0; i < 8; ++i) {
        tasks.push_back(ping(500));
    }
    int wrong = 0;
    test::run(2, [&]() -> weft::task<> {
        for (auto &t : tasks) {
            wrong += co_await std::move(t);
        }
    });
    CHECK(wrong == 0);
}

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
namespace {

weft::task<bool> yes() { co_return true; }

weft::task<> awaits_in_a_condition() {
    if (co_await yes()) {
        co_return;
    }
}

} // namespace

TEST_CASE("task: a frame that GCC 12 misplaces ends the program and says so") {
    const test::death death = test::dies("task: a frame that GCC 12 misplaces ends the program and says so",
                                         [] { weft::run(awaits_in_a_condition()); });
    CHECK(death.aborted);
    CHECK(death.says("GCC 12 has misplaced the frame"));
}
#endif
