/* SPDX-License-Identifier: MIT
 *
 * weft/c/io.h: descriptors and the operations on them.
 *
 * Completion-shaped on every system: start an op; it completes exactly once, with a result. A start returns
 *   WEFT_OK  pending: op.run is called on a worker of the descriptor's runtime when the result is there;
 *   1        completed at once: the result is there, op.run is not called;
 *   < 0      not started: nothing happened, nothing will run (argument errors, WEFT_EBADHANDLE, WEFT_EBUSY, WEFT_ESTOPPED,
 *            WEFT_EFORKED; a function's page lists only what it adds). Failures of the system are results, not returns.
 * After too many completions at once in a row a worker gets WEFT_OK instead, so that a hot socket starves nobody.
 *
 * A descriptor is owned by weft from open to close and set to non-blocking mode; on Windows it is a SOCKET, or the HANDLE of a
 * pipe, that was made for overlapped I/O. It takes one op that receives (recv, accept) and one that sends (send, connect) at a
 * time; a second one in the same direction gets WEFT_EBUSY.
 * An op is idle when it is zeroed, when it completed at once, and once its run has begun. To start one that waits gets WEFT_EBUSY, too; one
 * whose run is queued is not recognised.
 * An op that succeeded although it was cancelled reports its success: bytes and accepted sockets are never lost. (On
 * Windows a send that was cancelled may have sent more than its count tells.)
 * Buffers belong to the op from its start until its result.
 */
#ifndef WEFT_C_IO_H
#define WEFT_C_IO_H

#include <stddef.h>

#include "op.h"

/** Handle of a descriptor; {0} is none. */
typedef struct weft_descriptor {
    uint64_t id;
} weft_descriptor;

#define WEFT_IPV4 4
#define WEFT_IPV6 6

/** An IP address and port. */
typedef struct weft_endpoint {
    uint16_t family;     /* WEFT_IPV4 or WEFT_IPV6 */
    uint16_t port;       /* host byte order */
    uint32_t scope;      /* IPv6 zone index, else 0 */
    uint8_t address[16]; /* network byte order; IPv4 uses the first 4 bytes */
} weft_endpoint;

/** One piece of a scattered buffer. */
typedef struct weft_buffer {
    void *data;
    size_t length; /* bytes */
} weft_buffer;

#define WEFT_BUFFERS_MAX 64 /* pieces in one op */

/* Flags of recv and send. */
#define WEFT_IO_ALL 1u /* complete when everything is moved; fewer bytes only with an error or end of stream */

typedef struct weft_io {
    weft_op op;               /* caller: run and context */
    int32_t status;           /* result: WEFT_OK or why it failed */
    int32_t os_error;         /* result: the system's error number, or 0 */
    uint64_t count;           /* result: bytes moved, also when status is an error; recv: 0 with WEFT_OK is end of stream */
    weft_descriptor accepted; /* result of accept */
    uint32_t state_;          /* weft's */
    uint16_t kind_;           /* weft's */
    uint16_t flags_;          /* weft's */
    void *descriptor_;        /* weft's */
    void *data_;              /* weft's */
    uint64_t length_;         /* weft's */
    uint64_t system_[4];      /* weft's: an OVERLAPPED on Windows */
    uint64_t spare_[1];       /* weft's */
} weft_io;

/** An op that moves one datagram, and whom it is from or for. It is started by weft_recv_from and weft_send_to, and cancelled by its io. */
typedef struct weft_datagram {
    weft_io io;
    weft_endpoint peer;    /* result of weft_recv_from: who sent it */
    uint32_t truncated;    /* result of weft_recv_from: 1 when it was longer than the buffer; what is beyond is lost */
    uint32_t reserved_;    /* weft's */
    uint64_t address_[4];  /* weft's */
} weft_datagram;

