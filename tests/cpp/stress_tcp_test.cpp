// SPDX-License-Identifier: MIT
//
// Cancellation against completion for sockets: what the system has moved, accepted or connected is reported, or it is still
// there for the next one who asks.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>

#include "stress_support.hpp"

using namespace test;

namespace {

// Without waiting.
int receive_now(int system, char *bytes, std::size_t size) {
#if defined(_WIN32)
    unsigned long there = 0;
    return ::ioctlsocket(system, FIONREAD, &there) == 0 && there != 0 ? ::recv(system, bytes, static_cast<int>(size), 0) : -1;
#else
    return static_cast<int>(::recv(system, bytes, size, MSG_DONTWAIT));
#endif
}

int system_of(const tcp_stream &stream) { return static_cast<int>(stream.native_handle()); }

void receive(std::uint32_t workers, std::uint64_t *random) {
    std::optional<ends> both; // lives as long as the runtime does not: made by the first round
    rounds(workers, random, 300, [&](arena &a) -> task<> {
        if (!both) {
            both.emplace(co_await connected());
        }
        const weft::cancellation_source source;
        std::array<char, 4> bytes{};
        const int system = system_of(both->client);
        const auto [got, s, r] = co_await weft::when_all(unless_cancelled(both->server.receive(bytes), source.token()),
                                                         meanwhile(a, 0, [system] { CHECK(::send(system, "ab", 2, 0) == 2); }),
                                                         meanwhile_request(a, 1, source));
        static_cast<void>(s);
        static_cast<void>(r);
        const std::size_t count = got ? *got : 0;
        CHECK(count <= 2);
        std::string left(2 - count, ' ');
        if (count < 2) { // what was not received now is not lost
            co_await both->server.receive_exactly(left);
        }
        CHECK(std::string(bytes.data(), count) + left == "ab");
    });
}

void send(std::uint32_t workers, std::uint64_t *random) {
    std::optional<ends> both;
    const std::string block(1 << 16, 'x');
    rounds(workers, random, 150, [&](arena &a) -> task<> {
        if (!both) { // not TCP, whose timers would be what a full queue waits for
            std::array<int, 2> pair{};
            CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0);
            const int small = 8192;
            CHECK(::setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, reinterpret_cast<const char *>(&small), sizeof small) == 0);
            both.emplace(tcp_stream::from_native(a.home, pair[0]), tcp_stream::from_native(a.home, pair[1]));
        }
        const weft::cancellation_source source;
        std::size_t received = 0;
        const int system = system_of(both->server);
        const auto take_some = [&] {
            std::array<char, 8192> piece;
            received += static_cast<std::size_t>(std::max(receive_now(system, piece.data(), piece.size()), 0));
        };
        const bool everything = a.below(4) == 0; // nothing cancels this one
        const auto drain = [&]() -> task<> {
            std::array<char, 8192> piece;
            while (received < block.size()) {
                received += co_await both->server.receive(piece);
            }
        };
        // Chosen outside of the co_await: of temporaries within, GCC 12 destroys those of both branches.
        task<> takes = everything ? drain() : meanwhile(a, 0, take_some);
        task<> requests = everything ? meanwhile(a, 1, [] {}) : meanwhile_request(a, 1, source);
        const auto [sent, d, r] = co_await weft::when_all(both->client.try_send_all(block) | weft::with_token(source.token()),
                                                          std::move(takes), std::move(requests));
        static_cast<void>(d);
        static_cast<void>(r);
        CHECK(sent.status == (sent.count == block.size() ? WEFT_OK : WEFT_ECANCELED));
        while (received < sent.count) {
            std::array<char, 8192> piece;
            received += co_await both->server.receive(piece);
        }
        CHECK(received == sent.count); // neither less than was reported, nor more
        char byte = 0;
        CHECK(receive_now(system, &byte, 1) < 0);
    });
}

void accept(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 150, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        auto [accepted, client, r] =
            co_await weft::when_all(unless_cancelled(listener.accept(), source.token()),
                                    tcp_stream::connect(listener.local_endpoint()), meanwhile_request(a, 0, source));
        static_cast<void>(r);
        if (!accepted) { // the connection waits for the next accept
            accepted.emplace(co_await listener.accept());
        }
        co_await client.send_all("x");
        std::string byte(1, ' ');
        co_await accepted->receive_exactly(byte);
        CHECK(byte == "x");
    });
}

void connect(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 150, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        auto [client, r] = co_await weft::when_all(
            unless_cancelled(tcp_stream::connect(listener.local_endpoint()), source.token()), meanwhile_request(a, 0, source));
        static_cast<void>(r);
        if (!client) { // closed: whoever accepts it finds the end of the stream
            co_return;
        }
        tcp_stream server = co_await listener.accept();
        co_await client->send_all("x");
        std::string byte(1, ' ');
        co_await server.receive_exactly(byte);
        CHECK(byte == "x");
    });
}

/// Close against receive and cancel; the numbers of the descriptors are used again at once.
void close(std::uint32_t workers, std::uint64_t *random) {
    rounds(workers, random, 150, [](arena &a) -> task<> {
        const weft::cancellation_source source;
        ends both = co_await connected();
        std::string byte(1, ' ');
        const auto [received, c, r] =
            co_await weft::when_all(both.server.try_receive(byte) | weft::with_token(source.token()),
                                    meanwhile(a, 0, [&] { both.server.close(); }), meanwhile_request(a, 1, source));
        static_cast<void>(c);
        static_cast<void>(r);
        CHECK((received.status == WEFT_ECLOSED || received.status == WEFT_ECANCELED || received.status == WEFT_EBADHANDLE));
    });
}

} // namespace

STRESS("stress tcp: receive", receive)
STRESS("stress tcp: send", send)
STRESS("stress tcp: accept", accept)
STRESS("stress tcp: connect", connect)
STRESS("stress tcp: close", close)
