// SPDX-License-Identifier: MIT
//
// handover.cpp: two coroutines that wake each other, by events and by channels.
#include <optional>

#include "weft_works.hpp"

namespace {

weft::task<> ping(std::uint64_t rounds, std::uint64_t &ball, weft::auto_reset_event &there, weft::auto_reset_event &back) {
    for (std::uint64_t i = 0; i < rounds; i++) {
        ball++;
        there.set();
        co_await back.wait();
    }
}

weft::task<> pong(std::uint64_t rounds, std::uint64_t &ball, weft::auto_reset_event &there, weft::auto_reset_event &back) {
    for (std::uint64_t i = 0; i < rounds; i++) {
        co_await there.wait();
        ball++;
        back.set();
    }
}

bench::result pingpong_event(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t rounds = o.count(200'000);
    return bench::measure(rounds, [&] {
        weft::auto_reset_event there, back;
        std::uint64_t ball = 0; // whoever has it adds one
        weft::sync_wait(runtime.scheduler(), weft::when_all(ping(rounds, ball, there, back), pong(rounds, ball, there, back)));
        bench::check(ball, 2 * rounds, "touches of the ball");
    });
}

using channel = weft::channel<std::uint64_t>;

weft::task<std::uint64_t> ask(std::uint64_t rounds, channel &there, channel &back) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < rounds; i++) {
        if (!co_await there.send(i)) bench_fail("the channel is closed");
        sum += (co_await back.receive()).value();
    }
    there.close();
    co_return sum;
}

weft::task<> answer(channel &there, channel &back) {
    while (std::optional<std::uint64_t> i = co_await there.receive())
        if (!co_await back.send(*i + 1)) bench_fail("the channel is closed");
}

bench::result pingpong_channel(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t rounds = o.count(200'000);
    return bench::measure(rounds, [&] {
        channel there(0), back(0);
        auto [sum, nothing] = weft::sync_wait(runtime.scheduler(), weft::when_all(ask(rounds, there, back), answer(there, back)));
        bench::check(sum, rounds * (rounds + 1) / 2, "sum of the answers");
    });
}

} // namespace

const std::vector<bench::work> handover_works = {{"pingpong_event", {1, 2}, pingpong_event},
                                                 {"pingpong_channel", {1, 2}, pingpong_channel}};
