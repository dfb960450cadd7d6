// SPDX-License-Identifier: MIT
//
// mutex_pool.cpp: the pool that everybody writes first: one queue of std::function, one mutex, one condition variable.
#include <condition_variable>
#include <deque>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>

#include "bench.hpp"

namespace {

class mutex_pool {
public:
    explicit mutex_pool(int workers) {
        for (int i = 0; i < workers; i++)
            threads_.emplace_back([this] { run(); });
    }

    ~mutex_pool() {
        {
            std::lock_guard lock(mutex_);
            stop_ = true;
        }
        ready_.notify_all();
        for (auto &t : threads_)
            t.join();
    }

    void submit(std::function<void()> task) {
        {
            std::lock_guard lock(mutex_);
            tasks_.push_back(std::move(task));
        }
        ready_.notify_one();
    }

    template <class Make>
    void submit_batch(std::uint64_t from, std::uint64_t to, Make make) {
        {
            std::lock_guard lock(mutex_);
            for (std::uint64_t i = from; i < to; i++)
                tasks_.push_back(make(i));
        }
        ready_.notify_all();
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            ready_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<std::function<void()>> tasks_; // guarded by mutex_
    bool stop_ = false;                       // guarded by mutex_
    std::vector<std::thread> threads_;
};

bench::result micro_outside(const bench::options &o) {
    mutex_pool pool(o.workers);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        for (std::uint64_t i = 0; i < n; i++)
            pool.submit([i] { bench::tally::add(i); });
        bench::tally::wait_for(n);
    });
}

bench::result micro_outside_batch(const bench::options &o) {
    mutex_pool pool(o.workers);
    std::uint64_t n = o.count(1'000'000), batch = 1000;
    return bench::measure(n, [&] {
        for (std::uint64_t from = 0; from < n; from += batch)
            pool.submit_batch(from, std::min(from + batch, n), [](std::uint64_t i) { return [i] { bench::tally::add(i); }; });
        bench::tally::wait_for(n);
    });
}

bench::result micro_inside(const bench::options &o) {
    mutex_pool pool(o.workers);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        pool.submit([&pool, n] {
            for (std::uint64_t i = 0; i < n; i++)
                pool.submit([i] { bench::tally::add(i); });
        });
        bench::tally::wait_for(n);
    });
}

// A function that submits itself again until it has run `left` times: a chain, and each of many that take turns.
struct repeated {
    mutex_pool *pool;
    std::latch *end;
    alignas(128) std::uint64_t left;
    std::uint64_t done = 0;

    repeated(mutex_pool &p, std::latch &e, std::uint64_t times) : pool(&p), end(&e), left(times) {}
    void submit() {
        pool->submit([this] {
            done++;
            if (--left > 0)
                submit();
            else
                end->count_down();
        });
    }
};

bench::result repeat(const bench::options &o, std::uint64_t functions, std::uint64_t each) {
    mutex_pool pool(o.workers);
    return bench::measure(functions * each, [&] {
        std::latch end(static_cast<std::ptrdiff_t>(functions));
        std::vector<repeated> all(functions, repeated(pool, end, each));
        for (auto &one : all)
            one.submit();
        end.wait();
        for (auto &one : all)
            bench::check(one.done, each, "turns");
    });
}

bench::result chain(const bench::options &o) { return repeat(o, 1, o.count(100'000)); }
bench::result yield2(const bench::options &o) { return repeat(o, 2, o.count(500'000)); }
bench::result yield1000(const bench::options &o) { return repeat(o, 1000, o.count(1000)); }

bench::result wake(const bench::options &o) {
    mutex_pool pool(o.workers);
    return bench::wake(o, [&](std::atomic<std::int64_t> *began) { pool.submit([began] { began->store(bench_now_ns()); }); });
}

bench::result idle_cpu(const bench::options &o) {
    mutex_pool pool(o.workers);
    return bench::idle(o);
}

const std::vector<bench::work> works = {
    {"micro_outside", {1, 2}, micro_outside},
    {"micro_outside_batch", {1, 2}, micro_outside_batch},
    {"micro_inside", {1, 2}, micro_inside},
    {"chain", {1, 2}, chain},
    {"yield2", {1, 2}, yield2},
    {"yield1000", {1, 2}, yield1000},
    {"wake", {1, 2}, wake},
    {"idle_cpu", {1, 2}, idle_cpu},
};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
