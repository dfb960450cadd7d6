// SPDX-License-Identifier: MIT
//
// weft/tcp_listener.hpp: a socket that listens, as a move-only owner of its descriptor.
//
// close() may be called from any thread at any time; accept ends with WEFT_ECLOSED then. One task accepts at a time: a second
// one gets WEFT_EBUSY. A listener that was moved from, or default-made, answers WEFT_EBADHANDLE.
#ifndef WEFT_TCP_LISTENER_HPP
#define WEFT_TCP_LISTENER_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "c/io.h"
#include "detail/descriptor_queries.hpp"
#include "detail/tcp_operations.hpp"
#include "endpoint.hpp"
#include "error.hpp"
#include "scheduler.hpp"
#include "sleep.hpp"
#include "task.hpp"
#include "tcp_stream.hpp"

namespace weft {

namespace detail {

struct gives_stream {
    static stream_result finish(const weft_io &io, const char *) noexcept
    {
        return {io.status, io.os_error, tcp_stream(io.status == WEFT_OK ? io.accepted : weft_descriptor{0})};
    }
};

// When no descriptor is free the connection goes on waiting in the system's queue, and the listener goes on being ready: to
// try again at once would be a busy loop until somebody else closes something.
inline constexpr std::chrono::milliseconds accept_pause_first{5};
inline constexpr std::chrono::milliseconds accept_pause_longest{200};

inline task<stream_result> accept_from(weft_descriptor listener)
{
    for (auto pause = accept_pause_first;; pause = std::min(pause * 2, accept_pause_longest)) {
        stream_result result = co_await accepting<gives_stream>({listener});
        if (result.status != WEFT_ELIMIT) {
            co_return result;
        }
        try {
            co_await sleep_for(pause);
        } catch (const error &e) { // cancelled, or the runtime has stopped
            result.status = e.code().value();
            co_return result;
        }
    }
}

inline task<tcp_stream> accept_or_throw(weft_descriptor listener)
{
    stream_result result = co_await accept_from(listener);
    throw_unless_ok(result.status, accept_start::doing, result.os_error);
    co_return std::move(result.stream);
}

} // namespace detail

class tcp_listener {
public:
    tcp_listener() noexcept = default;
    tcp_listener(tcp_listener &&other) noexcept : descriptor_(other.release()) {}
    tcp_listener &operator=(tcp_listener &&other) noexcept
    {
        if (this != &other) {
            close();
            descriptor_ = other.release();
        }
        return *this;
    }
    ~tcp_listener() { close(); }

    /// Listens at an address. Its connections belong to the same runtime; without one it is the calling worker's (else
    /// WEFT_ENOTWORKER).
    /// @param at       port 0 lets the system choose: local_endpoint() tells
    /// @param backlog  how many connections may wait to be accepted; 0: as many as the system allows
    /// @throws weft::error  as weft_tcp_listen says
    [[nodiscard]] static tcp_listener bind(scheduler on, const endpoint &at, int backlog = 0)
    {
        return tcp_listener(open(on.native(), at, backlog));
    }
    [[nodiscard]] static tcp_listener bind(const endpoint &at, int backlog = 0)
    {
        return tcp_listener(open(detail::current_runtime("listen"), at, backlog));
    }

    /// Takes over a socket that listens, as systemd hands it out.
    /// @throws weft::error  as weft_descriptor_open says; then the descriptor is still the caller's
    [[nodiscard]] static tcp_listener from_native(scheduler on, std::intptr_t system)
    {
        weft_descriptor descriptor{};
        detail::throw_unless_ok(weft_descriptor_open(on.native(), system, &descriptor), "open descriptor");
        return tcp_listener(descriptor);
    }

    /// Takes over a descriptor of the C interface.
    explicit tcp_listener(weft_descriptor descriptor) noexcept : descriptor_(descriptor) {}

    /// Gives it to the C interface, without closing it.
    [[nodiscard]] weft_descriptor release() noexcept { return std::exchange(descriptor_, weft_descriptor{0}); }

    /// Waits for a connection. When the process has no descriptor left, it sleeps a little (5 ms, and twice as long each time,
    /// up to 200 ms) and tries again: the connection waits meanwhile.
    /// Resumes on the awaiting task's home. Cancel: operation_cancelled (WEFT_ECANCELED); a connection that had been accepted by then
    /// is returned, not lost. Single use. The task does not refer to the listener object, which may be moved meanwhile.
    [[nodiscard]] task<tcp_stream> accept() { return detail::accept_or_throw(descriptor_); }

    /// accept() that returns what it would throw.
    [[nodiscard]] task<stream_result> try_accept() { return detail::accept_from(descriptor_); }

    /// Stops listening, and refuses the connections that nobody accepted. Twice is allowed. Any thread.
    void close() noexcept { detail::close_descriptor(descriptor_); }

    /// @throws weft::error  as weft_local_endpoint says
    [[nodiscard]] endpoint local_endpoint() const { return detail::local_endpoint_of(descriptor_); }

    /// The descriptor of the C interface. It stays the listener's.
    [[nodiscard]] weft_descriptor native() const noexcept { return descriptor_; }

    /// The system's descriptor, for options that weft does not wrap. It stays the listener's.
    /// @throws weft::error  WEFT_EBADHANDLE
    [[nodiscard]] std::intptr_t native_handle() const { return detail::system_of(descriptor_); }

private:
    [[nodiscard]] static weft_descriptor open(weft_runtime runtime, const endpoint &at, int backlog)
    {
        weft_descriptor descriptor{};
        const int status = weft_tcp_listen(runtime, &at.native(), backlog, &descriptor);
        if (status != WEFT_OK) {
            throw_error(status, ("listen at " + at.to_string()).c_str());
        }
        return descriptor;
    }

    weft_descriptor descriptor_{0};
};

} // namespace weft

#endif
