// SPDX-License-Identifier: MIT
//
// weft/tcp_stream.hpp: one connection, as a move-only owner of its descriptor.
//
// Every operation comes in two forms. receive() throws what went wrong; try_receive() returns it, for programs whose
// connections end all the time. Under timeout() use the first: the second never fails, so there it gives WEFT_ECANCELED when
// the time is over. For all of them:
//   Resumes    on the awaiting task's home; without a suspension when the result is there at once.
//   Cancel     a request of the task's token, and the stop of the runtime, end a waiting operation with operation_cancelled
//              (WEFT_ECANCELED). What the system had moved by then is reported as success and never lost.
//   Single use each call makes one operation; it starts when it is awaited, once.
//   Memory     what a buffer names, and arrays of buffers, must stay until the await ends. In `co_await s.send(f())` it does.
// One operation may receive while another sends; a second one in the same direction gets WEFT_EBUSY. close() and shutdown()
// may be called from any thread at any time; moving and destroying a stream need it for themselves, as with every
// object. A stream that was moved from, or default-made, answers WEFT_EBADHANDLE.
#ifndef WEFT_TCP_STREAM_HPP
#define WEFT_TCP_STREAM_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "c/io.h"
#include "detail/current_runtime.hpp"
#include "detail/descriptor_queries.hpp"
#include "detail/happy_eyeballs.hpp"
#include "detail/tcp_operations.hpp"
#include "endpoint.hpp"
#include "error.hpp"
#include "scheduler.hpp"
#include "task.hpp"

namespace weft {

/// Names a direction of a connection.
enum class direction : int {
    receive = WEFT_SHUTDOWN_RECEIVE,
    send = WEFT_SHUTDOWN_SEND,
    both = WEFT_SHUTDOWN_RECEIVE | WEFT_SHUTDOWN_SEND,
};

struct stream_result;

class tcp_stream {
public:
    tcp_stream() noexcept = default;
    tcp_stream(tcp_stream &&other) noexcept : descriptor_(other.release()) {}
    tcp_stream &operator=(tcp_stream &&other) noexcept
    {
        if (this != &other) {
            close();
            descriptor_ = other.release();
        }
        return *this;
    }
    ~tcp_stream() { close(); }

    /// Connects. The socket belongs to the runtime of the calling worker (on other threads: WEFT_ENOTWORKER), or to the given
    /// one. Cancel: operation_cancelled, and the socket is closed.
    [[nodiscard]] static task<tcp_stream> connect(endpoint to);
    [[nodiscard]] static task<tcp_stream> connect(scheduler on, endpoint to);
    [[nodiscard]] static task<stream_result> try_connect(endpoint to);
    [[nodiscard]] static task<stream_result> try_connect(scheduler on, endpoint to);

    /// Connects to the first of several addresses that answers, as RFC 8305 has it: IPv6 and IPv4 in turn, a new attempt every 250 ms or
    /// when one has failed; the others are cancelled and waited for. The error is that of the first address; none at all:
    /// WEFT_EINVAL. Runtime and cancel as above.
    [[nodiscard]] static task<tcp_stream> connect(std::vector<endpoint> to);
    [[nodiscard]] static task<tcp_stream> connect(scheduler on, std::vector<endpoint> to);

    /// Looks the host up (resolve.hpp, with its errors), and connects to the first of its addresses that answers.
    [[nodiscard]] static task<tcp_stream> connect(std::string host, std::uint16_t port);
    [[nodiscard]] static task<tcp_stream> connect(scheduler on, std::string host, std::uint16_t port);

    /// Takes over a connected stream socket, or another descriptor that can be polled: a pipe, an eventfd.
    /// @throws weft::error  as weft_descriptor_open says; then the descriptor is still the caller's
    [[nodiscard]] static tcp_stream from_native(scheduler on, std::intptr_t system)
    {
        weft_descriptor descriptor{};
        detail::throw_unless_ok(weft_descriptor_open(on.native(), system, &descriptor), "open descriptor");
        return tcp_stream(descriptor);
    }

    /// Takes over a descriptor of the C interface.
    explicit tcp_stream(weft_descriptor descriptor) noexcept : descriptor_(descriptor) {}

