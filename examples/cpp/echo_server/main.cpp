// SPDX-License-Identifier: MIT
//
// A TCP echo server: one task accepts, and one per connection sends back what it receives.
//
//     echo_server 127.0.0.1:7000      (port 0 lets the system choose)
#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>
#include <utility>

#include <weft.hpp>

// A connection that breaks is an everyday thing: the try_ functions return it instead of throwing.
weft::task<> echo(weft::tcp_stream stream) {
    std::array<std::byte, 4096> bytes;
    for (;;) {
        const weft::io_result received = co_await stream.try_receive(bytes);
        if (received.count == 0) {
            co_return; // the end, or an error
        }
        if (!co_await stream.try_send_all(std::span(bytes).first(received.count))) {
            co_return;
        }
    }
}

weft::task<> serve(weft::endpoint at) {
    weft::tcp_listener listener = weft::tcp_listener::bind(at);
    std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
    std::fflush(stdout);
    weft::async_scope connections;
    while (weft::stream_result accepted = co_await listener.try_accept()) {
        connections.spawn(echo(std::move(accepted.stream)));
    }
    co_await connections.join();
}

int main(int argc, char** argv) try {
    weft::run(serve(weft::endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:7000")));
} catch (const std::exception& e) {
    std::fprintf(stderr, "echo_server: %s\n", e.what());
    return 1;
}
