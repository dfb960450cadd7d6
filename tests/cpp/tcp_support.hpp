// SPDX-License-Identifier: MIT
//
// What the tests of streams and listeners share: connections within the process, and tasks at their ends.
#ifndef TESTS_CPP_TCP_SUPPORT_HPP
#define TESTS_CPP_TCP_SUPPORT_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft.hpp>

#include "support.hpp"

namespace test {

using weft::endpoint;
using weft::task;
using weft::tcp_listener;
using weft::tcp_stream;

inline weft::runtime make_runtime(std::uint32_t workers = 2) {
    weft::runtime_options options;
    options.workers = workers;
    if (workers == 1) options.max_workers = 1; // one op after the other
    return weft::runtime(options);
}

/// Runs a test's coroutine on a runtime. The function stays here until the coroutine has ended, so it may capture.
template <class F>
void run_on(weft::runtime& runtime, F body) {
    weft::sync_wait(runtime.scheduler(), body());
}

/// With one worker: when this is over, every other task of the test waits for something.
inline task<> others_wait() { co_await weft::this_task::yield(); }

/// The code with which an operation fails, or WEFT_OK.
template <class Operation>
task<int> code_of(Operation operation) {
    try {
        static_cast<void>(co_await std::move(operation));
    } catch (const weft::error& e) {
        co_return e.code().value();
    }
    co_return WEFT_OK;
}

/// Both ends of a connection.
struct ends {
    tcp_stream client;
    tcp_stream server;
};

inline task<ends> connected(tcp_listener& listener) {
    auto [server, client] = co_await weft::when_all(listener.accept(), tcp_stream::connect(listener.local_endpoint()));
    co_return ends{std::move(client), std::move(server)};
}

inline task<ends> connected() {
    tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
    co_return co_await connected(listener);
}

/// Receives until the end of the stream.
inline task<std::string> receive_everything(tcp_stream& stream) {
    std::string all;
    std::array<char, 1000> piece;
    while (const std::size_t count = co_await stream.receive(piece)) {
        all.append(piece.data(), count);
    }
    co_return all;
}

/// Sends back what it receives.
inline task<> echo(tcp_stream stream) {
    std::array<std::byte, 512> bytes;
    for (;;) {
        const weft::io_result received = co_await stream.try_receive(bytes);
        if (received.count == 0 || !co_await stream.try_send_all(std::span(bytes).first(received.count))) {
            co_return;
        }
    }
}

/// Fills both ends' buffers, until a send has to wait.
inline task<> fill(tcp_stream& stream) {
    const std::vector<std::byte> block(1 << 20);
    while (co_await weft::try_timeout(stream.send_all(block), 50ms)) {
    }
}

} // namespace test

#endif
