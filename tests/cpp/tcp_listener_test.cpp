// SPDX-License-Identifier: MIT
//
// Where one can listen, and accepting: with no descriptor left, and very often.
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <netinet/in.h>
#if !defined(_WIN32)
#include <poll.h>
#endif
#include <string>
#include <string_view>
#if !defined(_WIN32)
#include <sys/resource.h>
#endif
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <weft.hpp>

#include "tcp_support.hpp"

using namespace test;

#if !defined(_WIN32) // which has no limit for handles
TEST_CASE("tcp listener: without a free descriptor accept waits, and does not spin") {
    weft::runtime runtime = make_runtime();
    run_on(runtime, [&]() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        tcp_stream client = co_await tcp_stream::connect(listener.local_endpoint());
        rlimit before{};
        getrlimit(RLIMIT_NOFILE, &before);
        rlimit none = before;
        none.rlim_cur = 0; // and not the next number: the monitor has a descriptor now and then, and one below it would be free after that
        REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
        const std::uint64_t started = runtime.stats().io_started;
        const auto give_back = [&]() -> task<std::uint64_t> {
            co_await weft::sleep_for(250ms);
            const std::uint64_t tries = runtime.stats().io_started - started;
            setrlimit(RLIMIT_NOFILE, &before);
            co_return tries;
        };
        auto [server, tries] = co_await weft::when_all(listener.accept(), give_back());
        CHECK(tries >= 2);
        CHECK(tries <= 10);
        co_await client.send_all("x");
        std::string byte(1, ' ');
        co_await server.receive_exactly(byte);
        CHECK(byte == "x");

        REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
        weft::stream_result no_socket = co_await tcp_stream::try_connect(listener.local_endpoint());
        CHECK(no_socket.status == WEFT_ELIMIT);
        setrlimit(RLIMIT_NOFILE, &before);
    });
}