#ifdef __cplusplus
extern "C" {
#endif

/** Gives a socket, pipe or other pollable descriptor to a runtime.
 *  Params:   runtime     which; may still be running only
 *            system      a file descriptor (SOCKET or HANDLE on Windows)
 *            descriptor  not NULL; written on success only
 *  Returns:  WEFT_OK; WEFT_EINVAL (closed or negative); WEFT_ENOTSUP (regular file or directory; on Windows also a console, or a
 *            handle whose calls block); WEFT_EEXIST (already registered with this runtime, on Windows with any); WEFT_ELIMIT;
 *            WEFT_ENOMEM; WEFT_EBADHANDLE; WEFT_ESTOPPED; WEFT_EFORKED.
 *  Owns:     from WEFT_OK on weft owns the system's descriptor, and weft_descriptor_close closes it.
 *  Threads:  any; one crossing to Go; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_descriptor_open(weft_runtime runtime, intptr_t system, weft_descriptor *descriptor) WEFT_NOEXCEPT;

/** Closes a descriptor. Ops that wait on it complete with WEFT_ECLOSED.
 *  Params:   descriptor  {0} is allowed and does nothing
 *  Returns:  WEFT_OK; WEFT_EBADHANDLE (also for the second of two closes).
 *  Threads:  any; one crossing to Go; never calls back; waits while a system call on it is in progress in another thread.
 *  Since:    0.1 */
WEFT_API int weft_descriptor_close(weft_descriptor descriptor) WEFT_NOEXCEPT;

/** Tells the system's descriptor, for options that weft does not wrap. It stays weft's.
 *  Params:   system  not NULL
 *  Returns:  WEFT_OK; WEFT_EINVAL; WEFT_EBADHANDLE.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_descriptor_system(weft_descriptor descriptor, intptr_t *system) WEFT_NOEXCEPT;

/** Makes a TCP socket that is not yet connected, for weft_connect. Nagle's algorithm is off.
 *  Params:   family      WEFT_IPV4 or WEFT_IPV6
 *            descriptor  not NULL; written on success only
 *  Returns:  as weft_descriptor_open; WEFT_ENOTSUP when the system has no such family.
 *  Threads:  any; one crossing to Go.
 *  Since:    0.1 */
WEFT_API int weft_tcp_open(weft_runtime runtime, int family, weft_descriptor *descriptor) WEFT_NOEXCEPT;

/** Makes a TCP socket that listens. The address may be reused at once after a restart. One for IPv6 takes IPv6 alone.
 *  Params:   endpoint    not NULL; port 0 lets the system choose (ask weft_local_endpoint)
 *            backlog     0: the system's largest
 *            descriptor  not NULL; written on success only
 *  Returns:  as weft_descriptor_open; WEFT_EADDRINUSE; WEFT_EADDRNOTAVAIL; WEFT_EACCES; WEFT_ESYSTEM.
 *  Threads:  any; one crossing to Go.
 *  Since:    0.1 */
WEFT_API int weft_tcp_listen(weft_runtime runtime, const weft_endpoint *endpoint, int backlog,
                             weft_descriptor *descriptor) WEFT_NOEXCEPT;

/** Connects a socket of weft_tcp_open.
 *  Params:   io        not NULL, idle
 *            endpoint  not NULL; only read during the call
 *  Results:  WEFT_OK; WEFT_ECONNREFUSED; WEFT_EUNREACH; WEFT_ETIMEDOUT; WEFT_ECANCELED; WEFT_ECLOSED; WEFT_ESYSTEM. After a failure
 *            or cancel the socket can only be closed.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_connect(weft_io *io, weft_descriptor descriptor, const weft_endpoint *endpoint) WEFT_NOEXCEPT;

/** Accepts a connection: io->accepted is a new descriptor of the same runtime, and the caller's to close. Nagle's algorithm is off.
 *  Params:   io        not NULL, idle
 *            listener  of weft_tcp_listen
 *  Results:  WEFT_OK; WEFT_ELIMIT (no free descriptor; the connection still waits: wait, too, before the next try);
 *            WEFT_ENOMEM (the system's memory, and the connection still waits; or weft's, and it was closed); WEFT_ECANCELED; WEFT_ECLOSED;
 *            WEFT_ESYSTEM.
 *  Threads:  any; one crossing to Go per accepted connection.
 *  Since:    0.1 */
WEFT_API int weft_accept(weft_io *io, weft_descriptor listener) WEFT_NOEXCEPT;

/** Receives into one buffer: completes with what is there, or with WEFT_IO_ALL when the buffer is full.
 *  Params:   io      not NULL, idle
 *            data    not NULL unless length is 0; length 0 completes at once
 *            flags   0 or WEFT_IO_ALL
 *  Results:  WEFT_OK, io->count bytes (0: end of stream); WEFT_EOF (WEFT_IO_ALL and the stream ended first; io->count tells
 *            how much came); WEFT_ECONNRESET; WEFT_ECANCELED; WEFT_ECLOSED; WEFT_ENOTCONN; WEFT_ENOMEM; WEFT_ESYSTEM.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_recv(weft_io *io, weft_descriptor descriptor, void *data, size_t length, uint32_t flags) WEFT_NOEXCEPT;

/** Sends from one buffer: completes when some bytes, or with WEFT_IO_ALL all bytes, are the system's. Never raises SIGPIPE.
 *  Params:   as weft_recv
 *  Results:  WEFT_OK, io->count bytes; WEFT_EPIPE; WEFT_ECONNRESET; WEFT_ECANCELED; WEFT_ECLOSED; WEFT_ENOTCONN; WEFT_ENOMEM;
 *            WEFT_ESYSTEM.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_send(weft_io *io, weft_descriptor descriptor, const void *data, size_t length,
                       uint32_t flags) WEFT_NOEXCEPT;

/** weft_recv into several buffers, filled in order.
 *  Params:   buffers  array of count pieces; the array too belongs to the op until its result
 *            count    1 to WEFT_BUFFERS_MAX
 *  Since:    0.1 */
WEFT_API int weft_recv_buffers(weft_io *io, weft_descriptor descriptor, const weft_buffer *buffers, uint32_t count,
                               uint32_t flags) WEFT_NOEXCEPT;

/** weft_send from several buffers, in order.
 *  Params:   as weft_recv_buffers
 *  Since:    0.1 */
WEFT_API int weft_send_buffers(weft_io *io, weft_descriptor descriptor, const weft_buffer *buffers, uint32_t count,
                               uint32_t flags) WEFT_NOEXCEPT;

/** Makes a UDP socket that is bound to an address. One for IPv6 takes IPv6 alone. One that is not connected never hears that nobody listens where it
 *  has sent to.
 *  Params:   endpoint    not NULL; of this host; port 0 lets the system choose (ask weft_local_endpoint), and address 0 means all of its addresses
 *            descriptor  not NULL; written on success only
 *  Returns:  as weft_tcp_listen.
 *  Threads:  any; one crossing to Go.
 *  Since:    0.1 */
WEFT_API int weft_udp_open(weft_runtime runtime, const weft_endpoint *endpoint, weft_descriptor *descriptor) WEFT_NOEXCEPT;

/** Connects a UDP socket: from now on it receives from this peer alone, and weft_send sends there, but no empty datagram: that takes weft_send_to.
 *  Datagrams that have come already stay. That nobody listens there is told on Linux, as WEFT_ECONNREFUSED of a later op; on Windows it is not.
 *  Params:   endpoint  not NULL; only read during the call
 *  Returns:  WEFT_OK; WEFT_EINVAL; WEFT_EBADHANDLE; WEFT_ENOTSUP (no UDP socket); WEFT_EUNREACH; WEFT_EACCES; WEFT_ESYSTEM.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_udp_connect(weft_descriptor descriptor, const weft_endpoint *endpoint) WEFT_NOEXCEPT;

/** Receives one datagram, which may be empty, and tells who sent it.
 *  Params:   datagram  not NULL, its io idle
 *            data      not NULL unless length is 0
 *  Results:  WEFT_OK, io.count bytes, peer and truncated are written; WEFT_ECANCELED; WEFT_ECLOSED; WEFT_ECONNREFUSED (connected);
 *            WEFT_ENOTSUP (no socket); WEFT_ENOMEM; WEFT_ESYSTEM. weft_recv does the same without peer and truncated.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_recv_from(weft_datagram *datagram, weft_descriptor descriptor, void *data, size_t length) WEFT_NOEXCEPT;

/** Sends one datagram, all of it or nothing. That it was sent does not mean that it arrives.
 *  Params:   datagram  not NULL, its io idle
 *            data      not NULL unless length is 0
 *            endpoint  not NULL; only read during the call
 *  Results:  WEFT_OK; WEFT_EINVAL (longer than a datagram can be; another family than the socket's); WEFT_EUNREACH; WEFT_EACCES (broadcast that was not asked
 *            for); WEFT_ECANCELED; WEFT_ECLOSED; WEFT_ECONNREFUSED (connected); WEFT_ENOTSUP (no socket, or another family); WEFT_ENOMEM; WEFT_ESYSTEM.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_send_to(weft_datagram *datagram, weft_descriptor descriptor, const void *data, size_t length,
                          const weft_endpoint *endpoint) WEFT_NOEXCEPT;

/** Asks an op to end early. Honoured before its first start (a zeroed op; the start then completes at once with WEFT_ECANCELED), and
 *  while it waits; after its completion nothing happens. The op still completes exactly once.
 *  Params:   io  not NULL
 *  Returns:  WEFT_OK (the request was noted); 1 (it had completed or had been requested); WEFT_EINVAL.
 *  Threads:  any, as long as the caller knows that the memory is still there, also while the runtime ends; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_io_cancel(weft_io *io) WEFT_NOEXCEPT;

#define WEFT_SHUTDOWN_RECEIVE 1
#define WEFT_SHUTDOWN_SEND 2

/** Ends one direction of a connection, or both.
 *  Params:   directions  WEFT_SHUTDOWN_RECEIVE, WEFT_SHUTDOWN_SEND or their sum
 *  Returns:  WEFT_OK; WEFT_EINVAL; WEFT_EBADHANDLE; WEFT_ENOTCONN; WEFT_ENOTSUP (no socket); WEFT_ESYSTEM.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_shutdown(weft_descriptor descriptor, int directions) WEFT_NOEXCEPT;

/** Tells the address of this end of a socket.
 *  Params:   endpoint  not NULL; written on success only
 *  Returns:  WEFT_OK; WEFT_EINVAL; WEFT_EBADHANDLE; WEFT_ENOTSUP (no IP socket); WEFT_ESYSTEM.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_local_endpoint(weft_descriptor descriptor, weft_endpoint *endpoint) WEFT_NOEXCEPT;

/** Tells the address of the other end of a socket.
 *  Returns:  as weft_local_endpoint; WEFT_ENOTCONN.
 *  Since:    0.1 */
WEFT_API int weft_remote_endpoint(weft_descriptor descriptor, weft_endpoint *endpoint) WEFT_NOEXCEPT;

/** Reads a numeric address: "127.0.0.1:80", "[::1]:80", "[fe80::1%2]:80". Names are not looked up.
 *  Params:   text      not NULL, NUL-terminated
 *            endpoint  not NULL; written on success only
 *  Returns:  WEFT_OK; WEFT_EINVAL.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_endpoint_parse(const char *text, weft_endpoint *endpoint) WEFT_NOEXCEPT;

#define WEFT_ENDPOINT_TEXT_BYTES 64

/** Writes an address as weft_endpoint_parse reads it.
 *  Params:   text  not NULL, room for size bytes with the NUL; WEFT_ENDPOINT_TEXT_BYTES are always enough
 *  Returns:  the length without the NUL; WEFT_EINVAL (NULL, unknown family, or too little room).
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_endpoint_format(const weft_endpoint *endpoint, char *text, size_t size) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
