// SPDX-License-Identifier: MIT
//
// Sends back every datagram to whoever sent it, and asks such a server.
//
//     udp_echo 127.0.0.1:7000               (port 0 lets the system choose)
//     udp_echo ask 127.0.0.1:7000 hello
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <weft.hpp>

using namespace std::chrono_literals;

weft::task<> serve(weft::endpoint at) {
    weft::udp_socket socket = weft::udp_socket::bind(at);
    std::printf("listening on %s\n", socket.local_endpoint().to_string().c_str());
    std::fflush(stdout);
    std::array<std::byte, 65536> bytes; // the longest that there is fits
    for (;;) {
        const weft::datagram got = co_await socket.receive_from(bytes);
        co_await socket.try_send_to(got.from, std::span(bytes).first(got.size)); // who cannot be reached is out of luck
    }
}

weft::task<std::string> ask(weft::endpoint server, std::string text) {
    weft::udp_socket socket = weft::udp_socket::bind(server.is_ipv6() ? weft::endpoint::any_ipv6(0) : weft::endpoint::any(0));
    std::array<char, 65536> bytes;
    for (int attempt = 0; attempt < 10; ++attempt) { // the question or the answer may get lost
        co_await socket.send_to(server, text);
        const std::optional<weft::datagram> answer = co_await weft::try_timeout(socket.receive_from(bytes), 500ms);
        if (answer && answer->from == server) {
            co_return std::string(bytes.data(), answer->size);
        }
    }
    throw std::runtime_error("no answer from " + server.to_string());
}

int main(int argc, char** argv) try {
    if (argc == 4 && argv[1] == std::string_view("ask")) {
        std::printf("%s\n", weft::run(ask(weft::endpoint::parse(argv[2]), argv[3])).c_str());
    } else {
        weft::run(serve(weft::endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:7000")));
    }
} catch (const std::exception& e) {
    std::fprintf(stderr, "udp_echo: %s\n", e.what());
    return 1;
}
