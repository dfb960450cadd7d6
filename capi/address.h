/* SPDX-License-Identifier: MIT
 *
 * address.h: endpoints as the system's addresses, and where a connect keeps one.
 */
#ifndef WEFT_ADDRESS_H
#define WEFT_ADDRESS_H

#if defined(_WIN32)
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <netinet/in.h>
#include <sys/socket.h>
#endif

#include <string.h>

#include "io.h"

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static inline socklen_t address_of(const weft_endpoint *endpoint, address *address) {
    memset(address, 0, sizeof *address);
    if (endpoint->family == WEFT_IPV4) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(endpoint->port);
        memcpy(&address->v4.sin_addr, endpoint->address, 4);
        return sizeof address->v4;
    }
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(endpoint->port);
    address->v6.sin6_scope_id = endpoint->scope;
    memcpy(&address->v6.sin6_addr, endpoint->address, 16);
    return sizeof address->v6;
}

static inline int endpoint_of(const address *address, weft_endpoint *endpoint) {
    weft_endpoint e;
    memset(&e, 0, sizeof e);
    if (address->any.sa_family == AF_INET) {
        e.family = WEFT_IPV4;
        e.port = ntohs(address->v4.sin_port);
        memcpy(e.address, &address->v4.sin_addr, 4);
    } else if (address->any.sa_family == AF_INET6) {
        e.family = WEFT_IPV6;
        e.port = ntohs(address->v6.sin6_port);
        e.scope = address->v6.sin6_scope_id;
        memcpy(e.address, &address->v6.sin6_addr, 16);
    } else {
        return WEFT_ENOTSUP;
    }
    *endpoint = e;
    return WEFT_OK;
}

/* Where an op goes: a connect has 24 bytes of endpoint in the fields that it does not use otherwise, and a datagram has room. */
static inline void peer_keep(weft_io *io, const weft_endpoint *endpoint) {
    if (io->kind_ != IO_CONNECT) {
        memset(&datagram_of(io)->peer, 0, sizeof(weft_endpoint));
        datagram_of(io)->truncated = 0;
        if (endpoint != NULL) datagram_of(io)->peer = *endpoint;
        return;
    }
    uint64_t high;
    memcpy(&io->length_, endpoint->address, 8);
    memcpy(&high, endpoint->address + 8, 8);
    io->data_ = (void *)(uintptr_t)high;
    io->spare_[0] = endpoint->family | (uint64_t)endpoint->port << 16 | (uint64_t)endpoint->scope << 32;
}

static inline void peer_of(const weft_io *io, weft_endpoint *endpoint) {
    uint64_t high = (uint64_t)(uintptr_t)io->data_;
    endpoint->family = (uint16_t)io->spare_[0];
    endpoint->port = (uint16_t)(io->spare_[0] >> 16);
    endpoint->scope = (uint32_t)(io->spare_[0] >> 32);
    memcpy(endpoint->address, &io->length_, 8);
    memcpy(endpoint->address + 8, &high, 8);
}

#endif