    /// Gives it to the C interface, without closing it.
    [[nodiscard]] weft_descriptor release() noexcept { return std::exchange(descriptor_, weft_descriptor{0}); }

    /// Receives what is there, at least one byte; 0 is the end of the stream.
    [[nodiscard]] auto receive(buffer into) noexcept
    {
        return detail::receiving<detail::gives_count>({descriptor_, into, 0});
    }
    [[nodiscard]] auto receive(std::span<const buffer> into) noexcept
    {
        return detail::receiving_many<detail::gives_count>({descriptor_, into, 0});
    }
    [[nodiscard]] auto try_receive(buffer into) noexcept
    {
        return detail::receiving<detail::gives_result>({descriptor_, into, 0});
    }
    [[nodiscard]] auto try_receive(std::span<const buffer> into) noexcept
    {
        return detail::receiving_many<detail::gives_result>({descriptor_, into, 0});
    }

    /// Receives until everything is full. WEFT_EOF if the stream ends first; try_receive_exactly tells how much came.
    [[nodiscard]] auto receive_exactly(buffer into) noexcept
    {
        return detail::receiving<detail::gives_nothing>({descriptor_, into, WEFT_IO_ALL});
    }
    [[nodiscard]] auto receive_exactly(std::span<const buffer> into) noexcept
    {
        return detail::receiving_many<detail::gives_nothing>({descriptor_, into, WEFT_IO_ALL});
    }
    [[nodiscard]] auto try_receive_exactly(buffer into) noexcept
    {
        return detail::receiving<detail::gives_result>({descriptor_, into, WEFT_IO_ALL});
    }
    [[nodiscard]] auto try_receive_exactly(std::span<const buffer> into) noexcept
    {
        return detail::receiving_many<detail::gives_result>({descriptor_, into, WEFT_IO_ALL});
    }

    /// Sends as much as the system takes at once, at least one byte, and says how much.
    [[nodiscard]] auto send(const_buffer from) noexcept
    {
        return detail::sending<detail::gives_count>({descriptor_, from, 0});
    }
    [[nodiscard]] auto send(std::span<const const_buffer> from) noexcept
    {
        return detail::sending_many<detail::gives_count>({descriptor_, from, 0});
    }
    [[nodiscard]] auto try_send(const_buffer from) noexcept
    {
        return detail::sending<detail::gives_result>({descriptor_, from, 0});
    }
    [[nodiscard]] auto try_send(std::span<const const_buffer> from) noexcept
    {
        return detail::sending_many<detail::gives_result>({descriptor_, from, 0});
    }

    /// Sends everything. try_send_all tells how much, if it failed on the way.
    [[nodiscard]] auto send_all(const_buffer from) noexcept
    {
        return detail::sending<detail::gives_nothing>({descriptor_, from, WEFT_IO_ALL});
    }
    [[nodiscard]] auto send_all(std::span<const const_buffer> from) noexcept
    {
        return detail::sending_many<detail::gives_nothing>({descriptor_, from, WEFT_IO_ALL});
    }
    [[nodiscard]] auto try_send_all(const_buffer from) noexcept
    {
        return detail::sending<detail::gives_result>({descriptor_, from, WEFT_IO_ALL});
    }
    [[nodiscard]] auto try_send_all(std::span<const const_buffer> from) noexcept
    {
        return detail::sending_many<detail::gives_result>({descriptor_, from, WEFT_IO_ALL});
    }

    /// Ends one direction, or both. After direction::send the peer reads the end of the stream, and can still answer.
    /// @throws weft::error  WEFT_ENOTCONN when the peer is gone already; WEFT_EBADHANDLE
    void shutdown(direction which)
    {
        detail::throw_unless_ok(weft_shutdown(descriptor_, static_cast<int>(which)), "shutdown");
    }
    /// Returns WEFT_OK or the code that shutdown() throws.
    int try_shutdown(direction which) noexcept { return weft_shutdown(descriptor_, static_cast<int>(which)); }

    /// Closes. Operations that wait end with WEFT_ECLOSED, later ones with WEFT_EBADHANDLE. Twice is allowed. Any thread.
    void close() noexcept { detail::close_descriptor(descriptor_); }

