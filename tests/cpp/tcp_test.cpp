// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include <weft.hpp>

using namespace std::chrono_literals;
using weft::buffer;
using weft::const_buffer;
using weft::endpoint;
using weft::task;
using weft::tcp_listener;
using weft::tcp_stream;

namespace {

weft::runtime make_runtime(std::uint32_t workers = 2) {
    weft::runtime_options options;
    options.workers = workers;
    return weft::runtime(options);
}

// Runs a test's coroutine on a runtime. The function stays here until the coroutine has ended, so it may capture.
template <class F>
void run_on(weft::runtime& runtime, F body) {
    weft::sync_wait(runtime.scheduler(), body());
}

template <class F>
void run(F body, std::uint32_t workers = 2) {
    weft::runtime runtime = make_runtime(workers);
    run_on(runtime, std::move(body));
}

// With one worker: when this is over, every other task of the test waits for something.
task<> others_wait() { co_await weft::this_task::yield(); }

// The code with which an operation fails, or WEFT_OK.
template <class Operation>
task<int> code_of(Operation operation) {
    try {
        static_cast<void>(co_await std::move(operation));
    } catch (const weft::error& e) {
        co_return e.code().value();
    }
    co_return WEFT_OK;
}

struct ends {
    tcp_stream client;
    tcp_stream server;
};

task<ends> connected(tcp_listener& listener) {
    auto [server, client] = co_await weft::when_all(listener.accept(), tcp_stream::connect(listener.local_endpoint()));
    co_return ends{std::move(client), std::move(server)};
}

task<ends> connected() {
    tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
    co_return co_await connected(listener);
}

// Receives until the end of the stream.
task<std::string> receive_everything(tcp_stream& stream) {
    std::string all;
    std::array<char, 1000> piece;
    while (const std::size_t count = co_await stream.receive(piece)) {
        all.append(piece.data(), count);
    }
    co_return all;
}

task<> echo(tcp_stream stream) {
    std::array<std::byte, 512> bytes;
    for (;;) {
        const weft::io_result received = co_await stream.try_receive(bytes);
        if (received.count == 0 || !co_await stream.try_send_all(std::span(bytes).first(received.count))) {
            co_return;
        }
    }
}

// Fills both ends' buffers, until a send has to wait.
task<> fill(tcp_stream& stream) {
    const std::vector<std::byte> block(1 << 20);
    while (co_await weft::try_timeout(stream.send_all(block), 50ms)) {
    }
}

} // namespace

