// SPDX-License-Identifier: MIT
//
// The starts and finishes that io_awaiter.hpp asks for, one start per C function, one finish per form of result.
#ifndef WEFT_DETAIL_TCP_OPERATIONS_HPP
#define WEFT_DETAIL_TCP_OPERATIONS_HPP

#include <cstddef>
#include <cstdint>
#include <span>

#include "../buffer.hpp"
#include "../c/io.h"
#include "../error.hpp"
#include "io_awaiter.hpp"

namespace weft {

/// What an operation of the try_ family came to.
struct io_result {
    int status = WEFT_OK;  // or one of weft/c/error.h
    int os_error = 0;      // the system's error number behind it, or 0
    std::size_t count = 0; // bytes that were moved, also when status is an error

    [[nodiscard]] explicit operator bool() const noexcept { return status == WEFT_OK; }
};

namespace detail {

// A time-out of the system is no weft::timed_out: that one means timeout().
inline void throw_unless_ok(int status, const char *doing, int os_error = 0)
{
    if (status == WEFT_ETIMEDOUT) {
        throw error(status, doing, os_error);
    }
    if (status != WEFT_OK) {
        throw_error(status, doing, os_error);
    }
}

// One too many to be accepted, rather than a number that lost its upper half.
[[nodiscard]] constexpr std::uint32_t buffer_count(std::size_t size) noexcept
{
    return size > WEFT_BUFFERS_MAX ? WEFT_BUFFERS_MAX + 1U : static_cast<std::uint32_t>(size);
}

struct receive_start {
    static constexpr const char *doing = "receive";
    weft_descriptor from;
    buffer into;
    std::uint32_t flags;
    int operator()(weft_io *io) const noexcept
    {
        return weft_recv(io, from, into.native()->data, into.native()->length, flags);
    }
};

struct receive_many_start {
    static constexpr const char *doing = "receive";
    weft_descriptor from;
    std::span<const buffer> into;
    std::uint32_t flags;
    int operator()(weft_io *io) const noexcept
    {
        return weft_recv_buffers(io, from, into.empty() ? nullptr : into.front().native(), buffer_count(into.size()), flags);
    }
};

struct send_start {
    static constexpr const char *doing = "send";
    weft_descriptor to;
    const_buffer from;
    std::uint32_t flags;
    int operator()(weft_io *io) const noexcept
    {
        return weft_send(io, to, from.native()->data, from.native()->length, flags);
    }
};

struct send_many_start {
    static constexpr const char *doing = "send";
    weft_descriptor to;
    std::span<const const_buffer> from;
    std::uint32_t flags;
    int operator()(weft_io *io) const noexcept
    {
        return weft_send_buffers(io, to, from.empty() ? nullptr : from.front().native(), buffer_count(from.size()), flags);
    }
};

struct connect_start {
    static constexpr const char *doing = "connect";
    weft_descriptor socket;
    weft_endpoint to;
    int operator()(weft_io *io) const noexcept { return weft_connect(io, socket, &to); }
};

struct accept_start {
    static constexpr const char *doing = "accept";
    weft_descriptor listener;
    int operator()(weft_io *io) const noexcept { return weft_accept(io, listener); }
};

struct gives_count {
    static std::size_t finish(const weft_io &io, const char *doing)
    {
        throw_unless_ok(io.status, doing, io.os_error);
        return static_cast<std::size_t>(io.count);
    }
};

struct gives_nothing {
    static void finish(const weft_io &io, const char *doing) { throw_unless_ok(io.status, doing, io.os_error); }
};

struct gives_result {
    static io_result finish(const weft_io &io, const char *) noexcept
    {
        return {io.status, io.os_error, static_cast<std::size_t>(io.count)};
    }
};

template <class Finish>
using receiving = io_operation<receive_start, Finish>;
template <class Finish>
using receiving_many = io_operation<receive_many_start, Finish>;
template <class Finish>
using sending = io_operation<send_start, Finish>;
template <class Finish>
using sending_many = io_operation<send_many_start, Finish>;
template <class Finish>
using connecting = io_operation<connect_start, Finish>;
template <class Finish>
using accepting = io_operation<accept_start, Finish>;

} // namespace detail

} // namespace weft

#endif