TEST_CASE("tcp listener: two hundred clients, and room for sixty-four") {
    weft::runtime runtime = make_runtime();
    constexpr std::size_t count = 200;
    std::vector<int> clients;
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    run_on(runtime, [&]() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(listener.local_endpoint().port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (std::size_t i = 0; i < count; ++i) {
            clients.push_back(socket(AF_INET, SOCK_STREAM, 0));
            REQUIRE(connect(clients.back(), reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
            REQUIRE(send(clients.back(), "x", 1, 0) == 1);
        }
        const int next = dup(0);
        close(next);
        rlimit few = before;
        few.rlim_cur = static_cast<rlim_t>(next) + 64;
        REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
        weft::async_scope servers;
        const auto serve = [&]() -> task<> {
            for (std::size_t i = 0; i < count; ++i) {
                servers.spawn(echo(co_await listener.accept()));
            }
        };
        const auto talk = [&]() -> task<> {
            while (runtime.stats().descriptors < 50) { // until most of the room is taken
                co_await weft::sleep_for(1ms);
            }
            co_await weft::sleep_for(100ms); // and the rest
            const std::uint64_t served = runtime.stats().descriptors;
            const std::clock_t cpu = std::clock();
            const auto began = test::clock::now();
            co_await weft::sleep_for(500ms);
            const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
            CHECK(used / std::chrono::duration<double>(test::clock::now() - began).count() < 0.05);
            CHECK(served <= 65); // with the listener
            CHECK(runtime.stats().descriptors == served);
            std::size_t answers = 0;
            for (const int client : clients) { // each one that leaves makes room for another
                pollfd watch{client, POLLIN, 0};
                while (poll(&watch, 1, 0) == 0) {
                    co_await weft::sleep_for(1ms);
                }
                char byte = 0;
                answers += recv(client, &byte, 1, 0) == 1 && byte == 'x' ? 1 : 0;
                close(client);
            }
            CHECK(answers == count);
        };
        co_await weft::when_all(serve(), talk());
        co_await servers.join();
    });
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK(runtime.stats().descriptors == 0);
}

#endif

TEST_CASE("tcp listener: a thousand connections at once") {
    weft::runtime runtime = make_runtime();
    constexpr std::size_t count = 1000;
    constexpr int messages = 10;
    run_on(runtime, [&]() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        weft::async_scope servers;
        const auto serve = [&]() -> task<> {
            for (std::size_t i = 0; i < count; ++i) {
                servers.spawn(echo(co_await listener.accept()));
            }
        };
        std::atomic<std::size_t> open = 0;
        std::atomic<std::size_t> correct = 0;
        const auto talk = [&](std::size_t number) -> task<> {
            tcp_stream stream = co_await tcp_stream::connect(listener.local_endpoint());
            ++open;
            while (open < count) {
                co_await weft::sleep_for(1ms); // so that all are open together
            }
            for (int i = 0; i < messages; ++i) {
                const std::string message = std::to_string(number) + '/' + std::to_string(i);
                std::string back(message.size(), ' ');
                co_await stream.send_all(message);
                co_await stream.receive_exactly(back);
                correct += back == message ? 1 : 0;
            }
        };
        std::vector<task<>> clients;
        for (std::size_t i = 0; i < count; ++i) {
            clients.push_back(talk(i));
        }
        co_await weft::when_all(serve(), weft::when_all(std::move(clients)));
        co_await servers.join();
        CHECK(correct == count * messages);
    });
    CHECK(runtime.stats().descriptors == 0);
}

#if defined(_WIN32)
constexpr int system_refused = WSAECONNREFUSED;
#else
constexpr int system_refused = ECONNREFUSED;
#endif

TEST_CASE("tcp listener: refused, in use, of no use") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::ipv4({127, 0, 0, 2}, 0)); // as closed_port in resolve_test.cpp
        const endpoint at = listener.local_endpoint();
        try {
            static_cast<void>(tcp_listener::bind(at));
            FAIL("two listeners at one address");
        } catch (const weft::error& e) {
            CHECK(e.code() == weft::errc::address_in_use);
            CHECK(std::string_view(e.what()).find(at.to_string()) != std::string_view::npos);
        }
        listener.close();
        const weft::stream_result refused = co_await tcp_stream::try_connect(at);
        CHECK(refused.status == WEFT_ECONNREFUSED);
        CHECK(refused.os_error == system_refused);
        try {
            static_cast<void>(co_await tcp_stream::connect(at));
            FAIL("connected to nobody");
        } catch (const weft::error& e) {
            CHECK(e.code() == std::errc::connection_refused);
            CHECK(e.os_error() == system_refused);
        }
        const int nowhere = co_await code_of(tcp_stream::connect(endpoint()));
        CHECK(nowhere == WEFT_EINVAL);
        CHECK_THROWS_AS(static_cast<void>(tcp_listener::bind(endpoint())), weft::error);
        CHECK_THROWS_AS(static_cast<void>(tcp_listener::bind(endpoint::ipv4({192, 0, 2, 1}, 0))), weft::error); // not ours
    });
}

TEST_CASE("tcp listener: outside of workers a runtime must be named") {
    CHECK_THROWS_AS(static_cast<void>(tcp_listener::bind(endpoint::loopback(0))), weft::error);
    CHECK(weft::sync_wait(code_of(tcp_stream::connect(endpoint::loopback(1)))) == WEFT_ENOTWORKER);
    weft::runtime runtime = make_runtime();
    tcp_listener listener = tcp_listener::bind(runtime.scheduler(), endpoint::loopback(0));
    // A task that lives on this thread: it comes back here after each wait on the runtime's sockets.
    const auto here = std::this_thread::get_id();
    const auto body = [&]() -> task<> {
        auto [server, client] =
            co_await weft::when_all(listener.accept(), tcp_stream::connect(runtime.scheduler(), listener.local_endpoint()));
        CHECK(std::this_thread::get_id() == here);
        std::string byte(1, ' ');
        const auto answer = [&]() -> task<> {
            co_await weft::this_task::yield();
            co_await server.send_all("y");
        };
        co_await weft::when_all(client.receive_exactly(byte), answer());
        CHECK(byte == "y");
        CHECK(std::this_thread::get_id() == here);
    };
    weft::sync_wait(body());
}
