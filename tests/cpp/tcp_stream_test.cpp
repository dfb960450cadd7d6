// SPDX-License-Identifier: MIT
//
// One connection: its ends, its directions, its errors, and the objects that own it.
#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <weft.hpp>

#include "tcp_support.hpp"

using namespace test;

TEST_CASE("tcp stream: a connection, its addresses, and an echo") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        CHECK(listener.local_endpoint().port() != 0);
        CHECK(listener.local_endpoint() == endpoint::loopback(listener.local_endpoint().port()));
        ends both = co_await connected(listener);
        CHECK(both.client.remote_endpoint() == listener.local_endpoint());
        CHECK(both.server.local_endpoint() == listener.local_endpoint());
        CHECK(both.server.remote_endpoint() == both.client.local_endpoint());
        CHECK(both.client.native_handle() >= 0);
        weft::async_scope scope;
        scope.spawn(echo(std::move(both.server)));
        for (const std::string& word : {std::string("hello"), std::string(1, 'x'), std::string(100000, 'y')}) {
            std::string back(word.size(), ' ');
            co_await weft::when_all(both.client.send_all(word), both.client.receive_exactly(back));
            CHECK(back == word);
        }
        both.client.shutdown(weft::direction::send);
        const std::string rest = co_await receive_everything(both.client);
        CHECK(rest.empty());
        co_await scope.join();
    });
}

TEST_CASE("tcp stream: IPv6") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback_ipv6(0));
        ends both = co_await connected(listener);
        CHECK(both.client.remote_endpoint().is_ipv6());
        CHECK(both.client.remote_endpoint() == listener.local_endpoint());
        co_await both.client.send_all("six");
        std::string back(3, ' ');
        co_await both.server.receive_exactly(back);
        CHECK(back == "six");
    });
}

TEST_CASE("tcp stream: the end of the stream") {
    test::run(2, []() -> task<> {
        ends both = co_await connected();
        co_await both.client.send_all("abc");
        both.client.close();
        std::string five(5, ' ');
        const weft::io_result exactly = co_await both.server.try_receive_exactly(five);
        CHECK(exactly.status == WEFT_EOF);
        CHECK(exactly.count == 3);
        CHECK(five == "abc  ");
        const int code = co_await code_of(both.server.receive_exactly(five));
        CHECK(code == WEFT_EOF);
        const std::size_t count = co_await both.server.receive(five);
        CHECK(count == 0);
        const weft::io_result result = co_await both.server.try_receive(five);
        CHECK(result);
        CHECK(result.count == 0);
    });
}

TEST_CASE("tcp stream: half close, both ways") {
    test::run(1, []() -> task<> {
        ends both = co_await connected();
        co_await both.client.send_all("request");
        both.client.shutdown(weft::direction::send);
        const std::string request = co_await receive_everything(both.server);
        CHECK(request == "request");
        co_await both.server.send_all("answer"); // the other direction is open
        both.server.shutdown(weft::direction::send);
        const std::string answer = co_await receive_everything(both.client);
        CHECK(answer == "answer");
        const int after = co_await code_of(both.client.send_all("more"));
        CHECK(after == WEFT_EPIPE);

#if !defined(_WIN32)
        ends others = co_await connected();
        std::string byte(1, ' ');
        const auto wait = [&]() -> task<weft::io_result> { co_return co_await others.server.try_receive(byte); };
        const auto shut = [&]() -> task<> {
            co_await others_wait();
            others.server.shutdown(weft::direction::receive); // ends one's own wait
        };
        const auto [result, nothing] = co_await weft::when_all(wait(), shut());
        static_cast<void>(nothing);
        CHECK(result);
        CHECK(result.count == 0);
        co_await others.server.send_all("z");
        co_await others.client.receive_exactly(byte);
        CHECK(byte == "z");
#endif
    });
}

TEST_CASE("tcp stream: sending to a peer that has gone") {
    test::run(2, []() -> task<> {
        ends both = co_await connected();
        both.server.close();
        weft::io_result result;
        for (int i = 0; i < 1000 && result; ++i) { // the reset takes its time
            result = co_await both.client.try_send_all("into the void");
            co_await weft::sleep_for(1ms);
        }
        CHECK((result.status == WEFT_EPIPE || result.status == WEFT_ECONNRESET));
#if defined(_WIN32)
        CHECK((result.os_error == WSAECONNABORTED || result.os_error == WSAECONNRESET));
#else
        CHECK((result.os_error == EPIPE || result.os_error == ECONNRESET));
#endif
    });
}

TEST_CASE("tcp stream: one operation per direction") {
    test::run(1, []() -> task<> {
        ends both = co_await connected();
        std::string one(1, ' ');
        std::string two(1, ' ');
        const auto second = [&]() -> task<> {
            co_await others_wait();
            const int busy = co_await code_of(both.client.receive(two));
            CHECK(busy == WEFT_EBUSY);
            co_await both.client.send_all("s"); // the other direction is free
            co_await both.server.receive_exactly(two);
            CHECK(two == "s");
            co_await both.server.send_all("r");
        };
        co_await weft::when_all(both.client.receive_exactly(one), second());
        CHECK(one == "r");
    });
}

