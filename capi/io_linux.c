/* SPDX-License-Identifier: MIT
 *
 * io_linux.c: the system calls of I/O ops and sockets on Linux. All that is particular to the system is here; errno is
 * theirs to change.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "io.h"
#include "lane_internal.h"

int weft_error_from_os(int os_error) {
    switch (os_error) {
    case 0: return WEFT_OK;
    case EINVAL:
    case EMSGSIZE: return WEFT_EINVAL;
    case EOPNOTSUPP: /* and ENOTSUP, the same number */
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ENOTSOCK:
    case ENOSYS: return WEFT_ENOTSUP;
    case EEXIST: return WEFT_EEXIST;
    case ENOENT: return WEFT_ENOENT;
    case ENOMEM:
    case ENOBUFS: return WEFT_ENOMEM;
    case EMFILE:
    case ENFILE:
    case ENOSPC: return WEFT_ELIMIT;
    case ECANCELED: return WEFT_ECANCELED;
    case ETIMEDOUT: return WEFT_ETIMEDOUT;
    case ECONNREFUSED: return WEFT_ECONNREFUSED;
    case ECONNRESET:
    case ECONNABORTED: return WEFT_ECONNRESET;
    case EPIPE: return WEFT_EPIPE;
    case ENOTCONN: return WEFT_ENOTCONN;
    case EADDRINUSE: return WEFT_EADDRINUSE;
    case EADDRNOTAVAIL: return WEFT_EADDRNOTAVAIL;
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTUNREACH:
    case EHOSTDOWN: return WEFT_EUNREACH;
    case EACCES:
    case EPERM: return WEFT_EACCES;
    }
    return WEFT_ESYSTEM;
}

/* Bytes. */

enum { TRANSFER_MAX = 1 << 30 }; /* bytes in one call: the system cuts at about twice this, as a short receive */

/* What is left of an op's buffers; returns the number of pieces, and how many bytes they are. */
static int pieces_of(const weft_io *io, struct iovec *pieces, size_t *asked) {
    uint64_t skip = io->count;
    size_t room = TRANSFER_MAX;
    int n = 0;
    const weft_buffer *buffers = io->data_;
    for (uint64_t i = 0; i < io->length_ && room != 0; i++) {
        if (skip >= buffers[i].length) {
            skip -= buffers[i].length;
            continue;
        }
        size_t length = buffers[i].length - skip;
        if (length > room) length = room;
        pieces[n++] = (struct iovec){(char *)buffers[i].data + skip, length};
        room -= length;
        skip = 0;
    }
    *asked = TRANSFER_MAX - room;
    return n;
}

static int single_of(const weft_io *io, struct iovec *piece, size_t *asked) {
    uint64_t left = io->length_ - io->count;
    *asked = left > TRANSFER_MAX ? TRANSFER_MAX : (size_t)left;
    *piece = (struct iovec){(char *)io->data_ + io->count, *asked};
    return 1;
}

/* writev that never raises SIGPIPE. A worker has all signals blocked, and keeps one that is pending for good; on a thread of
 * the host's the signal is held back for the call, and taken away if the call has raised it. */
