// SPDX-License-Identifier: MIT
//
// One connection of the server: a coroutine that receives, answers and sends, and one that watches the clock. All requests
// that arrive together are answered together, with one receive and one send, and in the steady state nothing is allocated.
#ifndef EXAMPLES_HTTP_SERVER_CONNECTION_HPP
#define EXAMPLES_HTTP_SERVER_CONNECTION_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <weft.hpp>

#include "pages.hpp"
#include "request_parser.hpp"
#include "response.hpp"

namespace http {

/// What all connections share.
struct service {
    const weft::runtime& runtime;
    std::chrono::milliseconds patience;  // a client may take so long for a request, or to take an answer
    std::atomic<bool> draining = false;  // answer what comes, and then close
    std::atomic<std::uint64_t> requests = 0; // answered on connections that have ended
};

class connection {
public:
    connection(service& service, weft::tcp_stream stream) : service_(service), stream_(std::move(stream)) {}

    /// Serves until the client or the server ends the connection.
    weft::task<> serve() {
        // Whichever ends first, the other is cancelled and joined.
        co_await weft::when_any(converse(), watch());
        service_.requests.fetch_add(requests_, std::memory_order_relaxed);
        if (timed_out_ && parser_.midway()) {
            out_.clear();
            close_after(append_response(out_, 408, "The request took too long\n", false));
            co_await stream_.try_send(out_); // as much as fits: this client has had its time
        }
    }

private:
    using clock = std::chrono::steady_clock;

    static constexpr std::size_t in_bytes = 16 * 1024; // more than a head may have
    static constexpr std::size_t out_bytes = 64 * 1024; // send when more has come together

    enum class outcome { receive, send, close };

    weft::task<> converse() {
        for (std::size_t kept = 0;;) {
            const weft::io_result received = co_await stream_.try_receive(std::span(in_.get() + kept, in_bytes - kept));
            if (received.count == 0) {
                co_return; // the end of the stream, a broken connection, or cancelled
            }
            if (!parser_.midway()) {
                extend_deadline();
            }
            std::string_view input(in_.get(), kept + received.count);
            outcome next;
            do {
                next = answer(input);
                if (!out_.empty()) {
                    extend_deadline();
                    if (!co_await stream_.try_send_all(out_)) {
                        co_return;
                    }
                    out_.clear();
                    extend_deadline();
                }
            } while (next == outcome::send);
            if (next == outcome::close) {
                co_await linger();
                co_return;
            }
            kept = input.size();
            std::memmove(in_.get(), input.data(), kept);
        }
    }

    // Answers the requests at the front of input, and takes them off it.
    outcome answer(std::string_view& input) {
        const bool draining = service_.draining.load(std::memory_order_relaxed);
        std::size_t headers = 0; // where the last answer takes another header
        bool answered = false;
        while (out_.size() < out_bytes) {
            switch (parser_.parse(input)) {
            case request_parser::progress::head:
                route_ = route_of(parser_.current());
                if (parser_.current().expects_continue) {
                    out_.append("HTTP/1.1 100 Continue\r\n\r\n");
                }
                break;
            case request_parser::progress::complete:
                headers = append_page(out_, route_, service_.runtime);
                answered = true;
                ++requests_;
                if (!parser_.current().keep_alive) {
                    return close_after(headers);
                }
                break;
            case request_parser::progress::more:
                if (draining && answered && !parser_.midway()) {
                    return close_after(headers);
                }
                return outcome::receive;
            case request_parser::progress::failed:
                return close_after(append_response(out_, parser_.error_status(), reason(parser_.error_status()), false));
            }
        }
        return outcome::send;
    }

    // Makes the last answer say that it is the last.
    outcome close_after(std::size_t headers) {
        out_.insert(headers, "Connection: close\r\n");
        return outcome::close;
    }

    // Ends the connection without losing the last answer. A socket that is closed while it holds bytes that nobody read
    // resets the connection, and the client may never see what was sent before. So: say that nothing more comes, and read until the
    // client has understood.
    weft::task<> linger() {
        if (stream_.try_shutdown(weft::direction::send) != WEFT_OK) {
            co_return;
        }
        for (weft::io_result received{WEFT_OK, 0, 1}; received.count != 0;) {
            received = co_await stream_.try_receive(std::span(in_.get(), in_bytes));
        }
    }

    // Ends when the deadline is over. Requests only move the deadline, so a busy connection starts no timers.
    weft::task<> watch() {
        for (;;) {
            const auto left = clock::time_point(clock::duration(deadline_.load(std::memory_order_relaxed))) - clock::now();
            if (left <= clock::duration::zero()) {
                timed_out_ = true;
                co_return;
            }
            co_await weft::sleep_for(left);
        }
    }

    void extend_deadline() { deadline_.store(deadline_from_now(), std::memory_order_relaxed); }
    [[nodiscard]] clock::rep deadline_from_now() const {
        return (clock::now() + service_.patience).time_since_epoch().count();
    }

    service& service_;
    weft::tcp_stream stream_;
    request_parser parser_;
    route route_;
    std::unique_ptr<char[]> in_ = std::make_unique_for_overwrite<char[]>(in_bytes);
    std::string out_;
    std::uint64_t requests_ = 0;
    // Relaxed: the watcher needs no more than a recent value.
    std::atomic<clock::rep> deadline_{deadline_from_now()};
    bool timed_out_ = false; // written by the watcher, read after it was joined
};

} // namespace http

#endif
