// SPDX-License-Identifier: MIT
//
// What the C++ stress tests share: threads beside the workers, and tasks that do something at a random distance from
// what the others do, on a worker or on such a thread.
#ifndef TESTS_CPP_STRESS_SUPPORT_HPP
#define TESTS_CPP_STRESS_SUPPORT_HPP

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <weft.hpp>

#if defined(__linux__)
#define STRESS_FAULTS
extern "C" void stress_strike(int one_in, std::uint64_t seed); // faults.c
#endif
#include "../stress.h"
#include "tcp_support.hpp"

namespace test {

/// A thread that is no worker and does what it is told, one thing at a time.
class outsider {
public:
    outsider() : thread_([this] { loop(); }) {}
    outsider(const outsider &) = delete;
    outsider &operator=(const outsider &) = delete;
    ~outsider() {
        post(nullptr, nullptr);
        thread_.join();
    }

    /// Calls f there, and goes on at home.
    template <class F>
    task<> run(F f) {
        weft::event done;
        auto job = [&] {
            f();
            done.set();
        };
        post([](void *context) { (*static_cast<decltype(job) *>(context))(); }, &job);
        co_await done.wait();
    }

private:
    using function = void (*)(void *);

    void post(function f, void *context) {
        const std::lock_guard lock(mutex_);
        function_ = f;
        context_ = context;
        posted_ = true;
        changed_.notify_one();
    }

    void loop() {
        for (;;) {
            std::unique_lock lock(mutex_); // and not std::atomic's wait, which in MinGW's GCC 12 loses wakes
            changed_.wait(lock, [this] { return posted_; });
            posted_ = false; // the next post comes only after the job's end
            lock.unlock();
            if (function_ == nullptr) {
                return;
            }
            function_(context_);
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    function function_ = nullptr; // handed over by posted_, as context_ is
    void *context_ = nullptr;
    bool posted_ = false; // guarded by mutex_
    std::thread thread_;
};

/// What a round of a scenario is given.
struct arena {
    std::uint32_t workers;
    weft::scheduler home;
    weft::scheduler elsewhere; // another runtime
    outsider threads[2];
    std::uint64_t *random;

    std::uint64_t below(std::uint64_t bound) { return stress_below(random, bound); }
};

template <class F>
task<> do_after(arena &a, int who, std::uint64_t random, F f) {
    if (random % 2 == 0) {
        co_await a.threads[who].run([&] {
            stress_wait(&random, 2000);
            f();
        });
    } else {
        for (std::uint64_t turns = random / 2 % 4; turns > 0; --turns) {
            co_await weft::this_task::yield();
        }
        stress_wait(&random, 1000);
        f();
    }
}

/// Does f at a random distance: on thread `who` beside the workers, or on a worker after some turns. f is a function. The
/// distance is drawn now, by the caller, since the task may start on any worker.
template <class F>
task<> meanwhile(arena &a, int who, F f) {
    return do_after(a, who, stress_random(a.random), std::move(f));
}

/// The same for a request.
inline task<> meanwhile_request(arena &a, int who, const weft::cancellation_source &source) {
    return meanwhile(a, who, [&source] { source.request(); });
}

/// Awaits an operation under a token; std::nullopt if it was cancelled, else what it gave (true for void).
template <weft::awaitable A>
auto unless_cancelled(A operation, weft::cancellation_token token)
    -> task<std::optional<weft::detail::value_of<weft::detail::task_result<A>>>> {
    using value = weft::detail::value_of<weft::detail::task_result<A>>;
    std::optional<value> result;
    try {
        if constexpr (std::is_void_v<weft::detail::task_result<A>>) {
            co_await (std::move(operation) | weft::with_token(token));
            result.emplace();
        } else {
            result.emplace(co_await (std::move(operation) | weft::with_token(token)));
        }
    } catch (const weft::operation_cancelled &) {
    }
    co_return result;
}

/// A thread may be refused: then no runtime is left behind, and we try again.
inline weft::runtime stressed(std::uint32_t workers) {
    for (;;) {
        try {
            return make_runtime(workers);
        } catch (const weft::error &refused) {
            if (refused.code() != weft::errc::limit_reached) {
                throw;
            }
        }
    }
}

/// Runs a round so many times on a runtime with workers, beside another runtime of one.
template <class Round>
void rounds(std::uint32_t workers, std::uint64_t *random, long count, Round round) {
    weft::runtime pool = stressed(workers);
    weft::runtime other = stressed(1);
    stress_watch_runtime(pool.native());
    arena a{workers, pool.scheduler(), other.scheduler(), {}, random};
    run_on(pool, [&]() -> task<> {
        for (long i = 0; i < count * stress_scale(); ++i) {
            co_await round(a);
            stress_progress();
        }
    });
}

/// A test case of a scenario: a function of the number of workers and the random state.
#define STRESS(name, scenario)                                                                                                   \
    TEST_CASE(name) { CHECK(stress_in_all_crowds(name, scenario) == 0); }

} // namespace test

#endif
