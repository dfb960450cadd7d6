// SPDX-License-Identifier: MIT
//
// resume_loop.cpp: the limit for hops: one thread that resumes coroutine handles from an array of its own; no other thread,
// no atomics, no timers, nothing that could be asked for while it runs.
#include <coroutine>

#include "bench.hpp"

namespace {

// A detached coroutine that begins at once.
struct fire_and_forget {
    struct promise_type {
        fire_and_forget get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
};

// A ring of handles, as large as a power of two that holds them all.
class resume_loop {
public:
    explicit resume_loop(std::uint64_t most) {
        std::uint64_t size = 1;
        while (size < most + 1)
            size *= 2;
        ring_.resize(size);
    }

    auto schedule() noexcept {
        struct awaiter {
            resume_loop &loop;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h) const noexcept {
                loop.ring_[loop.tail_++ & (loop.ring_.size() - 1)] = h;
            }
            void await_resume() const noexcept {}
        };
        return awaiter{*this};
    }

    void run() {
        while (head_ != tail_)
            ring_[head_++ & (ring_.size() - 1)].resume();
    }

private:
    std::vector<std::coroutine_handle<>> ring_;
    std::uint64_t head_ = 0, tail_ = 0;
};

fire_and_forget hop(resume_loop &loop, std::uint64_t times, std::uint64_t &done) {
    for (std::uint64_t i = 0; i < times; i++) {
        co_await loop.schedule();
        done++;
    }
}

bench::result hops(std::uint64_t coroutines, std::uint64_t each) {
    resume_loop loop(coroutines);
    return bench::measure(coroutines * each, [&] {
        std::vector<std::uint64_t> done(coroutines, 0);
        for (auto &d : done)
            hop(loop, each, d);
        loop.run();
        for (auto d : done)
            bench::check(d, each, "hops");
    });
}

bench::result chain(const bench::options &o) { return hops(1, o.count(100'000)); }
bench::result yield2(const bench::options &o) { return hops(2, o.count(500'000)); }
bench::result yield1000(const bench::options &o) { return hops(1000, o.count(1000)); }

fire_and_forget waiter(resume_loop &loop, std::uint64_t &ended) {
    co_await loop.schedule();
    ended++;
}

// The frames of the smallest possible coroutine, and eight bytes each in the ring.
bench::result parked(const bench::options &o) {
    std::uint64_t n = o.count(1'000'000), ended = 0;
    resume_loop loop(n);
    return bench::parked(
        n,
        [&] {
            for (std::uint64_t i = 0; i < n; i++)
                waiter(loop, ended);
        },
        [&] {
            loop.run();
            bench::check(ended, n, "coroutines that ended");
        });
}

const std::vector<bench::work> works = {
    {"chain", {1}, chain}, {"yield2", {1}, yield2}, {"yield1000", {1}, yield1000}, {"parked", {1}, parked}};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
