// SPDX-License-Identifier: MIT
//
// channel.cpp: ping-pong of two Asio coroutines through Asio's experimental channels: the plain one on one thread, the
// concurrent one on more, as its documentation demands. Asio 1.22 has no event.
#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>
#include <latch>

#include "pool.hpp"

namespace {

template <class Channel>
awaitable ping(Channel &out, Channel &in, std::uint64_t rounds, std::uint64_t &sum, std::latch &end) {
    for (std::uint64_t i = 0; i < rounds; i++) {
        co_await out.async_send(asio::error_code{}, i, use_awaitable);
        sum += co_await in.async_receive(use_awaitable);
    }
    end.count_down();
}

template <class Channel>
awaitable pong(Channel &in, Channel &out, std::uint64_t rounds, std::latch &end) {
    for (std::uint64_t i = 0; i < rounds; i++)
        co_await out.async_send(asio::error_code{}, 1 + co_await in.async_receive(use_awaitable), use_awaitable);
    end.count_down();
}

template <class Channel>
bench::result ping_pong(const bench::options &o) {
    asio_pool pool(o.workers);
    std::uint64_t rounds = o.count(200'000);
    return bench::measure(rounds, [&] {
        Channel there(pool.context, 0), back(pool.context, 0);
        std::uint64_t sum = 0;
        std::latch end(2);
        asio::co_spawn(pool.context, ping(there, back, rounds, sum, end), asio::detached);
        asio::co_spawn(pool.context, pong(there, back, rounds, end), asio::detached);
        end.wait();
        bench::check(sum, rounds * (rounds + 1) / 2, "sum of the answers");
    });
}

using message = void(asio::error_code, std::uint64_t);

bench::result pingpong_channel(const bench::options &o) {
    if (o.workers == 1) return ping_pong<asio::experimental::channel<executor, message>>(o);
    return ping_pong<asio::experimental::concurrent_channel<executor, message>>(o);
}

} // namespace

const std::vector<bench::work> channel_works = {{"pingpong_channel", {1, 2}, pingpong_channel}};