    /// @throws weft::error  as weft_local_endpoint and weft_remote_endpoint say
    [[nodiscard]] endpoint local_endpoint() const { return detail::local_endpoint_of(descriptor_); }
    [[nodiscard]] endpoint remote_endpoint() const { return detail::remote_endpoint_of(descriptor_); }

    /// The descriptor of the C interface. It stays the stream's.
    [[nodiscard]] weft_descriptor native() const noexcept { return descriptor_; }

    /// The system's descriptor, for options that weft does not wrap. It stays the stream's.
    /// @throws weft::error  WEFT_EBADHANDLE
    [[nodiscard]] std::intptr_t native_handle() const { return detail::system_of(descriptor_); }

private:
    weft_descriptor descriptor_{0};
};

/// What try_connect and tcp_listener::try_accept came to.
struct stream_result {
    int status = WEFT_OK; // or one of weft/c/error.h
    int os_error = 0;     // the system's error number behind it, or 0
    tcp_stream stream;    // connected when status is WEFT_OK

    [[nodiscard]] explicit operator bool() const noexcept { return status == WEFT_OK; }
};

namespace detail {

inline task<stream_result> connect_on(weft_runtime runtime, endpoint to)
{
    stream_result result;
    weft_descriptor descriptor{};
    result.status = weft_tcp_open(runtime, to.native().family, &descriptor);
    if (result.status == WEFT_OK) {
        tcp_stream stream(descriptor);
        const io_result connected = co_await connecting<gives_result>({descriptor, to.native()});
        result.status = connected.status;
        result.os_error = connected.os_error;
        if (connected) {
            result.stream = std::move(stream);
        }
    }
    co_return result;
}

inline task<tcp_stream> connect_or_throw(weft_runtime runtime, endpoint to)
{
    stream_result result = co_await connect_on(runtime, to);
    throw_unless_ok(result.status, "connect", result.os_error);
    co_return std::move(result.stream);
}

inline task<tcp_stream> connect_first(weft_runtime runtime, std::vector<endpoint> to)
{
    const auto attempt = [runtime](const endpoint &each) { return connect_on(runtime, each); };
    co_await scheduler(runtime).schedule(); // the race has timers, and may be asked for by a task that lives nowhere
    connect_race<stream_result, decltype(attempt)> race(interleave(to), scheduler(runtime), attempt);
    stream_result first = co_await race.run();
    throw_unless_ok(first.status, "connect", first.os_error);
    co_return std::move(first.stream);
}

inline task<tcp_stream> connect_by_name(weft_runtime runtime, std::string host, std::uint16_t port)
{
    std::vector<endpoint> found = co_await resolve_on(runtime, std::move(host), std::to_string(port), endpoint());
    co_return co_await connect_first(runtime, std::move(found));
}

} // namespace detail

inline task<tcp_stream> tcp_stream::connect(scheduler on, std::vector<endpoint> to)
{
    return detail::connect_first(on.native(), std::move(to));
}

inline task<tcp_stream> tcp_stream::connect(std::vector<endpoint> to)
{
    const weft_runtime here = detail::current_runtime("connect");
    co_return co_await detail::connect_first(here, std::move(to));
}

inline task<tcp_stream> tcp_stream::connect(scheduler on, std::string host, std::uint16_t port)
{
    return detail::connect_by_name(on.native(), std::move(host), port);
}

inline task<tcp_stream> tcp_stream::connect(std::string host, std::uint16_t port)
{
    const weft_runtime here = detail::current_runtime("connect");
    co_return co_await detail::connect_by_name(here, std::move(host), port);
}

inline task<stream_result> tcp_stream::try_connect(scheduler on, endpoint to) { return detail::connect_on(on.native(), to); }

inline task<tcp_stream> tcp_stream::connect(scheduler on, endpoint to) { return detail::connect_or_throw(on.native(), to); }

inline task<stream_result> tcp_stream::try_connect(endpoint to)
{
    co_return co_await detail::connect_on(detail::current_runtime("connect"), to);
}

inline task<tcp_stream> tcp_stream::connect(endpoint to)
{
    co_return co_await detail::connect_or_throw(detail::current_runtime("connect"), to);
}

} // namespace weft

#endif
