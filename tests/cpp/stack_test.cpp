// SPDX-License-Identifier: MIT
//
// Transfers do not grow the stack: a million awaits that are ready at once, in the 256 KiB of a worker and on a plain
// thread, without optimisation. A program of its own, always compiled with -O0: GCC makes no tail calls there.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <weft/async_scope.hpp>
#include <weft/event.hpp>
#include <weft/mutex.hpp>
#include <weft/run.hpp>
#include <weft/sync_wait.hpp>
#include <weft/task.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/when_any.hpp>

namespace {

// A tenth would need more stack than there is, too; for the whole an emulator takes half a minute.
const int million = std::getenv("WEFT_TEST_EMULATOR") == nullptr ? 1'000'000 : 100'000;

// The deepest and the highest place of the stack that a thread has been seen at.
struct span {
    std::uintptr_t low = UINTPTR_MAX;
    std::uintptr_t high = 0;

    [[gnu::noinline]] void note() {
        const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        low = std::min(low, here);
        high = std::max(high, here);
    }
    std::uintptr_t bytes() const { return high - low; }
};

thread_local span stack; // one worker, so one thread at a time

[[gnu::noinline]] void note() { stack.note(); }
[[gnu::noinline]] std::uintptr_t used() { return stack.bytes(); }

weft::task<int> ready() {
    note();
    co_return 1;
}

weft::task<long> loop(int n) {
    long total = 0;
    for (int i = 0; i < n; ++i) {
        total += co_await ready();
    }
    co_return total;
}

// A coroutine type that is not weft's, and transfers as such types do.
struct foreign {
    struct promise_type {
        std::coroutine_handle<> continuation;
        foreign get_return_object() { return foreign(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct awaiter {
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
                    return h.promise().continuation;
                }
                void await_resume() noexcept {}
            };
            return awaiter{};
        }
        void return_void() { note(); }
        void unhandled_exception() { std::terminate(); }
    };
    explicit foreign(std::coroutine_handle<promise_type> h) : handle(h) {}
    foreign(foreign &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    ~foreign() {
        if (handle != nullptr) {
            handle.destroy();
        }
    }
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) {
        handle.promise().continuation = waiting;
        return handle;
    }
    void await_resume() const noexcept {}
    std::coroutine_handle<promise_type> handle;
};

foreign make_foreign() { co_return; }

template <class F>
std::uintptr_t in_small_stack(F f) {
    weft::runtime_options options;
    options.workers = 1;
    options.stack_bytes = 256 * 1024;
    return weft::run(options, [&]() -> weft::task<std::uintptr_t> {
        stack = span();
        co_await f();
        co_return used();
    });
}

constexpr std::uintptr_t limit = 96 * 1024; // the 32 KiB of transfer.hpp, and what the frames above and below it take

} // namespace

TEST_CASE("stack: a million ready tasks in a loop, in 256 KiB") {
    const std::uintptr_t bytes = in_small_stack([]() -> weft::task<> { CHECK(co_await loop(million) == million); });
    MESSAGE(bytes << " bytes");
    CHECK(bytes < limit);
}

TEST_CASE("stack: a million ready tasks in a loop, on a thread that waits") {
    stack = span();
    CHECK(weft::sync_wait(loop(million)) == million);
    MESSAGE(stack.bytes() << " bytes");
    CHECK(stack.bytes() < limit);
}

TEST_CASE("stack: a long chain of tasks that await each other, there and back") {
    struct chain {
        static weft::task<int> link(int n) {
            note();
            const int below = n == 0 ? 0 : co_await link(n - 1);
            note();
            co_return below + 1;
        }
    };
    CHECK(in_small_stack([]() -> weft::task<> { CHECK(co_await chain::link(200'000) == 200'001); }) < limit);
    stack = span();
    CHECK(weft::sync_wait(chain::link(200'000)) == 200'001);
    CHECK(stack.bytes() < limit);
}

TEST_CASE("stack: joins, races and scopes in a loop") {
    CHECK(in_small_stack([]() -> weft::task<> {
              for (int i = 0; i < million / 5; ++i) {
                  co_await weft::when_all(ready(), ready());
              }
              for (int i = 0; i < million / 20; ++i) {
                  co_await weft::when_any(ready(), ready());
              }
              weft::async_scope scope;
              for (int i = 0; i < million / 20; ++i) {
                  scope.spawn(ready());
                  co_await scope.join();
              }
          }) < limit);
    stack = span();
    weft::sync_wait([]() -> weft::task<> {
        for (int i = 0; i < million / 5; ++i) {
            co_await weft::when_all(ready(), ready());
        }
    }());
    CHECK(stack.bytes() < limit);
}

TEST_CASE("stack: events and mutexes that are ready, and that hand on") {
    CHECK(in_small_stack([]() -> weft::task<> {
              weft::event set(true);
              weft::mutex mutex;
              for (int i = 0; i < million; ++i) {
                  co_await set.wait();
                  const auto guard = co_await mutex.scoped_lock();
                  note();
              }
              weft::auto_reset_event ping;
              weft::auto_reset_event pong;
              const auto left = [&]() -> weft::task<> {
                  for (int i = 0; i < million / 10; ++i) {
                      ping.set();
                      co_await pong.wait();
                      note();
                  }
              };
              const auto right = [&]() -> weft::task<> {
                  for (int i = 0; i < million / 10; ++i) {
                      co_await ping.wait();
                      note();
                      pong.set();
                  }
              };
              co_await weft::when_all(left(), right());
          }) < limit);
}

TEST_CASE("stack: coroutines that are not weft's, ready at once") {
    // On GCC without optimisation their own transfers take stack, two calls per await, until weft's proxy unwinds it.
    CHECK(in_small_stack([]() -> weft::task<> {
              for (int i = 0; i < million; ++i) {
                  co_await make_foreign();
              }
          }) < limit);
    stack = span();
    weft::sync_wait([]() -> weft::task<> {
        for (int i = 0; i < million / 10; ++i) {
            co_await make_foreign();
        }
    }());
    CHECK(stack.bytes() < limit);
}

TEST_CASE("stack: a base from a deep call is forgotten") {
    // The first transfers of the worker happen below 64 KiB of somebody's arrays; later ones above.
    CHECK(in_small_stack([]() -> weft::task<> {
              struct deep {
                  [[gnu::noinline]] static void below(std::coroutine_handle<> h) {
                      std::array<volatile char, 64 * 1024> waste;
                      waste[0] = 1;
                      waste[waste.size() - 1] = 1;
                      h.resume();
                      waste[1] = 2;
                  }
                  bool await_ready() const noexcept { return false; }
                  void await_suspend(std::coroutine_handle<> h) const { below(h); }
                  void await_resume() const noexcept {}
              };
              co_await deep{};
              CHECK(co_await loop(10'000) == 10'000);
              co_await weft::this_task::yield();
              stack = span();
              CHECK(co_await loop(million / 10) == million / 10);
          }) < limit);
}
