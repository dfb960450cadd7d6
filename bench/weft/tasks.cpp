// SPDX-License-Identifier: MIT
//
// tasks.cpp: micro tasks, as functions and as coroutines; chains and yields of coroutines.
#include "weft_works.hpp"

namespace {

weft::task<> micro(std::uint64_t i) {
    bench::tally::add(i);
    co_return;
}

/// 1,000,000 tasks from a thread outside; submit(scheduler, i) starts the i-th.
template <class Submit>
bench::result from_outside(const bench::options &o, Submit submit) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        for (std::uint64_t i = 0; i < n; i++)
            submit(runtime.scheduler(), i);
        bench::tally::wait_for(n);
    });
}

/// The same from a task inside.
template <class Submit>
bench::result from_inside(const bench::options &o, Submit submit) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        weft::post(runtime.scheduler(), [n, submit] {
            for (std::uint64_t i = 0; i < n; i++)
                submit(weft::current_scheduler(), i);
        });
        bench::tally::wait_for(n);
    });
}

void post_micro(weft::scheduler where, std::uint64_t i) {
    weft::post(where, [i] { bench::tally::add(i); });
}

void spawn_micro(weft::scheduler where, std::uint64_t i) { weft::spawn(where, micro(i)); }

bench::result micro_outside(const bench::options &o) { return from_outside(o, post_micro); }
bench::result micro_inside(const bench::options &o) { return from_inside(o, post_micro); }
bench::result spawn_outside(const bench::options &o) { return from_outside(o, spawn_micro); }
bench::result spawn_inside(const bench::options &o) { return from_inside(o, spawn_micro); }

weft::task<std::uint64_t> hop(std::uint64_t n) {
    std::uint64_t hops = 0;
    weft::scheduler here = weft::current_scheduler();
    for (std::uint64_t i = 0; i < n; i++) {
        co_await here.schedule();
        hops++;
    }
    co_return hops;
}

bench::result chain(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(100'000);
    return bench::measure(n, [&] { bench::check(weft::sync_wait(runtime.scheduler(), hop(n)), n, "hops"); });
}

weft::task<> link(std::uint64_t left, std::uint64_t &hops, weft::event &end) {
    hops++;
    if (left > 1)
        weft::spawn(link(left - 1, hops, end));
    else
        end.set();
    co_return;
}

weft::task<std::uint64_t> link_all(std::uint64_t n) {
    std::uint64_t hops = 0;
    weft::event end;
    weft::spawn(link(n, hops, end));
    co_await end.wait();
    co_return hops;
}

bench::result chain_spawn(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(100'000);
    return bench::measure(n, [&] { bench::check(weft::sync_wait(runtime.scheduler(), link_all(n)), n, "hops"); });
}

weft::task<> take_turns(std::uint64_t n, std::uint64_t &done) {
    std::uint64_t turns = 0;
    for (; turns < n; turns++)
        co_await weft::this_task::yield();
    done = turns;
}

bench::result yields(const bench::options &o, std::uint64_t coroutines) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t each = o.count(1'000'000 / coroutines);
    return bench::measure(coroutines * each, [&] {
        std::vector<std::uint64_t> done(coroutines, 0);
        std::vector<weft::task<>> all;
        for (auto &d : done)
            all.push_back(take_turns(each, d));
        weft::sync_wait(runtime.scheduler(), weft::when_all(std::move(all)));
        for (auto d : done)
            bench::check(d, each, "yields");
    });
}

bench::result yield2(const bench::options &o) { return yields(o, 2); }
bench::result yield1000(const bench::options &o) { return yields(o, 1000); }

} // namespace

const std::vector<bench::work> task_works = {
    {"micro_outside", {1, 2}, micro_outside},
    {"micro_inside", {1, 2}, micro_inside},
    {"spawn_outside", {1, 2}, spawn_outside},
    {"spawn_inside", {1, 2}, spawn_inside},
    {"chain", {1, 2}, chain},
    {"chain_spawn", {1, 2}, chain_spawn},
    {"yield2", {1, 2}, yield2},
    {"yield1000", {1, 2}, yield1000},
};
