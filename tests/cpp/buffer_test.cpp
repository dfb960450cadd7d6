// SPDX-License-Identifier: MIT
//
// What buffers are made from, and the operations on several at once.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <weft.hpp>

#include "tcp_support.hpp"

using namespace test;
using weft::buffer;
using weft::const_buffer;

TEST_CASE("buffer: what buffers are made from") {
    test::run(2, []() -> task<> {
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

TEST_CASE("buffer: gather and scatter") {
    test::run(2, []() -> task<> {
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

TEST_CASE("buffer: as many pieces as there may be, more than the system takes at once") {
    test::run(2, []() -> task<> {
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
