// SPDX-License-Identifier: MIT
//
// What the owners of descriptors (tcp_stream, tcp_listener, udp_socket) can be asked for alike, and how all of them close.
#ifndef WEFT_DETAIL_DESCRIPTOR_QUERIES_HPP
#define WEFT_DETAIL_DESCRIPTOR_QUERIES_HPP

#include <cstdint>

#include "../c/io.h"
#include "../endpoint.hpp"
#include "tcp_operations.hpp"

namespace weft::detail {

/// Closes what is not empty. The handle stays with its owner, so that no other thread can see it change.
inline void close_descriptor(weft_descriptor descriptor) noexcept
{
    if (descriptor.id != 0) {
        weft_descriptor_close(descriptor);
    }
}

[[nodiscard]] inline endpoint local_endpoint_of(weft_descriptor descriptor)
{
    weft_endpoint raw{};
    throw_unless_ok(weft_local_endpoint(descriptor, &raw), "local endpoint");
    return endpoint(raw);
}

[[nodiscard]] inline endpoint remote_endpoint_of(weft_descriptor descriptor)
{
    weft_endpoint raw{};
    throw_unless_ok(weft_remote_endpoint(descriptor, &raw), "remote endpoint");
    return endpoint(raw);
}

[[nodiscard]] inline std::intptr_t system_of(weft_descriptor descriptor)
{
    std::intptr_t system = -1;
    throw_unless_ok(weft_descriptor_system(descriptor, &system), "native handle");
    return system;
}

} // namespace weft::detail

#endif
