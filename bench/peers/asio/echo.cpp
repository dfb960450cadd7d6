// SPDX-License-Identifier: MIT
//
// echo.cpp: Asio's echo server, a coroutine per connection.
#include "http.h"
#include "pool.hpp"

namespace {

using socket_type = asio::basic_stream_socket<asio::ip::tcp, executor>;
using acceptor_type = asio::basic_socket_acceptor<asio::ip::tcp, executor>;

awaitable session(socket_type socket) {
    char data[4096];
    try {
        for (;;) {
            std::size_t n = co_await socket.async_read_some(asio::buffer(data), use_awaitable);
            co_await asio::async_write(socket, asio::buffer(data, n), use_awaitable);
        }
    } catch (const std::system_error &) { // the peer has gone
    }
}

awaitable http_session(socket_type socket) {
    char request[bench_http_bytes];
    try {
        for (;;) {
            co_await asio::async_read(socket, asio::buffer(request), use_awaitable);
            bench_http_handle(request);
            co_await asio::async_write(socket, asio::buffer(bench_http_answer, bench_http_bytes), use_awaitable);
        }
    } catch (const std::system_error &) { // the peer has gone
    }
}

template <class Session>
awaitable accept_all(acceptor_type &acceptor, Session session) {
    for (;;) {
        socket_type socket = co_await acceptor.async_accept(use_awaitable);
        socket.set_option(asio::ip::tcp::no_delay(true));
        asio::co_spawn(acceptor.get_executor(), session(std::move(socket)), asio::detached);
    }
}

template <class Session>
bench::result serve(const bench::options &o, Session session) {
    asio_pool pool(o.workers);
    acceptor_type acceptor(pool.context, {asio::ip::address_v4::loopback(), 0});
    asio::co_spawn(pool.context, accept_all(acceptor, session), asio::detached);
    bench_serve_until_told(acceptor.local_endpoint().port());
    return {};
}

bench::result echo(const bench::options &o) { return serve(o, session); }
bench::result http(const bench::options &o) { return serve(o, http_session); }

} // namespace

const std::vector<bench::work> echo_works = {{"echo", {1, 2}, echo}, {"http", {1, 2}, http}};
