// SPDX-License-Identifier: MIT
//
// tasks.cpp: micro tasks, chains and yields, each a coroutine.
#include "weft_works.hpp"

namespace {

weft::task<> micro(std::uint64_t i) {
    bench::tally::add(i);
    co_return;
}

bench::result micro_outside(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        for (std::uint64_t i = 0; i < n; i++)
            weft::spawn(runtime.scheduler(), micro(i));
        bench::tally::wait_for(n);
    });
}

weft::task<> spawn_all(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; i++)
        weft::spawn(micro(i));
    co_return;
}

bench::result micro_inside(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        weft::spawn(runtime.scheduler(), spawn_all(n));
        bench::tally::wait_for(n);
    });
}

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
    {"chain", {1, 2}, chain},
    {"chain_spawn", {1, 2}, chain_spawn},
    {"yield2", {1, 2}, yield2},
    {"yield1000", {1, 2}, yield1000},
};
