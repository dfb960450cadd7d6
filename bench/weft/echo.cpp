// SPDX-License-Identifier: MIT
//
// echo.cpp: weft's echo server, a coroutine per connection.
#include <string_view>

#include "weft_works.hpp"

namespace {

weft::task<> session(weft::tcp_stream stream) {
    char data[4096];
    for (;;) {
        weft::io_result received = co_await stream.try_receive(data);
        if (!received || received.count == 0) co_return;
        if (!co_await stream.try_send_all(std::string_view(data, received.count))) co_return;
    }
}

weft::task<> accept_all(weft::tcp_listener &listener) {
    for (;;)
        weft::spawn(session(co_await listener.accept()));
}

bench::result echo(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    weft::tcp_listener listener = weft::tcp_listener::bind(runtime.scheduler(), weft::endpoint::loopback(0));
    weft::spawn(runtime.scheduler(), accept_all(listener));
    bench_serve_until_told(listener.local_endpoint().port());
    runtime.stop();
    return {};
}

} // namespace

const std::vector<bench::work> echo_works = {{"echo", {1, 2}, echo}};
