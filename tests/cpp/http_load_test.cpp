// SPDX-License-Identifier: MIT
//
// The parts of examples/cpp/http_load that compute: its histogram against sorted values, its response reader against cuts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/cpp/http_load/histogram.hpp"
#include "../../examples/cpp/http_load/response_reader.hpp"

namespace {

using progress = http::response_reader::progress;

// "200 404close more", for a stream that arrives cut at one place.
std::string transcript(const std::string& stream, std::size_t cut) {
    http::response_reader reader;
    std::string result;
    std::string kept;
    for (const std::string& piece : {stream.substr(0, cut), stream.substr(cut)}) {
        kept += piece;
        std::string_view input = kept;
        progress made = reader.read(input);
        for (; made == progress::complete; made = reader.read(input)) {
            result += std::to_string(reader.status()) + (reader.closes() ? "close " : " ");
        }
        if (made == progress::failed) {
            return result + "failed";
        }
        kept = std::string(input);
    }
    return result + "more";
}

} // namespace

TEST_CASE("http load: an empty histogram") {
    const http::histogram h;
    CHECK(h.count() == 0);
    CHECK(h.percentile(50) == 0);
    CHECK(h.mean() == 0.0);
}

TEST_CASE("http load: small values are exact, and the ends are kept") {
    http::histogram h;
    for (std::uint64_t v = 1; v <= 200; ++v) {
        h.record(v);
    }
    CHECK(h.percentile(0) == 1);
    CHECK(h.percentile(50) == 100);
    CHECK(h.percentile(99) == 198);
    CHECK(h.percentile(100) == 200);
    CHECK(h.mean() == 100.5);
    h.record(std::numeric_limits<std::uint64_t>::max());
    CHECK(h.percentile(100) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("http load: percentiles are at most 1/128 above the true ones") {
    std::mt19937_64 random(20240607);
    std::vector<std::uint64_t> values;
    http::histogram halves[2];
    for (int i = 0; i < 20000; ++i) {
        values.push_back(random() >> (random() % 60));
        halves[i % 2].record(values.back());
    }
    halves[0].add(halves[1]);
    CHECK(halves[0].count() == values.size());
    std::sort(values.begin(), values.end());
    CHECK(halves[0].largest() == values.back());
    for (const double percent : {1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(percent / 100.0 * static_cast<double>(values.size())));
        const auto exact = static_cast<double>(values[rank - 1]);
        const auto told = static_cast<double>(halves[0].percentile(percent));
        CAPTURE(percent);
        CHECK(told >= exact);
        CHECK(told <= exact + exact / 128);
    }
}

TEST_CASE("http load: responses, cut anywhere") {
    const std::string ok = "HTTP/1.1 200 OK\r\nServer: x\r\nCONTENT-LENGTH:  5\r\n\r\n\r\n\r\nx";
    const std::string gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const std::string stream = ok + "HTTP/1.1 204 No Content\r\n\r\n" + ok + gone;
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
        CAPTURE(cut);
        CHECK(transcript(stream, cut) == "200 204 200 404close more");
    }
    CHECK(transcript(ok + "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 9) == "200 200close more");
    for (const char* bad : {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n"}) {
        CAPTURE(bad);
        CHECK(transcript(ok + bad, 3) == "200 failed");
    }
}
