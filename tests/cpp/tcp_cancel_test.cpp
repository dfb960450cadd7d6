// SPDX-License-Identifier: MIT
//
// How waits end early: by close, by a token, by a time-out, by the stop of the runtime.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <weft.hpp>

#include "tcp_support.hpp"

using namespace test;

TEST_CASE("tcp cancel: close ends those who wait") {
    test::run(1, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        ends both = co_await connected(listener);
        ends full = co_await connected(listener);
        co_await fill(full.client);
        std::string byte(1, ' ');
        const auto close = [&]() -> task<> {
            co_await others_wait();
            both.server.close();
            full.client.close();
            listener.close();
        };
        const auto [received, sent, accepted, nothing] =
            co_await weft::when_all(code_of(both.server.receive(byte)), code_of(full.client.send_all(std::string(1 << 20, ' '))),
                                    code_of(listener.accept()), close());
        static_cast<void>(nothing);
        CHECK(received == WEFT_ECLOSED);
        CHECK(sent == WEFT_ECLOSED);
        CHECK(accepted == WEFT_ECLOSED);
        both.server.close(); // twice is allowed
        const int later = co_await code_of(both.server.receive(byte));
        CHECK(later == WEFT_EBADHANDLE);
        const weft::stream_result no_more = co_await listener.try_accept();
        CHECK(no_more.status == WEFT_EBADHANDLE);
    });
}

TEST_CASE("tcp cancel: cancelled before the start") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        ends both = co_await connected(listener);
        co_await both.client.send_all("kept");
        weft::cancellation_source source;
        source.request();
        std::string four(4, ' ');
        const weft::io_result received = co_await (both.server.try_receive(four) | weft::with_token(source.token()));
        CHECK(received.status == WEFT_ECANCELED);
        CHECK(received.count == 0);
        const int sent = co_await code_of(both.server.send_all("never") | weft::with_token(source.token()));
        CHECK(sent == WEFT_ECANCELED);
        const int accepted = co_await code_of(listener.accept() | weft::with_token(source.token()));
        CHECK(accepted == WEFT_ECANCELED);
        const int connecting = co_await code_of(tcp_stream::connect(listener.local_endpoint()) | weft::with_token(source.token()));
        CHECK(connecting == WEFT_ECANCELED);
        bool typed = false;
        try {
            co_await (both.server.receive(four) | weft::with_token(source.token()));
        } catch (const weft::operation_cancelled&) {
            typed = true;
        }
        CHECK(typed);
        co_await both.server.receive_exactly(four); // the bytes are still there, and the stream works
        CHECK(four == "kept");
    });
}

TEST_CASE("tcp cancel: cancelled while waiting") {
    test::run(1, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        ends both = co_await connected(listener);
        ends full = co_await connected(listener);
        co_await fill(full.client);
        std::string four(4, ' ');
        weft::cancellation_source source;
        const auto token = [&] { return weft::with_token(source.token()); };
        const auto request = [&]() -> task<> {
            co_await others_wait();
            source.request();
        };
        const auto [received, sent, accepted, nothing] = co_await weft::when_all(
            both.server.try_receive_exactly(four) | token(), full.client.try_send_all(std::string(1 << 20, ' ')) | token(),
            listener.try_accept() | token(), request());
        static_cast<void>(nothing);
        CHECK(received.status == WEFT_ECANCELED);
        CHECK(sent.status == WEFT_ECANCELED);
        CHECK(accepted.status == WEFT_ECANCELED);
        co_await both.client.send_all("live"); // a cancelled stream can be used again
        co_await both.server.receive_exactly(four);
        CHECK(four == "live");
        ends more = co_await connected(listener);
        CHECK(more.server.native_handle() >= 0);
    });
}

TEST_CASE("tcp cancel: cancelled after the end is nothing") {
    test::run(2, []() -> task<> {
        ends both = co_await connected();
        weft::cancellation_source source;
        std::string four(4, ' ');
        co_await both.client.send_all("good");
        co_await (both.server.receive_exactly(four) | weft::with_token(source.token()));
        source.request();
        CHECK(four == "good");
        CHECK(both.server.native_handle() >= 0);
    });
}

