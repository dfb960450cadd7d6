// SPDX-License-Identifier: MIT
//
// resume_loop.cpp: the limit for hops: one thread that resumes coroutine handles from an array of its own; no other thread,
// no atomics, no timers, nothing that could be asked for while it runs. And the limit for fork and join: coroutines that call each
// other one after the other, on frames from a free list; nothing is forked, queued or joined.
#include <coroutine>
#include <new>
#include <utility>

#include "bench.hpp"
#include "forkjoin.hpp"

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

// A lazy coroutine with one result, as small as it can be. All are of one kind, so one list has blocks for all.
class call {
public:
    struct promise_type {
        static void *operator new(std::size_t size) {
            if (free_ == nullptr) return ::operator new(size);
            return std::exchange(free_, *static_cast<void **>(free_));
        }
        static void operator delete(void *frame) noexcept { *static_cast<void **>(frame) = std::exchange(free_, frame); }

        call get_return_object() noexcept { return call(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct awaiter {
                bool await_ready() const noexcept { return false; }
                std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) const noexcept { return h.promise().caller; }
                void await_resume() const noexcept {}
            };
            return awaiter{};
        }
        void return_value(std::uint64_t v) noexcept { value = v; }
        void unhandled_exception() noexcept { std::terminate(); }

        std::coroutine_handle<> caller;
        std::uint64_t value;

    private:
        static thread_local void *free_;
    };

    call(call &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~call() {
        if (handle_) handle_.destroy();
    }

    auto operator co_await() && noexcept {
        struct awaiter {
            std::coroutine_handle<promise_type> callee;
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept {
                callee.promise().caller = caller;
                return callee;
            }
            std::uint64_t await_resume() const noexcept { return callee.promise().value; }
        };
        return awaiter{handle_};
    }

    std::uint64_t run() {
        handle_.promise().caller = std::noop_coroutine();
        handle_.resume();
        return handle_.promise().value;
    }

private:
    explicit call(std::coroutine_handle<promise_type> h) noexcept : handle_(h) {}

    std::coroutine_handle<promise_type> handle_;
};

constinit thread_local void *call::promise_type::free_ = nullptr;

call fib(int n) {
    if (n < 2) co_return static_cast<std::uint64_t>(n);
    std::uint64_t x = co_await fib(n - 1);
    std::uint64_t y = co_await fib(n - 2);
    co_return x + y;
}

bench::result fib30(const bench::options &o) {
    int n = bench::fib_size(o);
    return bench::measure(bench::fib_forks(n), [&] { bench::check(fib(n).run(), bench::fib_sequential(n), "fib"); });
}

call skynet_node(std::uint64_t first, std::uint64_t leaves) {
    if (leaves == 1) co_return first;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 10; i++)
        sum += co_await skynet_node(first + i * (leaves / 10), leaves / 10);
    co_return sum;
}

bench::result skynet(const bench::options &o) {
    std::uint64_t leaves = bench::skynet_leaves(o);
    return bench::measure(leaves, [&] { bench::check(skynet_node(0, leaves).run(), bench::skynet_sum(leaves), "skynet"); });
}

const std::vector<bench::work> works = {{"chain", {1}, chain}, {"yield2", {1}, yield2}, {"yield1000", {1}, yield1000},
                                        {"fib30", {1}, fib30}, {"skynet", {1}, skynet}, {"parked", {1}, parked}};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
