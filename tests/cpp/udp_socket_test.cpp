// SPDX-License-Identifier: MIT
//
// weft/udp_socket.hpp: there and back, boundaries, a peer, what goes wrong, and how waits end early.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <weft.hpp>

#include "support.hpp"

using namespace std::chrono_literals;
using weft::datagram;
using weft::endpoint;
using weft::task;
using weft::udp_socket;

namespace {

/// The code that an await throws, or WEFT_OK.
template <class Awaitable>
task<int> code_of(Awaitable awaitable)
{
    int code = WEFT_OK;
    try {
        static_cast<void>(co_await std::move(awaitable));
    } catch (const weft::error &e) {
        code = e.code().value();
    }
    co_return code;
}

/// Sends everything back, until it is closed.
task<> echo(udp_socket &socket)
{
    std::array<char, 16> room{};
    while (const weft::datagram_result got = co_await socket.try_receive_from(room)) {
        co_await socket.try_send_to(got.received.from, std::string_view(room.data(), got.received.size)); // who asked may close it meanwhile
    }
}

} // namespace

TEST_CASE("udp: there and back") {
    for (const endpoint &at : {endpoint::loopback(0), endpoint::loopback_ipv6(0)}) {
        test::run(2, [at]() -> task<> {
            udp_socket server = udp_socket::bind(at);
            udp_socket client = udp_socket::bind(weft::scheduler(weft_runtime_current()), at);
            CHECK(server.local_endpoint().port() != 0);
            const auto asks = [&]() -> task<> {
                std::array<char, 16> room{};
                for (int i = 0; i < 200; ++i) {
                    const std::string text = std::to_string(i);
                    co_await client.send_to(server.local_endpoint(), text);
                    const datagram got = co_await client.receive_from(room);
                    CHECK(std::string(room.data(), got.size) == text);
                    CHECK(got.from == server.local_endpoint());
                    CHECK(!got.truncated);
                }
                server.close();
            };
            co_await weft::when_all(echo(server), asks());
        });
    }
}

TEST_CASE("udp: a datagram may be empty, or cut off") {
    test::run(1, []() -> task<> {
        udp_socket a = udp_socket::bind(endpoint::loopback(0)), b = udp_socket::bind(endpoint::loopback(0));
        std::array<char, 4> room{};
        co_await a.send_to(b.local_endpoint(), "too long");
        co_await a.send_to(b.local_endpoint(), "");
        const datagram cut = co_await b.receive_from(room);
        CHECK(cut.size == 4);
        CHECK(cut.truncated);
        CHECK(cut.from == a.local_endpoint());
        const datagram empty = co_await b.receive_from(room);
        CHECK(empty.size == 0);
        CHECK(!empty.truncated);
        const std::string huge(70000, 'x');
        const weft::io_result sent = co_await a.try_send_to(b.local_endpoint(), huge);
        CHECK(sent.status == WEFT_EINVAL);
    });
}

TEST_CASE("udp: a peer") {
    test::run(1, []() -> task<> {
        udp_socket a = udp_socket::bind(endpoint::loopback(0)), b = udp_socket::bind(endpoint::loopback(0));
        udp_socket stranger = udp_socket::bind(endpoint::loopback(0));
        a.connect(b.local_endpoint());
        CHECK(a.remote_endpoint() == b.local_endpoint());
        co_await stranger.send_to(a.local_endpoint(), "no");
        std::array<char, 8> room{};
        co_await a.send("yes?");
        const datagram asked = co_await b.receive_from(room);
        co_await b.send_to(asked.from, "yes");
        const datagram got = co_await a.receive_from(room);
        CHECK(std::string(room.data(), got.size) == "yes");
        const weft::io_result sent = co_await a.try_send("more");
        CHECK(sent.status == WEFT_OK);
        CHECK(sent.count == 4);
    });
}

TEST_CASE("udp: what goes wrong is told by its code") {
    test::run(1, []() -> task<> {
        udp_socket a = udp_socket::bind(endpoint::loopback(0));
        CHECK_THROWS_AS(static_cast<void>(udp_socket::bind(a.local_endpoint())), weft::error);
        CHECK_THROWS_AS(static_cast<void>(a.remote_endpoint()), weft::error);
        CHECK_THROWS_AS(static_cast<void>(udp_socket::bind(endpoint())), weft::error);
        udp_socket moved = std::move(a);
        CHECK(a.native().id == 0);
        std::array<char, 1> room{};
        const int none = co_await code_of(a.receive_from(room));
        CHECK(none == WEFT_EBADHANDLE);
        moved.close();
        moved.close();
        const int closed = co_await code_of(moved.send_to(endpoint::loopback(9), "x"));
        CHECK(closed == WEFT_EBADHANDLE);
    });
    CHECK_THROWS_AS(static_cast<void>(udp_socket::bind(endpoint::loopback(0))), weft::error); // no worker
}

TEST_CASE("udp: close, a token and a timeout end a receive that waits") {
    test::run(2, []() -> task<> {
        udp_socket a = udp_socket::bind(endpoint::loopback(0));
        std::array<char, 8> room{};
        for (int i = 0; i < 20; ++i) {
            const int late = co_await code_of(weft::timeout(a.receive_from(room), 1ms));
            CHECK(late == WEFT_ETIMEDOUT);
        }
        weft::cancellation_source source;
        const auto cancel = [&]() -> task<> {
            co_await weft::sleep_for(1ms);
            source.request();
        };
        const auto waits = [&]() -> task<int> { co_return co_await code_of(a.receive_from(room)); };
        const auto [cancelled, nothing] = co_await weft::when_all(waits() | weft::with_token(source.token()), cancel());
        static_cast<void>(nothing);
        CHECK(cancelled == WEFT_ECANCELED);
        co_await a.send_to(a.local_endpoint(), "kept");
        const datagram kept = co_await weft::timeout(a.receive_from(room), 1h);
        CHECK(kept.size == 4);
        const auto close = [&]() -> task<> {
            co_await weft::sleep_for(1ms);
            a.close();
        };
        const auto [closed, done] = co_await weft::when_all(waits(), close());
        static_cast<void>(done);
        CHECK(closed == WEFT_ECLOSED);
    });
}

TEST_CASE("udp: the stop of the runtime ends a receive that waits") {
    weft::runtime pool({.workers = 1});
    udp_socket b = udp_socket::bind(pool.scheduler(), endpoint::loopback(0));
    std::array<char, 8> room{};
    int stopped = WEFT_OK;
    const auto waits = [&]() -> task<> { stopped = co_await code_of(b.receive_from(room)); };
    weft::async_scope scope(pool.scheduler());
    scope.spawn(waits());
    while (pool.stats().io_started == 0) { // one that is not started yet would be refused
        std::this_thread::yield();
    }
    pool.stop();
    weft::sync_wait([&]() -> task<> { co_await scope.join(); }());
    CHECK(stopped == WEFT_ECANCELED);
}
