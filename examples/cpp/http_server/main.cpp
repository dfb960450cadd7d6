// SPDX-License-Identifier: MIT
//
// An HTTP/1.1 server: keep-alive, pipelining, time-outs, and an end without a failed request. It shows "/" and, as
// "/stats", what the scheduler has been doing.
//
//     http_server --port 8080 --workers 2
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <weft.hpp>

#include "connection.hpp"
#include "interrupt.hpp"
#include "pages.hpp"

namespace {

struct options {
    unsigned port = 8080;
    unsigned workers = 0;
    unsigned patience_ms = 10000;
    unsigned grace_ms = 1000;
    std::string address = "127.0.0.1";
};

[[noreturn]] void usage() {
    std::fputs("usage: http_server [--address IP] [--port N] [--workers N] [--timeout-ms N] [--grace-ms N]\n"
               "  --address     where to listen; an IPv6 address in brackets; 127.0.0.1\n"
               "  --port        0 lets the system choose; 8080\n"
               "  --workers     threads; 0: one per CPU\n"
               "  --timeout-ms  how long a client may take for one request; 10000\n"
               "  --grace-ms    how long idle connections stay open after SIGINT or SIGTERM; 1000\n",
               stderr);
    std::exit(2);
}

options parse(int argc, char** argv) {
    options result;
    const std::pair<std::string_view, unsigned*> numbers[] = {{"--port", &result.port},
                                                              {"--workers", &result.workers},
                                                              {"--timeout-ms", &result.patience_ms},
                                                              {"--grace-ms", &result.grace_ms}};
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
        bool known = name == "--address" && !value.empty();
        if (known) {
            result.address = value;
        }
        for (const auto& [option, number] : numbers) {
            if (name == option) {
                const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
                known = error == std::errc() && end == value.data() + value.size();
            }
        }
        if (!known || result.port > 65535) {
            usage();
        }
    }
    return result;
}

weft::task<> serve(http::service& service, weft::tcp_stream stream) {
    http::connection connection(service, std::move(stream));
    try {
        co_await connection.serve();
    } catch (const weft::operation_cancelled&) { // the grace is over
    } catch (const std::exception& e) {          // one connection that fails is no reason to end the others
        std::fprintf(stderr, "connection: %s\n", e.what());
    }
}

weft::task<> accept_all(http::service& service, weft::tcp_listener& listener, weft::async_scope& connections) {
    for (;;) {
        weft::stream_result accepted = co_await listener.try_accept();
        if (accepted) {
            connections.spawn(serve(service, std::move(accepted.stream)));
        } else if (accepted.status == WEFT_ECLOSED) {
            co_return;
        } else { // that connection is lost, or the system is short of something: the next one may fare better
            std::fprintf(stderr, "accept: %s\n", weft_error_text(accepted.status));
            co_await weft::sleep_for(std::chrono::milliseconds(10));
        }
    }
}

weft::task<> join(weft::async_scope& connections) { co_await connections.join(); }

// A connection that is being used gets its answers, the last with "Connection: close". When the grace is over the time-out
// cancels the rest, which are idle, and waits for them too.
weft::task<> drain(weft::async_scope& connections, std::chrono::milliseconds grace) {
    co_await weft::try_timeout(join(connections), grace);
}

} // namespace

int main(int argc, char** argv) try {
    const options chosen = parse(argc, argv);
    http::interrupt interrupt;

    weft::runtime_options settings;
    settings.workers = chosen.workers;
    weft::runtime runtime(settings);
    const weft::endpoint at = weft::endpoint::parse(chosen.address + ":" + std::to_string(chosen.port));
    weft::tcp_listener listener = weft::tcp_listener::bind(runtime.scheduler(), at);
    std::printf("listening on http://%s\n", listener.local_endpoint().to_string().c_str());
    std::fflush(stdout);

    http::service service{runtime, std::chrono::milliseconds(chosen.patience_ms)};
    weft::async_scope connections(runtime.scheduler());
    connections.spawn(accept_all(service, listener, connections));

    interrupt.wait();
    std::puts("stopping");
    // In this order: a client that is told to close connects anew, and must not find a listener that is about to go.
    listener.close();
    service.draining = true;
    weft::sync_wait(runtime.scheduler(), drain(connections, std::chrono::milliseconds(chosen.grace_ms)));
    runtime.stop();

    std::printf("requests %llu\n", static_cast<unsigned long long>(service.requests.load()));
    const http::stats_text stats(runtime.stats());
    std::fwrite(stats.view().data(), 1, stats.view().size(), stdout);
} catch (const std::exception& e) {
    std::fprintf(stderr, "http_server: %s\n", e.what());
    return 1;
}