TEST_CASE("tcp stream: a task resumes on its own runtime, not on the socket's") {
    weft::runtime home = make_runtime(1);
    weft::runtime other = make_runtime(1);
    tcp_listener listener = tcp_listener::bind(other.scheduler(), endpoint::loopback(0));
    run_on(home, [&]() -> task<> {
        auto [server, client] =
            co_await weft::when_all(listener.accept(), tcp_stream::connect(other.scheduler(), listener.local_endpoint()));
        CHECK(weft::current_scheduler() == home.scheduler());
        std::string word(4, ' ');
        weft::async_scope scope;
        scope.spawn([&]() -> task<> {
            co_await weft::sleep_for(5ms);
            co_await server.send_all("home");
        });
        co_await client.receive_exactly(word); // directly: what stands between would go home by itself
        CHECK(weft::current_scheduler() == home.scheduler());
        co_await scope.join();
        CHECK(word == "home");
        CHECK(weft::current_scheduler() == home.scheduler());
    });
}

TEST_CASE("tcp stream: objects that were moved from, or never made") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        ends both = co_await connected(listener);
        tcp_stream taken = std::move(both.client);
        tcp_listener moved = std::move(listener);
        std::string byte(1, ' ');
        tcp_stream never;
        for (tcp_stream* empty : {&both.client, &never}) {
            const int received = co_await code_of(empty->receive(byte));
            CHECK(received == WEFT_EBADHANDLE);
            const weft::io_result sent = co_await empty->try_send_all(byte);
            CHECK(sent.status == WEFT_EBADHANDLE);
            CHECK(empty->try_shutdown(weft::direction::both) == WEFT_EBADHANDLE);
            CHECK_THROWS_AS(empty->shutdown(weft::direction::both), weft::error);
            CHECK_THROWS_AS(static_cast<void>(empty->native_handle()), weft::error);
            CHECK_THROWS_AS(static_cast<void>(empty->local_endpoint()), weft::error);
            CHECK_THROWS_AS(static_cast<void>(empty->remote_endpoint()), weft::error);
            empty->close();
        }
        const int accepted = co_await code_of(listener.accept());
        CHECK(accepted == WEFT_EBADHANDLE);
        CHECK_THROWS_AS(static_cast<void>(listener.local_endpoint()), weft::error);

        co_await taken.send_all("1");
        co_await both.server.receive_exactly(byte);
        CHECK(byte == "1");
        ends more = co_await connected(moved);
        both.server = std::move(more.server); // closes what it had
        const std::size_t end = co_await taken.receive(byte);
        CHECK(end == 0);
        tcp_stream& self = both.server;
        both.server = std::move(self);
        co_await both.server.send_all("2");
        co_await more.client.receive_exactly(byte);
        CHECK(byte == "2");
    });
}

#if !defined(_WIN32) // which has neither sockets nor pipes like these
TEST_CASE("tcp stream: descriptors of others") {
    weft::runtime runtime = make_runtime();
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    run_on(runtime, [&]() -> task<> {
        const weft::scheduler on = runtime.scheduler();
        tcp_stream one = tcp_stream::from_native(on, pair[0]);
        tcp_stream two = tcp_stream::from_native(on, pair[1]);
        CHECK(one.native_handle() == pair[0]);
        std::string word(4, ' ');
        co_await weft::when_all(two.receive_exactly(word), one.send_all("unix"));
        CHECK(word == "unix");
        tcp_stream reader = tcp_stream::from_native(on, pipe_ends[0]);
        tcp_stream writer = tcp_stream::from_native(on, pipe_ends[1]);
        co_await weft::when_all(reader.receive_exactly(word), writer.send_all("pipe"));
        CHECK(word == "pipe");

        const auto refused = [&](std::intptr_t system) {
            try {
                static_cast<void>(tcp_stream::from_native(on, system));
            } catch (const weft::error& e) {
                return e.code().value();
            }
            return static_cast<int>(WEFT_OK);
        };
        CHECK(refused(file) == WEFT_ENOTSUP);
        CHECK(refused(-1) == WEFT_EINVAL);
        CHECK(refused(pair[0]) == WEFT_EEXIST);
        CHECK_THROWS_AS(static_cast<void>(one.local_endpoint()), weft::error); // no IP socket

        const weft_descriptor raw = one.release();
        CHECK_THROWS_AS(static_cast<void>(one.native_handle()), weft::error);
        tcp_stream again(raw);
        CHECK(again.native_handle() == pair[0]);
        co_return;
    });
    CHECK(fcntl(file, F_GETFD) >= 0); // what was refused was left alone
    CHECK(close(file) == 0);
    CHECK(fcntl(pair[0], F_GETFD) < 0); // what was taken was closed
    CHECK(fcntl(pipe_ends[1], F_GETFD) < 0);
}
#endif

TEST_CASE("tcp stream: ready results in a row cost no stack") {
    test::run(2, []() -> task<> {
        ends both = co_await connected();
        std::size_t total = 0;
        for (int i = 0; i < 200000; ++i) {
            total += co_await both.client.receive(std::span<std::byte>()); // length 0 is complete at once
        }
        CHECK(total == 0);
    });
}