TEST_CASE("tcp: a connection, its addresses, and an echo") {
    run([]() -> task<> {
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

TEST_CASE("tcp: IPv6") {
    run([]() -> task<> {
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

TEST_CASE("tcp: what buffers are made from") {
    run([]() -> task<> {
        ends both = co_await connected();
        const std::string text = "text";
        const std::vector<unsigned char> numbers = {'n', 'u', 'm'};
        const std::array<std::byte, 1> one = {std::byte{'1'}};
        co_await both.client.send_all("literal,");
        co_await both.client.send_all(text);
        co_await both.client.send_all(std::string("temporary"));
        co_await both.client.send_all(std::string_view(text).substr(1));
        co_await both.client.send_all(numbers);
        co_await both.client.send_all(one);
        co_await both.client.send_all(std::as_bytes(std::span(text)));
        both.client.shutdown(weft::direction::send);
        char array[8];
        co_await both.server.receive_exactly(array);
        CHECK(std::string_view(array, 8) == "literal,");
        std::vector<std::byte> bytes(4);
        co_await both.server.receive_exactly(bytes);
        CHECK(bytes[3] == std::byte{'t'});
        const std::string rest = co_await receive_everything(both.server);
        CHECK(rest == "temporaryextnum1text");
    });
}

TEST_CASE("tcp: the end of the stream") {
    run([]() -> task<> {
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

TEST_CASE("tcp: gather and scatter") {
    run([]() -> task<> {
        ends both = co_await connected();
        const std::array<const_buffer, 3> out = {const_buffer("head "), const_buffer(""), const_buffer("body")};
        co_await both.client.send_all(out);
        std::string first(4, ' ');
        std::string second(5, ' ');
        const std::array<buffer, 2> in = {buffer(first), buffer(second)};
        co_await both.server.receive_exactly(in);
        CHECK(first + second == "head body");

        const std::size_t sent = co_await both.server.send(std::array<const_buffer, 2>{const_buffer("12"), const_buffer("34")});
        CHECK(sent == 4);
        const std::size_t received = co_await both.client.receive(in);
        CHECK(received == 4);
        CHECK(first == "1234");
        both.server.close();
        const weft::io_result end = co_await both.client.try_receive_exactly(in);
        CHECK(end.status == WEFT_EOF);

        const std::vector<const_buffer> many(WEFT_BUFFERS_MAX + 1, const_buffer("x"));
        const int too_many = co_await code_of(both.client.send_all(many));
        CHECK(too_many == WEFT_EINVAL);
        const int none = co_await code_of(both.client.receive(std::span<const buffer>()));
        CHECK(none == WEFT_EINVAL);
    });
}

TEST_CASE("tcp: as many pieces as there may be, more than the system takes at once") {
    run([]() -> task<> {
        ends both = co_await connected();
        std::vector<std::string> pieces;
        for (int i = 0; i < WEFT_BUFFERS_MAX; ++i) {
            pieces.emplace_back(static_cast<std::size_t>(100000 + i), static_cast<char>('!' + i));
        }
        const std::vector<const_buffer> out(pieces.begin(), pieces.end());
        std::string expected;
        for (const std::string& piece : pieces) {
            expected += piece;
        }
        const auto send = [&]() -> task<> {
            co_await both.client.send_all(out);
            both.client.shutdown(weft::direction::send);
        };
        const auto [nothing, all] = co_await weft::when_all(send(), receive_everything(both.server));
        static_cast<void>(nothing);
        CHECK((all == expected));
    });
}

TEST_CASE("tcp: half close, both ways") {
    run([]() -> task<> {
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
    }, 1);
}

TEST_CASE("tcp: sending to a peer that has gone") {
    run([]() -> task<> {
        ends both = co_await connected();
        both.server.close();
        weft::io_result result;
        for (int i = 0; i < 1000 && result; ++i) { // the reset takes its time
            result = co_await both.client.try_send_all("into the void");
            co_await weft::sleep_for(1ms);
        }
        CHECK((result.status == WEFT_EPIPE || result.status == WEFT_ECONNRESET));
        CHECK((result.os_error == EPIPE || result.os_error == ECONNRESET));
    });
}

TEST_CASE("tcp: close ends those who wait") {
    run([]() -> task<> {
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
    }, 1);
}

TEST_CASE("tcp: one operation per direction") {
    run([]() -> task<> {
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
    }, 1);
}

TEST_CASE("tcp: cancelled before the start") {
    run([]() -> task<> {
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

TEST_CASE("tcp: cancelled while waiting") {
    run([]() -> task<> {
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
    }, 1);
}

TEST_CASE("tcp: cancelled after the end is nothing") {
    run([]() -> task<> {
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

TEST_CASE("tcp: no byte is lost to a cancellation that comes as it arrives") {
    run([]() -> task<> {
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

TEST_CASE("tcp: time-outs over receive, accept and connect") {
    run([]() -> task<> {
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

TEST_CASE("tcp: refused, in use, of no use") {
    run([]() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
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
        CHECK(refused.os_error == ECONNREFUSED);
        try {
            static_cast<void>(co_await tcp_stream::connect(at));
            FAIL("connected to nobody");
        } catch (const weft::error& e) {
            CHECK(e.code() == std::errc::connection_refused);
            CHECK(e.os_error() == ECONNREFUSED);
        }
        const int nowhere = co_await code_of(tcp_stream::connect(endpoint()));
        CHECK(nowhere == WEFT_EINVAL);
        CHECK_THROWS_AS(static_cast<void>(tcp_listener::bind(endpoint())), weft::error);
        CHECK_THROWS_AS(static_cast<void>(tcp_listener::bind(endpoint::ipv4({192, 0, 2, 1}, 0))), weft::error); // not ours
    });
}

TEST_CASE("tcp: outside of workers a runtime must be named") {
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

TEST_CASE("tcp: a task resumes on its own runtime, not on the socket's") {
    weft::runtime home = make_runtime(1);
    weft::runtime other = make_runtime(1);
    tcp_listener listener = tcp_listener::bind(other.scheduler(), endpoint::loopback(0));
    run_on(home, [&]() -> task<> {
        auto [server, client] =
            co_await weft::when_all(listener.accept(), tcp_stream::connect(other.scheduler(), listener.local_endpoint()));
        CHECK(weft::current_scheduler() == home.scheduler());
        std::string word(4, ' ');
        const auto answer = [&]() -> task<> {
            co_await weft::sleep_for(5ms);
            co_await server.send_all("home");
        };
        co_await weft::when_all(client.receive_exactly(word), answer());
        CHECK(word == "home");
        CHECK(weft::current_scheduler() == home.scheduler());
    });
}

TEST_CASE("tcp: objects that were moved from, or never made") {
    run([]() -> task<> {
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

TEST_CASE("tcp: descriptors of others") {
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

TEST_CASE("tcp: without a free descriptor accept waits, and does not spin") {
    weft::runtime runtime = make_runtime();
    run_on(runtime, [&]() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        tcp_stream client = co_await tcp_stream::connect(listener.local_endpoint());
        const int probe = dup(0);
        close(probe);
        rlimit before{};
        getrlimit(RLIMIT_NOFILE, &before);
        rlimit none = before;
        none.rlim_cur = static_cast<rlim_t>(probe); // every number below is taken
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

TEST_CASE("tcp: a runtime that stops ends every wait, and closes every descriptor") {
    weft::runtime runtime = make_runtime();
    std::atomic<int> waiting = 0;
    std::atomic<int> cancelled = 0;
    std::intptr_t system = -1;
    {
        tcp_listener listener = tcp_listener::bind(runtime.scheduler(), endpoint::loopback(0));
        weft::async_scope scope(runtime.scheduler());
        const auto wait = [&](auto operation) -> task<> {
            ++waiting;
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
        for (std::size_t i = 0; i < connections.size(); ++i) {
            scope.spawn(wait(connections[i].server.receive(std::span(bytes).subspan(i, 1))));
        }
        scope.spawn(wait(listener.accept()));
        system = connections[0].server.native_handle();
        while (waiting < 51) {
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
    CHECK(fcntl(static_cast<int>(system), F_GETFD) < 0);
}

TEST_CASE("tcp: ready results in a row cost no stack") {
    run([]() -> task<> {
        ends both = co_await connected();
        std::size_t total = 0;
        for (int i = 0; i < 200000; ++i) {
            total += co_await both.client.receive(std::span<std::byte>()); // length 0 is complete at once
        }
        CHECK(total == 0);
    });
}

TEST_CASE("tcp: a thousand connections at once") {
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
