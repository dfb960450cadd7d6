// SPDX-License-Identifier: MIT
//
// The operations of datagrams: starts and finishes, as in tcp_operations.hpp, and what they give out.
#ifndef WEFT_DETAIL_UDP_OPERATIONS_HPP
#define WEFT_DETAIL_UDP_OPERATIONS_HPP

#include <cstddef>

#include "../buffer.hpp"
#include "../c/io.h"
#include "../endpoint.hpp"
#include "io_awaiter.hpp"
#include "tcp_operations.hpp"

namespace weft {

/// What was received: the first `size` bytes of the buffer.
struct datagram {
    std::size_t size = 0;
    endpoint from;
    bool truncated = false; // it was longer than the buffer
};

/// What try_receive_from came to.
struct datagram_result {
    int status = WEFT_OK; // or one of weft/c/error.h
    int os_error = 0;     // the system's error number behind it, or 0
    datagram received;    // when status is WEFT_OK

    [[nodiscard]] explicit operator bool() const noexcept { return status == WEFT_OK; }
};

namespace detail {

struct receive_from_start {
    static constexpr const char *doing = "receive from";
    weft_descriptor at;
    buffer into;
    int operator()(weft_datagram *datagram) const noexcept
    {
        return weft_recv_from(datagram, at, into.native()->data, into.native()->length);
    }
};

struct send_to_start {
    static constexpr const char *doing = "send to";
    weft_descriptor at;
    const_buffer from;
    weft_endpoint to;
    int operator()(weft_datagram *datagram) const noexcept
    {
        return weft_send_to(datagram, at, from.native()->data, from.native()->length, &to);
    }
};

[[nodiscard]] inline datagram received_of(const weft_datagram &op) noexcept
{
    return {static_cast<std::size_t>(op.io.count), endpoint(op.peer), op.truncated != 0};
}

struct gives_datagram {
    static datagram finish(const weft_datagram &op, const char *doing)
    {
        throw_unless_ok(op.io.status, doing, op.io.os_error);
        return received_of(op);
    }
};

struct gives_datagram_result {
    static datagram_result finish(const weft_datagram &op, const char *) noexcept
    {
        return {op.io.status, op.io.os_error, op.io.status == WEFT_OK ? received_of(op) : datagram{}};
    }
};

struct sends_datagram {
    static void finish(const weft_datagram &op, const char *doing) { gives_nothing::finish(op.io, doing); }
};

struct tries_datagram {
    static io_result finish(const weft_datagram &op, const char *doing) noexcept { return gives_result::finish(op.io, doing); }
};

inline int cancel_datagram(weft_datagram *datagram) noexcept { return weft_io_cancel(&datagram->io); }

template <class Finish>
using receiving_from = io_operation<receive_from_start, Finish, weft_datagram, cancel_datagram>;
template <class Finish>
using sending_to = io_operation<send_to_start, Finish, weft_datagram, cancel_datagram>;

} // namespace detail

} // namespace weft

#endif
