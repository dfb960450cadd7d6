// SPDX-License-Identifier: MIT
//
// echo.cpp: weft's echo server, a coroutine per connection.
#include <string_view>

#include "http.h"
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

weft::task<> http_session(weft::tcp_stream stream) {
    char request[bench_http_bytes];
    for (;;) {
        weft::io_result received = co_await stream.try_receive_exactly(request);
        if (!received || received.count != bench_http_bytes) co_return;
        bench_http_handle(request);
        if (!co_await stream.try_send_all(std::string_view(bench_http_answer, bench_http_bytes))) co_return;
    }
}

template <class Session>
weft::task<> accept_all(weft::tcp_listener &listener, Session session) {
    for (;;)
        weft::spawn(session(co_await listener.accept()));
}

template <class Session>
bench::result serve(const bench::options &o, takeover replaced, Session session) {
    weft::runtime runtime = start_runtime(o, replaced);
    weft::tcp_listener listener = weft::tcp_listener::bind(runtime.scheduler(), weft::endpoint::loopback(0));
    weft::spawn(runtime.scheduler(), accept_all(listener, session));
    bench_serve_until_told(listener.local_endpoint().port());
    runtime.stop();
    return {};
}

bench::result echo(const bench::options &o) { return serve(o, takeover::off, session); }
bench::result http(const bench::options &o) { return serve(o, takeover::on, http_session); }

} // namespace

const std::vector<bench::work> echo_works = {{"echo", {1, 2}, echo}, {"http", {1, 2}, http}};
