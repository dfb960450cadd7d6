// SPDX-License-Identifier: MIT
//
// A load client for HTTP/1.1: so many connections, so long, and then requests per second, latencies and errors.
//
//     http_load --connections 64 --duration 5 127.0.0.1:8080/
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft.hpp>

#include "client.hpp"

namespace {

struct options {
    unsigned connections = 64;
    unsigned duration_s = 5;
    unsigned pipeline = 1;
    unsigned workers = 0;
    std::string host; // with the port
    std::string path = "/";
};

[[noreturn]] void usage() {
    std::fputs("usage: http_load [--connections N] [--duration SECONDS] [--pipeline N] [--workers N] HOST:PORT[/PATH]\n"
               "  --connections  kept open at once; 64\n"
               "  --duration     5\n"
               "  --pipeline     requests that are sent together on a connection; 1\n"
               "  --workers      threads; 0: one per CPU\n",
               stderr);
    std::exit(2);
}

options parse(int argc, char** argv) {
    options result;
    const std::pair<std::string_view, unsigned*> numbers[] = {{"--connections", &result.connections},
                                                              {"--duration", &result.duration_s},
                                                              {"--pipeline", &result.pipeline},
                                                              {"--workers", &result.workers}};
    int i = 1;
    for (; i + 1 < argc; i += 2) {
        bool known = false;
        for (const auto& [option, number] : numbers) {
            if (argv[i] == option) {
                const std::string_view value = argv[i + 1];
                const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
                known = error == std::errc() && end == value.data() + value.size();
            }
        }
        if (!known) {
            usage();
        }
    }
    std::string_view target = i < argc ? argv[i] : "";
    if (constexpr std::string_view scheme = "http://"; target.starts_with(scheme)) {
        target = target.substr(scheme.size());
    }
    const std::size_t slash = target.find('/');
    result.host = target.substr(0, slash);
    if (slash != target.npos) {
        result.path = target.substr(slash);
    }
    if (result.host.empty() || result.connections == 0 || result.pipeline == 0 || result.pipeline > 1000) {
        usage();
    }
    return result;
}

weft::task<weft::endpoint> resolve(std::string host_and_port) {
    if (const auto numeric = weft::endpoint::try_parse(host_and_port)) {
        co_return *numeric;
    }
    const std::size_t colon = host_and_port.rfind(':');
    if (colon == std::string::npos) {
        throw std::runtime_error("no port in " + host_and_port);
    }
    const std::vector<weft::endpoint> found =
        co_await weft::resolve(host_and_port.substr(0, colon), host_and_port.substr(colon + 1));
    for (const weft::endpoint& one : found) {
        if (one.native().family == WEFT_IPV4) { // the server's default
            co_return one;
        }
    }
    co_return found.front();
}

weft::task<> run_all(http::load& load, unsigned connections) {
    std::vector<http::client> clients;
    for (unsigned i = 0; i < connections; ++i) {
        clients.emplace_back(load);
    }
    std::vector<weft::task<>> running;
    for (http::client& client : clients) {
        running.push_back(client.run());
    }
    co_await weft::when_all(std::move(running));
}

// Prints what was measured; the exit code tells whether all went well.
int report(const options& chosen, const http::load& load, double seconds, const weft::runtime_stats& stats) {
    http::tally sum;
    for (const http::tally& one : load.tallies) {
        sum.add(one);
    }
    const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    const auto microseconds = [&sum](double percent) { return static_cast<double>(sum.latencies_ns.percentile(percent)) / 1e3; };
    std::printf("%u connections, pipeline %u, %.1f s, %llu workers\n", chosen.connections, chosen.pipeline, seconds, number(stats.workers));
    std::printf("requests/s  %.0f\n", static_cast<double>(sum.ok + sum.other_status) / seconds);
    std::printf("responses   %llu (2xx %llu, other %llu), %.1f MB/s\n", number(sum.ok + sum.other_status), number(sum.ok),
                number(sum.other_status), static_cast<double>(sum.bytes) / seconds / 1e6);
    std::printf("latency us  p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f\n", microseconds(50), microseconds(90),
                microseconds(99), microseconds(99.9), static_cast<double>(sum.latencies_ns.largest()) / 1e3);
    std::printf("errors      connect %llu, send %llu, receive %llu, malformed %llu, unanswered %llu\n", number(load.refused.load()),
                number(sum.failed_sends), number(sum.failed_receives), number(sum.malformed), number(sum.unanswered));
    std::printf("scheduler   ops %llu, crossings %llu, steals %llu, parks %llu, wakes %llu, I/O at once %llu of %llu\n",
                number(stats.ops_run), number(stats.crossings), number(stats.steals), number(stats.parks), number(stats.wakes),
                number(stats.io_immediate), number(stats.io_started));
    return sum.ok != 0 && sum.other_status == 0 && sum.failed() == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) try {
    const options chosen = parse(argc, argv);
    weft::runtime_options settings;
    settings.workers = chosen.workers;
    weft::runtime runtime(settings);

    http::load load;
    load.target = weft::sync_wait(runtime.scheduler(), resolve(chosen.host));
    load.depth = chosen.pipeline;
    load.tallies.resize(runtime.stats().max_workers);
    for (unsigned i = 0; i < chosen.pipeline; ++i) {
        load.batch += "GET " + chosen.path + " HTTP/1.1\r\nHost: " + chosen.host + "\r\n\r\n";
    }
    const auto begin = std::chrono::steady_clock::now();
    load.end = begin + std::chrono::seconds(chosen.duration_s);
    // A server that hangs must not hang us: what has not ended a little later is cancelled.
    const bool in_time = weft::sync_wait(runtime.scheduler(), weft::try_timeout(run_all(load, chosen.connections),
                                                                               std::chrono::seconds(chosen.duration_s + 5)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const int code = report(chosen, load, took.count(), runtime.stats());
    if (!in_time) {
        std::puts("the server did not answer in time");
    }
    return in_time ? code : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "http_load: %s\n", e.what());
    return 1;
}
