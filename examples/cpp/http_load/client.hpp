// SPDX-License-Identifier: MIT
//
// One connection of the load client, in a closed loop: send a batch of requests, wait for all answers, send the next. A latency is
// the time from the send of a batch to the arrival of the answer.
#ifndef EXAMPLES_HTTP_LOAD_CLIENT_HPP
#define EXAMPLES_HTTP_LOAD_CLIENT_HPP

#include <array>
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
#include <vector>

#include <weft.hpp>

#include "histogram.hpp"
#include "response_reader.hpp"

namespace http {

/// What one worker has seen. A coroutine runs on one worker at a time, so between two awaits nobody else touches these.
struct alignas(128) tally {
    histogram latencies_ns;
    std::uint64_t ok = 0;           // status 2xx
    std::uint64_t other_status = 0;
    std::uint64_t bytes = 0;        // received
    std::uint64_t unanswered = 0;   // requests that were sent behind the answer with which the server closed
    std::uint64_t failed_sends = 0;
    std::uint64_t failed_receives = 0; // or connections that ended in the middle
    std::uint64_t malformed = 0;

    void add(const tally& other) {
        latencies_ns.add(other.latencies_ns);
        ok += other.ok;
        other_status += other.other_status;
        bytes += other.bytes;
        unanswered += other.unanswered;
        failed_sends += other.failed_sends;
        failed_receives += other.failed_receives;
        malformed += other.malformed;
    }

    [[nodiscard]] std::uint64_t failed() const { return failed_sends + failed_receives + malformed; }
};

/// What all connections share.
struct load {
    weft::endpoint target;
    std::string batch; // the requests that are sent at once
    std::uint64_t depth = 1;
    std::chrono::steady_clock::time_point end;
    std::vector<tally> tallies;            // one per worker
    std::atomic<std::uint64_t> refused = 0; // connections that could not be made

    [[nodiscard]] tally& here() { return tallies[static_cast<std::size_t>(weft_worker_index())]; }
};

class client {
public:
    explicit client(load& load) : load_(load) {}

    /// Sends and receives until the time is over, over a new connection whenever the server closes one. Gives up when it cannot connect.
    weft::task<> run() {
        while (clock::now() < load_.end) {
            weft::stream_result connected = co_await weft::tcp_stream::try_connect(load_.target);
            if (!connected) {
                load_.refused.fetch_add(1, std::memory_order_relaxed);
                co_return;
            }
            reader_ = {};
            kept_ = 0;
            weft::tcp_stream stream = std::move(connected.stream);
            outcome last;
            do {
                last = co_await exchange(stream);
            } while (last == outcome::answered && clock::now() < load_.end);
            if (last == outcome::failed) {
                co_await weft::sleep_for(std::chrono::milliseconds(10)); // do not hammer what is broken
            }
        }
    }

private:
    using clock = std::chrono::steady_clock;

    enum class outcome { answered, closed, failed };

    // One batch.
    weft::task<outcome> exchange(weft::tcp_stream& stream) {
        const auto sent_at = clock::now();
        if (!co_await stream.try_send_all(load_.batch)) {
            ++load_.here().failed_sends;
            co_return outcome::failed;
        }
        for (std::uint64_t answered = 0; answered < load_.depth;) {
            const weft::io_result received = co_await stream.try_receive(std::span(in_.get() + kept_, in_bytes - kept_));
            tally& here = load_.here();
            if (received.count == 0) {
                ++here.failed_receives;
                co_return outcome::failed;
            }
            here.bytes += received.count;
            const auto latency = static_cast<std::uint64_t>(std::chrono::nanoseconds(clock::now() - sent_at).count());
            std::string_view input(in_.get(), kept_ + received.count);
            auto progress = reader_.read(input);
            for (; progress == response_reader::progress::complete; progress = reader_.read(input)) {
                here.latencies_ns.record(latency);
                ++(reader_.status() / 100 == 2 ? here.ok : here.other_status);
                ++answered;
                if (reader_.closes()) {
                    here.unanswered += load_.depth - answered;
                    co_return outcome::closed;
                }
            }
            kept_ = input.size();
            if (progress == response_reader::progress::failed || kept_ == in_bytes || answered > load_.depth) {
                ++here.malformed; // no HTTP, a head that fills everything, or an answer that nobody asked for
                co_return outcome::failed;
            }
            std::memmove(in_.get(), input.data(), kept_);
        }
        co_return outcome::answered;
    }

    static constexpr std::size_t in_bytes = 16 * 1024;

    load& load_;
    response_reader reader_;
    std::unique_ptr<char[]> in_ = std::make_unique_for_overwrite<char[]>(in_bytes);
    std::size_t kept_ = 0;
};

} // namespace http

#endif