TEST_CASE("tcp cancel: no byte is lost to a cancellation that comes as it arrives") {
    test::run(2, []() -> task<> {
        ends both = co_await connected();
        constexpr int rounds = 2000;
        std::string sent;
        std::string received;
        const auto produce = [&]() -> task<> {
            for (int i = 0; i < rounds; ++i) {
                const std::string byte(1, static_cast<char>('a' + i % 26));
                co_await both.client.send_all(byte);
                sent += byte;
                if (i % 50 == 0) {
                    co_await weft::sleep_for(200us); // the other side catches up, and waits
                } else if (i % 3 == 0) {
                    co_await weft::this_task::yield();
                }
            }
            both.client.shutdown(weft::direction::send);
        };
        const auto consume = [&]() -> task<> {
            int cancelled = 0;
            for (;;) {
                std::array<char, 3> bytes;
                weft::cancellation_source source;
                const auto request = [&]() -> task<> {
                    co_await weft::this_task::yield();
                    source.request();
                };
                const auto [result, nothing] =
                    co_await weft::when_all(both.server.try_receive(bytes) | weft::with_token(source.token()), request());
                static_cast<void>(nothing);
                if (result && result.count == 0) {
                    break;
                }
                CHECK((result || result.status == WEFT_ECANCELED));
                cancelled += result ? 0 : 1;
                received.append(bytes.data(), result.count);
            }
            CHECK(cancelled > 0);
        };
        co_await weft::when_all(produce(), consume());
        CHECK(received == sent);
        CHECK(received.size() == rounds);
    });
}

TEST_CASE("tcp cancel: time-outs over receive, accept and connect") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0), 1);
        ends both = co_await connected(listener);
        std::string byte(1, ' ');
        const int received = co_await code_of(weft::timeout(both.server.receive(byte), 10ms));
        CHECK(received == WEFT_ETIMEDOUT);
        const auto accepted = co_await weft::try_timeout(listener.accept(), 10ms);
        CHECK_FALSE(accepted.has_value());
        co_await both.client.send_all("t");
        const std::size_t count = co_await weft::timeout(both.server.receive(byte), 1h);
        CHECK(count == 1);
        const std::optional<weft::io_result> told = co_await weft::try_timeout(both.server.try_receive(byte), 10ms);
        CHECK(told.has_value()); // a try_ form has a result, whatever it is
        CHECK(told->status == WEFT_ECANCELED);

        // With a full queue of connections that nobody accepts, a further one is not answered.
        std::vector<tcp_stream> waiting;
        std::optional<tcp_stream> last;
        do {
            last = co_await weft::try_timeout(tcp_stream::connect(listener.local_endpoint()), 100ms);
            if (last) {
                waiting.push_back(std::move(*last));
            }
        } while (last && waiting.size() < 100);
        CHECK_FALSE(last.has_value());
        CHECK(waiting.size() >= 1);
        CHECK(waiting.size() < 10);
    });
}

TEST_CASE("tcp cancel: a runtime that stops ends every wait, and closes every descriptor") {
    weft::runtime runtime = make_runtime();
    std::atomic<int> cancelled = 0;
    std::intptr_t system = -1;
    {
        tcp_listener listener = tcp_listener::bind(runtime.scheduler(), endpoint::loopback(0));
        weft::async_scope scope(runtime.scheduler());
        const auto wait = [&](auto operation) -> task<> {
            const int code = co_await code_of(std::move(operation));
            cancelled += code == WEFT_ECANCELED ? 1 : 0;
        };
        std::vector<ends> connections;
        std::string bytes(50, ' ');
        run_on(runtime, [&]() -> task<> {
            for (int i = 0; i < 50; ++i) {
                connections.push_back(co_await connected(listener));
            }
        });
        const std::uint64_t before = runtime.stats().io_started;
        for (std::size_t i = 0; i < connections.size(); ++i) {
            scope.spawn(wait(connections[i].server.receive(std::span(bytes).subspan(i, 1))));
        }
        scope.spawn(wait(listener.accept()));
        system = connections[0].server.native_handle();
        while (runtime.stats().io_started - before < 51) { // one that is not started yet would be refused
            std::this_thread::yield();
        }
        runtime.stop();
        weft::sync_wait([&]() -> task<> { co_await scope.join(); }());
        CHECK(cancelled == 51);
        weft_io io{};
        io.op.run = [](weft_op*) {};
        CHECK(weft_recv(&io, connections[0].server.native(), bytes.data(), 1, 0) < 0);
    }
    runtime = make_runtime(1); // destroys the one that was stopped
#if defined(_WIN32)
    DWORD flags;
    CHECK_FALSE(GetHandleInformation(reinterpret_cast<HANDLE>(system), &flags));
#else
    CHECK(fcntl(static_cast<int>(system), F_GETFD) < 0);
#endif
}
