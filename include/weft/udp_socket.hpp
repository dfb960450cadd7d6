// SPDX-License-Identifier: MIT
//
// weft/udp_socket.hpp: a socket for datagrams, as a move-only owner of its descriptor.
//
//     weft::udp_socket socket = weft::udp_socket::bind(weft::endpoint::loopback(5353));
//     std::array<std::byte, 1500> room;
//     const weft::datagram got = co_await socket.receive_from(room);
//     co_await socket.send_to(got.from, std::span(room).first(got.size));
//
// A datagram comes whole or not at all, or twice, or in another order; nothing tells that it was lost. The operations come in two forms, as in
// tcp_stream.hpp: receive_from() throws what went wrong, try_receive_from() returns it. For all of them:
//   Resumes    on the awaiting task's home; without a suspension when the result is there at once.
//   Cancel     a request of the task's token, and the stop of the runtime, end a waiting operation with operation_cancelled
//              (WEFT_ECANCELED). A datagram that had come by then is reported, and never lost.
//   Single use each call makes one operation; it starts when it is awaited, once.
//   Memory     what a buffer names must stay until the await ends. In `co_await s.send_to(to, f())` it does.
// One operation may receive while another sends; a second one in the same direction gets WEFT_EBUSY. close() may be called from any thread at any
// time. A socket that was moved from, or default-made, answers WEFT_EBADHANDLE.
#ifndef WEFT_UDP_SOCKET_HPP
#define WEFT_UDP_SOCKET_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "buffer.hpp"
#include "c/io.h"
#include "detail/current_runtime.hpp"
#include "detail/descriptor_queries.hpp"
#include "detail/udp_operations.hpp"
#include "endpoint.hpp"
#include "error.hpp"
#include "scheduler.hpp"

namespace weft {

class udp_socket {
public:
    udp_socket() noexcept = default;
    udp_socket(udp_socket &&other) noexcept : descriptor_(other.release()) {}
    udp_socket &operator=(udp_socket &&other) noexcept
    {
        if (this != &other) {
            close();
            descriptor_ = other.release();
        }
        return *this;
    }
    ~udp_socket() { close(); }

    /// Makes a socket on an address of this host; port 0 lets the system choose, as for a socket that asks others (endpoint::any(0)). It belongs to the
    /// runtime of the calling worker (on other threads: WEFT_ENOTWORKER), or to the given one.
    /// @throws weft::error  errc::address_in_use, address_not_available, access_denied; as weft_udp_open says
    [[nodiscard]] static udp_socket bind(const endpoint &at) { return open(detail::current_runtime("bind"), at); }
    [[nodiscard]] static udp_socket bind(scheduler on, const endpoint &at) { return open(on.native(), at); }

    /// Takes over a descriptor of the C interface.
    explicit udp_socket(weft_descriptor descriptor) noexcept : descriptor_(descriptor) {}

    /// Gives it to the C interface, without closing it.
    [[nodiscard]] weft_descriptor release() noexcept { return std::exchange(descriptor_, weft_descriptor{0}); }

    /// Receives one datagram. Of one that is longer than the buffer the rest is lost, and `truncated` says so.
    [[nodiscard]] auto receive_from(buffer into) noexcept { return detail::receiving_from<detail::gives_datagram>({descriptor_, into}); }
    [[nodiscard]] auto try_receive_from(buffer into) noexcept
    {
        return detail::receiving_from<detail::gives_datagram_result>({descriptor_, into});
    }

    /// Sends one datagram, all of it or nothing. errc::invalid_argument: it is longer than one can be.
    [[nodiscard]] auto send_to(const endpoint &to, const_buffer from) noexcept
    {
        return detail::sending_to<detail::sends_datagram>({descriptor_, from, to.native()});
    }
    [[nodiscard]] auto try_send_to(const endpoint &to, const_buffer from) noexcept
    {
        return detail::sending_to<detail::tries_datagram>({descriptor_, from, to.native()});
    }

    /// From now on the socket receives from this peer alone, and send() sends there. Nothing is sent, and nobody need be there: on Linux a later operation says so
    /// (errc::connection_refused), on Windows none does.
    /// @throws weft::error  as weft_udp_connect says
    void connect(const endpoint &peer)
    {
        const weft_endpoint raw = peer.native();
        detail::throw_unless_ok(weft_udp_connect(descriptor_, &raw), "connect");
    }

    /// Sends one datagram, which is not empty, to the peer of connect(). An empty one takes send_to.
    [[nodiscard]] auto send(const_buffer from) noexcept { return detail::sending<detail::gives_nothing>({descriptor_, from, 0}); }
    [[nodiscard]] auto try_send(const_buffer from) noexcept { return detail::sending<detail::gives_result>({descriptor_, from, 0}); }

    /// Closes. Operations that wait end with WEFT_ECLOSED, later ones with WEFT_EBADHANDLE. Twice is allowed. Any thread.
    void close() noexcept { detail::close_descriptor(descriptor_); }

    /// @throws weft::error  as weft_local_endpoint and weft_remote_endpoint say; remote: WEFT_ENOTCONN before connect()
    [[nodiscard]] endpoint local_endpoint() const { return detail::local_endpoint_of(descriptor_); }
    [[nodiscard]] endpoint remote_endpoint() const { return detail::remote_endpoint_of(descriptor_); }

    /// The descriptor of the C interface. It stays the socket's.
    [[nodiscard]] weft_descriptor native() const noexcept { return descriptor_; }

    /// The system's descriptor, for options that weft does not wrap: broadcast, multicast, sizes of buffers. It stays the socket's.
    /// @throws weft::error  WEFT_EBADHANDLE
    [[nodiscard]] std::intptr_t native_handle() const { return detail::system_of(descriptor_); }

private:
    [[nodiscard]] static udp_socket open(weft_runtime runtime, const endpoint &at)
    {
        weft_descriptor descriptor{};
        const weft_endpoint raw = at.native();
        const int status = weft_udp_open(runtime, &raw, &descriptor);
        if (status != WEFT_OK) {
            detail::throw_unless_ok(status, ("bind to " + at.to_string()).c_str());
        }
        return udp_socket(descriptor);
    }

    weft_descriptor descriptor_{0};
};

} // namespace weft

#endif
