// SPDX-License-Identifier: MIT
//
// handover.cpp: two coroutines that wake each other, by events and by channels.
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

} // namespace

const std::vector<bench::work> handover_works = {{"pingpong_event", {1, 2}, pingpong_event}};