static ssize_t write_quietly(int32_t system, const struct iovec *pieces, int n) {
    if (lane_self != NULL) return writev(system, pieces, n);
    sigset_t pipe_signal, before, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t moved = writev(system, pieces, n);
    int error = errno;
    if (moved < 0 && error == EPIPE && !was_pending) {
        const struct timespec none = {0, 0};
        while (sigtimedwait(&pipe_signal, NULL, &none) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return moved;
}

/* MSG_DONTWAIT although the descriptor is in non-blocking mode: the mode belongs to what is behind it, and another process
 * may share that. */
static ssize_t receive_pieces(int32_t system, bool file, struct iovec *pieces, int n) {
    if (LANE_UNLIKELY(file)) return readv(system, pieces, n);
    if (LANE_LIKELY(n == 1)) return recv(system, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT);
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};
    return recvmsg(system, &message, MSG_DONTWAIT);
}

static ssize_t send_pieces(int32_t system, bool file, struct iovec *pieces, int n) {
    if (LANE_UNLIKELY(file)) return write_quietly(system, pieces, n);
    if (LANE_LIKELY(n == 1)) return send(system, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};
    return sendmsg(system, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static inline io_attempt attempt_of_error(void) {
    int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) return (io_attempt){.wait = true};
    return (io_attempt){.os_error = error};
}

static inline io_attempt try_transfer(int32_t system, bool file, const weft_io *io, int direction) {
    struct iovec pieces[WEFT_BUFFERS_MAX];
    size_t asked;
    int n = io->kind_ <= IO_SEND ? single_of(io, pieces, &asked) : pieces_of(io, pieces, &asked);
    ssize_t moved;
    do {
        moved = direction == LANE_RECEIVE ? receive_pieces(system, file, pieces, n) : send_pieces(system, file, pieces, n);
    } while (LANE_UNLIKELY(moved < 0) && errno == EINTR);
    if (moved < 0) return attempt_of_error();
    return (io_attempt){.moved = (uint64_t)moved, .partial = (size_t)moved < asked};
}

/* One datagram. A receive tells who sent it, and whether it was longer than the buffer. */
static io_attempt try_datagram(int32_t system, weft_io *io) {
    weft_datagram *datagram = datagram_of(io);
    address address;
    memset(&address, 0, sizeof address); /* what is no IP socket tells nobody */
    struct iovec piece;
    size_t asked;
    single_of(io, &piece, &asked);
    struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &piece, .msg_iovlen = 1};
    if (io->kind_ == IO_SEND_TO) message.msg_namelen = address_of(&datagram->peer, &address);
    ssize_t moved;
    do {
        moved = io->kind_ == IO_SEND_TO ? sendmsg(system, &message, MSG_DONTWAIT | MSG_NOSIGNAL) : recvmsg(system, &message, MSG_DONTWAIT);
    } while (LANE_UNLIKELY(moved < 0) && errno == EINTR);
    if (moved < 0) return attempt_of_error();
    if (io->kind_ == IO_RECEIVE_FROM) {
        datagram->truncated = (message.msg_flags & MSG_TRUNC) != 0;
        endpoint_of(&address, &datagram->peer);
    }
    return (io_attempt){.moved = (uint64_t)moved};
}

/* Connections. */

static io_attempt try_accept(int32_t system) {
    for (;;) {
        int accepted = accept4(system, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted >= 0) {
            static const int on = 1;
            setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on what is not TCP, and may */
            return (io_attempt){.accepted = accepted};
        }
        switch (errno) {
        case EINTR:
        /* The connection that was to be accepted has failed already (accept(2), "Error handling"): the next one, please. */
        case ECONNABORTED:
        case EPROTO:
        case ENOPROTOOPT:
        case ENETDOWN:
        case ENETUNREACH:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case ENONET: continue;
        }
        return attempt_of_error();
    }
}

/* connect, and on every event connect again: the system then says whether it is still in progress (the first event of a new
 * socket comes without a cause), was established, or failed. SO_ERROR would not do: a receive on the same socket may have
 * taken the error. */
static io_attempt try_connect(int32_t system, weft_io *io) {
    weft_endpoint peer;
    address address;
    peer_of(io, &peer);
    socklen_t length = address_of(&peer, &address);
    bool again = (io->flags_ & IO_UNDER_WAY) != 0;
    int rc = connect(system, &address.any, length);
    if (rc == 0) return (io_attempt){0};
    /* Interrupted, it goes on in the background. */
    if (errno == EINPROGRESS || errno == EINTR || (again && errno == EALREADY)) {
        io->flags_ |= IO_UNDER_WAY;
        return (io_attempt){.wait = true};
    }
    if (again && errno == EISCONN) return (io_attempt){0};
    return (io_attempt){.os_error = errno};
}

io_attempt io_try(int32_t system, uint32_t hints, weft_io *io) {
    bool file = (hints & IO_HINT_FILE) != 0;
    switch (io->kind_) {
    case IO_RECEIVE:
    case IO_RECEIVE_BUFFERS: return try_transfer(system, file, io, LANE_RECEIVE);
    case IO_SEND:
    case IO_SEND_BUFFERS: return try_transfer(system, file, io, LANE_SEND);
    case IO_ACCEPT: return try_accept(system);
    case IO_RECEIVE_FROM:
    case IO_SEND_TO: return try_datagram(system, io);
    default: return try_connect(system, io);
    }
}

/* Sockets. */

uint32_t io_kind_of(int32_t system) {
    int protocol = 0;
    socklen_t size = sizeof protocol;
    if (getsockopt(system, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return errno == ENOTSOCK ? IO_HINT_FILE : 0;
    return protocol == IPPROTO_TCP ? IO_HINT_STREAM : 0;
}

/* Not repeated on EINTR: on Linux the descriptor is gone. */
void io_close(int32_t system) { close(system); }

int io_socket(int family, int32_t *system) {
    int made = socket(family == WEFT_IPV4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0) return weft_error_from_os(errno);
    static const int on = 1;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *system = made;
    return WEFT_OK;
}

int io_listen(const weft_endpoint *endpoint, int backlog, int32_t *system) {
    int32_t made;
    int rc = io_socket(endpoint->family, &made);
    if (rc != WEFT_OK) return rc;
    static const int on = 1;
    address address;
    socklen_t length = address_of(endpoint, &address);
    /* An IPv6 socket takes IPv6 alone, as on other systems, whatever this one's default is. */
    if (setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (endpoint->family == WEFT_IPV6 && setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
        bind(made, &address.any, length) != 0 || listen(made, backlog == 0 ? INT_MAX : backlog) != 0) {
        rc = weft_error_from_os(errno);
        close(made);
        return rc;
    }
    *system = made;
    return WEFT_OK;
}

int io_datagrams(const weft_endpoint *endpoint, int32_t *system) {
    address address;
    socklen_t length = address_of(endpoint, &address);
    int made = socket(address.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0) return weft_error_from_os(errno);
    static const int on = 1;
    if ((endpoint->family == WEFT_IPV6 && setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
        bind(made, &address.any, length) != 0) {
        int rc = weft_error_from_os(errno);
        close(made);
        return rc;
    }
    *system = made;
    return WEFT_OK;
}

int io_aim(int32_t system, const weft_endpoint *endpoint) {
    address address;
    socklen_t length = address_of(endpoint, &address);
    return connect(system, &address.any, length) == 0 ? WEFT_OK : weft_error_from_os(errno);
}

int io_shutdown(int32_t system, int directions) {
    int how = directions == WEFT_SHUTDOWN_RECEIVE ? SHUT_RD : directions == WEFT_SHUTDOWN_SEND ? SHUT_WR : SHUT_RDWR;
    return shutdown(system, how) == 0 ? WEFT_OK : weft_error_from_os(errno);
}

static int name(bool remote, int32_t system, weft_endpoint *endpoint) {
    address address;
    socklen_t size = sizeof address;
    memset(&address, 0, sizeof address);
    if ((remote ? getpeername(system, &address.any, &size) : getsockname(system, &address.any, &size)) != 0) return weft_error_from_os(errno);
    return endpoint_of(&address, endpoint);
}

int io_local(int32_t system, weft_endpoint *endpoint) { return name(false, system, endpoint); }

int io_remote(int32_t system, weft_endpoint *endpoint) { return name(true, system, endpoint); }
