// SPDX-License-Identifier: MIT
//
// weft/resolve.hpp: looking names up.
//
//     for (const weft::endpoint &e : co_await weft::resolve("example.org", "https")) { ... }
#ifndef WEFT_RESOLVE_HPP
#define WEFT_RESOLVE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "c/resolve.h"
#include "detail/io_awaiter.hpp"
#include "detail/tcp_operations.hpp"
#include "endpoint.hpp"
#include "error.hpp"
#include "scheduler.hpp"
#include "task.hpp"

namespace weft {

namespace detail {

struct resolve_start {
    static constexpr const char *doing = "resolve";
    weft_runtime runtime;
    const char *host;
    const char *service;
    const endpoint *server;
    std::span<weft_endpoint> into;
    int operator()(weft_resolve_op *op) const noexcept {
        op->endpoints = into.data();
        op->capacity = static_cast<std::uint32_t>(into.size());
        op->server = *server ? &server->native() : nullptr;
        return weft_resolve(runtime, op, host, service, WEFT_NEVER);
    }
};

struct gives_address_count {
    static std::size_t finish(const weft_resolve_op &op, const char *doing) {
        throw_unless_ok(op.status, doing);
        return op.count;
    }
};

using resolving = io_operation<resolve_start, gives_address_count, weft_resolve_op, weft_resolve_cancel>;

inline task<std::vector<endpoint>> resolve_on(weft_runtime runtime, std::string host, std::string service, endpoint server) {
    std::vector<weft_endpoint> raw(16);
    std::size_t count = 0;
    for (;;) {
        const resolve_start start{runtime, host.c_str(), service.c_str(), &server, raw};
        count = co_await resolving(start);
        if (count <= raw.size()) {
            break;
        }
        raw.resize(count);
    }
    std::vector<endpoint> found;
    found.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        found.emplace_back(raw[i]);
    }
    co_return found;
}

// The home of the awaiting task, which a function that is no awaiter cannot see, is where it runs.
inline task<std::vector<endpoint>> resolve_here(std::string host, std::string service, endpoint server) {
    const weft_runtime here = weft_runtime_current();
    if (here.id == 0) {
        throw error(WEFT_ENOTWORKER, "resolve");
    }
    co_return co_await resolve_on(here, std::move(host), std::move(service), server);
}

} // namespace detail

/// Looks up the addresses of a host, in the order in which they should be tried, each with the port of the service (a name or a
/// number; empty: 0). Numeric hosts are allowed. server: a name server to ask instead of the system's.
/// Resumes on the awaiting task's home. Cancel: ends early with operation_cancelled; use timeout() to limit it. Throws
/// error: errc::not_found (no such host or service), errc::no_answer (no name server gave an answer), errc::invalid_argument,
/// errc::not_a_worker (the calling thread is none; name a scheduler).
[[nodiscard]] inline task<std::vector<endpoint>> resolve(std::string host, std::string service = {}, endpoint server = {}) {
    return detail::resolve_here(std::move(host), std::move(service), server);
}

/// resolve() on a runtime.
[[nodiscard]] inline task<std::vector<endpoint>> resolve(scheduler on, std::string host, std::string service = {},
                                                         endpoint server = {}) {
    return detail::resolve_on(on.native(), std::move(host), std::move(service), server);
}

} // namespace weft

#endif
