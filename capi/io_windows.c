/* SPDX-License-Identifier: MIT
 *
 * io_windows.c: the system calls of I/O ops and sockets on Windows. A call begins a transfer, with system_ as its OVERLAPPED; transfer.h
 * tells whose that is. Twin: iocp/socket_windows.go.
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <windows.h>
#include <winternl.h>

#include "address.h"
#include "io.h"
#include "lane_internal.h"
#include "transfer.h"

io_errors io_errors_keep(void) { return (io_errors){GetLastError(), errno}; }

void io_errors_restore(io_errors errors) {
    errno = errors.c;
    SetLastError(errors.last);
}

/* NTSTATUS, as the first word of an OVERLAPPED has it. Not all of them are in a header that goes together with the others. */
#define STATUS(number) UINT32_C(number)
enum { PENDING = 0x103 };
#define CANCELLED STATUS(0xC0000120)
#define BUFFER_OVERFLOW STATUS(0x80000005) /* there was more than the buffer could take */

_Static_assert(sizeof((weft_io *)NULL)->system_ == sizeof(OVERLAPPED), "system_ is the OVERLAPPED");

static inline SOCKET socket_of(int32_t system) { return (SOCKET)(intptr_t)system; }
static inline HANDLE handle_of(int32_t system) { return (HANDLE)(intptr_t)system; }
static inline OVERLAPPED *overlapped_of(weft_io *io) { return (OVERLAPPED *)io->system_; }

/* What the system's own functions would tell of a transfer that ended with a status: Winsock's numbers for what happens to connections,
 * which the kernel's translation calls otherwise. */
static int error_of(uint32_t status) {
    switch (status) {
    case CANCELLED:
    case STATUS(0x8000000A): /* HANDLES_CLOSED */ return ERROR_OPERATION_ABORTED;
    case BUFFER_OVERFLOW: return WSAEMSGSIZE; /* of a datagram that was to be sent */
    case STATUS(0xC0000236): /* CONNECTION_REFUSED */
    case STATUS(0xC00000BC): /* REMOTE_NOT_LISTENING */ return WSAECONNREFUSED;
    case STATUS(0xC000020D): /* CONNECTION_RESET */
    case STATUS(0xC000020C): /* CONNECTION_DISCONNECTED */
    case STATUS(0xC000013C): /* REMOTE_DISCONNECT */ return WSAECONNRESET;
    case STATUS(0xC0000241): /* CONNECTION_ABORTED */
    case STATUS(0xC000013B): /* LOCAL_DISCONNECT */
    case STATUS(0xC000020F): /* TRANSACTION_ABORTED */ return WSAECONNABORTED;
    case STATUS(0xC0000237): /* GRACEFUL_DISCONNECT */ return WSAEDISCON;
    case STATUS(0xC00000B5): /* IO_TIMEOUT */
    case STATUS(0xC000013F): /* LINK_TIMEOUT */ return WSAETIMEDOUT;
    case STATUS(0xC000023C): /* NETWORK_UNREACHABLE */
    case STATUS(0xC00000BE): /* BAD_NETWORK_PATH */ return WSAENETUNREACH;
    case STATUS(0xC000023D): /* HOST_UNREACHABLE */
    case STATUS(0xC000023E): /* PROTOCOL_UNREACHABLE */
    case STATUS(0xC000023F): /* PORT_UNREACHABLE */ return WSAEHOSTUNREACH;
    case STATUS(0xC000020A): /* ADDRESS_ALREADY_EXISTS */
    case STATUS(0xC0000238): /* ADDRESS_ALREADY_ASSOCIATED */ return WSAEADDRINUSE;
    case STATUS(0xC0000140): /* INVALID_CONNECTION */ return WSAENOTCONN;
    case STATUS(0xC000009A): /* INSUFFICIENT_RESOURCES */
    case STATUS(0xC0000017): /* NO_MEMORY */
    case STATUS(0xC000012C): /* PAGEFILE_QUOTA */
    case STATUS(0xC000012D): /* COMMITMENT_LIMIT */
    case STATUS(0xC00000A1): /* WORKING_SET_QUOTA */
    case STATUS(0xC0000044): /* QUOTA_EXCEEDED */ return WSAENOBUFS;
    }
    return (int)RtlNtStatusToDosError((NTSTATUS)status);
}

/* Bytes. */

enum { TRANSFER_MAX = 1 << 30 }; /* bytes in one call: a length is 32 bits */

/* What is left of an op's buffers; returns the number of pieces. */
static DWORD pieces_of(const weft_io *io, WSABUF *pieces) {
    const weft_buffer single = {io->data_, (size_t)io->length_};
    bool many = io->kind_ > IO_SEND;
    const weft_buffer *buffers = many ? io->data_ : &single;
    uint64_t skip = io->count, count = many ? io->length_ : 1;
    size_t room = TRANSFER_MAX;
    DWORD n = 0;
    for (uint64_t i = 0; i < count && room != 0; i++) {
        if (skip >= buffers[i].length) {
            skip -= buffers[i].length;
            continue;
        }
        size_t length = buffers[i].length - skip;
        if (length > room) length = room;
        pieces[n++] = (WSABUF){(ULONG)length, (char *)buffers[i].data + skip};
        room -= length;
        skip = 0;
    }
    return n;
}

static int begin_transfer(int32_t system, bool file, weft_io *io, int direction) {
    WSABUF pieces[WEFT_BUFFERS_MAX];
    DWORD n = pieces_of(io, pieces);
    /* Not read here, but written by the system when the transfer ends, or so it may be. */
    DWORD *extra = (DWORD *)io->spare_;
    *extra = 0;
    BOOL done;
    if (LANE_UNLIKELY(file)) {
        if (direction == LANE_RECEIVE)
            done = ReadFile(handle_of(system), pieces->buf, pieces->len, extra, overlapped_of(io));
        else
            done = WriteFile(handle_of(system), pieces->buf, pieces->len, extra, overlapped_of(io));
    } else if (direction == LANE_RECEIVE) {
        done = WSARecv(socket_of(system), pieces, n, NULL, extra, overlapped_of(io), NULL) == 0;
    } else {
        done = WSASend(socket_of(system), pieces, n, NULL, 0, overlapped_of(io), NULL) == 0;
    }
    return done ? 0 : (int)GetLastError();
}

/* An address, and how long it is, for as long as the system has the op. */
typedef struct datagram_address {
    address address;
    INT length;
} datagram_address;

_Static_assert(sizeof(datagram_address) == sizeof((weft_datagram *)NULL)->address_, "a datagram has room for an address");

static datagram_address *address_in(weft_io *io) { return (datagram_address *)datagram_of(io)->address_; }

static int begin_datagram(int32_t system, weft_io *io) {
    datagram_address *peer = address_in(io);
    WSABUF piece = {io->length_ > TRANSFER_MAX ? TRANSFER_MAX : (ULONG)io->length_, io->data_};
    DWORD *flags = (DWORD *)io->spare_;
    *flags = 0;
    int rc;
    if (io->kind_ == IO_RECEIVE_FROM) {
        memset(peer, 0, sizeof *peer);
        peer->length = sizeof peer->address;
        rc = WSARecvFrom(socket_of(system), &piece, 1, NULL, flags, &peer->address.any, &peer->length, overlapped_of(io), NULL);
    } else {
        peer->length = address_of(&datagram_of(io)->peer, &peer->address);
        rc = WSASendTo(socket_of(system), &piece, 1, NULL, 0, &peer->address.any, peer->length, overlapped_of(io), NULL);
    }
    return rc == 0 ? 0 : WSAGetLastError();
}

/* Connections. */

static const int on = 1;

static SOCKET new_socket(int family) {
    SOCKET made = WSASocketW(family, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (made != INVALID_SOCKET) setsockopt(made, IPPROTO_TCP, TCP_NODELAY, (const char *)&on, sizeof on);
    return made;
}

/* Makes the socket that the connection is to get, and keeps it in the op. */
static int begin_accept(int32_t system, uint32_t hints, weft_io *io) {
    enum { ROOM = sizeof(struct sockaddr_in6) + 16 };
    static char names[2 * ROOM]; /* the addresses of both ends: of all accepts, since nobody reads it */
    io->data_ = NULL;
    SOCKET made = new_socket(hints & IO_HINT_IPV6 ? AF_INET6 : AF_INET);
    if (made == INVALID_SOCKET) return WSAGetLastError();
    io->data_ = (void *)made;
    if (AcceptEx(socket_of(system), made, names, 0, ROOM, ROOM, (DWORD *)io->spare_, overlapped_of(io))) return 0;
    return WSAGetLastError();
}

/* ConnectEx can only be asked for. Every provider has its own; the sockets here are the system's. */
static int connect_function(SOCKET socket, LPFN_CONNECTEX *function) {
    static _Atomic uintptr_t known; /* atomic: any thread may learn it */
    uintptr_t address = atomic_load_explicit(&known, memory_order_relaxed);
    if (address == 0) {
        GUID guid = WSAID_CONNECTEX;
        DWORD bytes;
        if (WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &guid, sizeof guid, &address, sizeof address, &bytes, NULL, NULL) != 0)
            return WSAGetLastError();
        atomic_store_explicit(&known, address, memory_order_relaxed);
    }
    *function = (LPFN_CONNECTEX)address;
    return 0;
}

/* ConnectEx wants a socket that is bound; one may be already. */
static int begin_connect(int32_t system, weft_io *io) {
    weft_endpoint peer, any = {0};
    address address;
    peer_of(io, &peer);
    any.family = peer.family;
    socklen_t length = address_of(&any, &address);
    SOCKET socket = socket_of(system);
    if (bind(socket, &address.any, length) != 0 && WSAGetLastError() != WSAEINVAL) return WSAGetLastError();
    LPFN_CONNECTEX connect_ex = NULL;
    int error = connect_function(socket, &connect_ex);
    if (error != 0) return error;
    address_of(&peer, &address);
    return connect_ex(socket, &address.any, length, NULL, 0, NULL, overlapped_of(io)) ? 0 : WSAGetLastError();
}

/* Results. */

/* What an op came to whose call or transfer has failed; false, if it is to be begun once more. */
static bool failure(weft_io *io, int error, io_attempt *attempt) {
    *attempt = (io_attempt){.os_error = error};
    switch (io->kind_) {
    case IO_ACCEPT:
        if (io->data_ != NULL) closesocket((SOCKET)io->data_);
        /* The connection that was to be accepted has failed already: the next one. */
        return error != WSAECONNRESET && error != WSAECONNABORTED;
    case IO_RECEIVE:
    case IO_RECEIVE_BUFFERS:
        /* The end of the stream. */
        if (error == WSAESHUTDOWN || error == WSAEDISCON || error == ERROR_BROKEN_PIPE || error == ERROR_HANDLE_EOF) attempt->os_error = 0;
        break;
    case IO_RECEIVE_FROM: /* what became of one that was sent from here is no datagram: the next one */
        return error != WSAECONNRESET && error != WSAENETRESET;
    }
    return true;
}

/* What a transfer came to that has ended; false, if it is to be begun once more. */
static bool outcome(int32_t system, weft_io *io, uint32_t status, uint64_t bytes, io_attempt *attempt) {
    /* Of what was received and cut off the rest is lost, as elsewhere. */
    if (LANE_UNLIKELY((int32_t)status < 0) && (status != BUFFER_OVERFLOW || !(io->kind_ & 1))) {
        bool final = failure(io, error_of(status), attempt);
        attempt->moved = bytes;
        return final;
    }
    *attempt = (io_attempt){0};
    SOCKET socket = socket_of(system);
    switch (io->kind_) {
    case IO_ACCEPT: /* without its context a socket has no names, and cannot be shut down */
        setsockopt((SOCKET)io->data_, SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, (const char *)&socket, sizeof socket);
        attempt->accepted = (int32_t)(intptr_t)io->data_;
        break;
    case IO_CONNECT: setsockopt(socket, SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, NULL, 0); break;
    case IO_RECEIVE_FROM:
        datagram_of(io)->truncated = status == BUFFER_OVERFLOW;
        endpoint_of(&address_in(io)->address, &datagram_of(io)->peer);
        attempt->moved = bytes;
        break;
    default: attempt->moved = bytes;
    }
    return true;
}

static int begin(int32_t system, uint32_t hints, weft_io *io) {
    switch (io->kind_) {
    case IO_ACCEPT: return begin_accept(system, hints, io);
    case IO_CONNECT: return begin_connect(system, io);
    case IO_RECEIVE_FROM:
    case IO_SEND_TO: return begin_datagram(system, io);
    }
    return begin_transfer(system, (hints & IO_HINT_FILE) != 0, io, io->kind_ & 1 ? LANE_RECEIVE : LANE_SEND);
}

io_attempt io_try(int32_t system, uint32_t hints, weft_io *io) {
    io_attempt attempt;
    for (;;) {
        transfer_lend(io, PENDING);
        int error = begin(system, hints, io);
        if (error == 0 && (hints & IO_HINT_SKIPS)) {
            if (outcome(system, io, (uint32_t)io->system_[0], io->system_[1], &attempt)) return attempt;
            continue;
        }
        if (error == 0 || error == ERROR_IO_PENDING) return (io_attempt){.wait = true};
        /* A packet comes also for a call that failed with a warning, that there was more than the buffer could take. It may be taken already,
         * so of the status it counts only that there was one. Wine says the same to a datagram that is too long to be sent. */
        if ((error == WSAEMSGSIZE || error == ERROR_MORE_DATA) && __atomic_load_n(&io->system_[0], __ATOMIC_RELAXED) != PENDING)
            return (io_attempt){.wait = true};
        if (failure(io, error, &attempt)) return attempt;
    }
}

io_attempt io_collect(int32_t system, uint32_t hints, weft_io *io) {
    io_attempt attempt;
    uint32_t status = transfer_status(io);
    uint64_t bytes = transfer_bytes(io);
    if (LANE_UNLIKELY(status == PENDING)) {
        /* Wine 8 posts the packet of a transfer whose thread has ended, and does not write how that went. */
        status = CANCELLED;
        bytes = 0;
    }
    if (LANE_LIKELY(outcome(system, io, status, bytes, &attempt)) || system < 0) return attempt;
    return io_try(system, hints, io);
}

/* If the transfer has ended meanwhile, the system does not find it. */
void io_interrupt(int32_t system, weft_io *io) { CancelIoEx(handle_of(system), overlapped_of(io)); }

/* Sockets. */

uint32_t io_kind_of(int32_t system) {
    WSAPROTOCOL_INFOW info;
    int size = sizeof info;
    /* Whatever the error says: of a number that was once a socket's, Wine does not say that it is none. */
    if (getsockopt(socket_of(system), SOL_SOCKET, SO_PROTOCOL_INFOW, (char *)&info, &size) != 0) return IO_HINT_FILE;
    return info.iSocketType == SOCK_STREAM && info.iProtocol == IPPROTO_TCP ? IO_HINT_STREAM : 0;
}

void io_close(int32_t system) { closesocket(socket_of(system)); }

int io_socket(int family, int32_t *system) {
    SOCKET made = new_socket(family == WEFT_IPV4 ? AF_INET : AF_INET6);
    if (made == INVALID_SOCKET) return weft_error_from_os(WSAGetLastError());
    *system = (int32_t)made;
    return WEFT_OK;
}

/* SO_REUSEADDR would let others take the address away here, and an address is free again at once without it. */
int io_listen(const weft_endpoint *endpoint, int backlog, int32_t *system) {
    int32_t made = -1;
    int rc = io_socket(endpoint->family, &made);
    if (rc != WEFT_OK) return rc;
    address address;
    socklen_t length = address_of(endpoint, &address);
    SOCKET socket = socket_of(made);
    if ((endpoint->family == WEFT_IPV6 && setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, (const char *)&on, sizeof on) != 0) ||
        bind(socket, &address.any, length) != 0 || listen(socket, backlog == 0 ? SOMAXCONN : backlog) != 0) {
        rc = weft_error_from_os(WSAGetLastError());
        closesocket(socket);
        return rc;
    }
    *system = made;
    return WEFT_OK;
}

/* Without the two, a receive fails when a datagram that was sent from here has come to nobody. */
#define UDP_CONNECTION_RESET _WSAIOW(IOC_VENDOR, 12) /* SIO_UDP_CONNRESET, SIO_UDP_NETRESET: not in all headers */
#define UDP_NETWORK_RESET _WSAIOW(IOC_VENDOR, 15)

int io_datagrams(const weft_endpoint *endpoint, int32_t *system) {
    address address;
    socklen_t length = address_of(endpoint, &address);
    SOCKET made = WSASocketW(address.any.sa_family, SOCK_DGRAM, IPPROTO_UDP, NULL, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (made == INVALID_SOCKET) return weft_error_from_os(WSAGetLastError());
    BOOL told = FALSE;
    DWORD bytes;
    WSAIoctl(made, UDP_CONNECTION_RESET, &told, sizeof told, NULL, 0, &bytes, NULL, NULL);
    WSAIoctl(made, UDP_NETWORK_RESET, &told, sizeof told, NULL, 0, &bytes, NULL, NULL);
    if ((endpoint->family == WEFT_IPV6 && setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, (const char *)&on, sizeof on) != 0) ||
        bind(made, &address.any, length) != 0) {
        int rc = weft_error_from_os(WSAGetLastError());
        closesocket(made);
        return rc;
    }
    *system = (int32_t)made;
    return WEFT_OK;
}

int io_aim(int32_t system, const weft_endpoint *endpoint) {
    address address;
    socklen_t length = address_of(endpoint, &address);
    return connect(socket_of(system), &address.any, length) == 0 ? WEFT_OK : weft_error_from_os(WSAGetLastError());
}

int io_shutdown(int32_t system, int directions) {
    int how = directions == WEFT_SHUTDOWN_RECEIVE ? SD_RECEIVE : directions == WEFT_SHUTDOWN_SEND ? SD_SEND : SD_BOTH;
    return shutdown(socket_of(system), how) == 0 ? WEFT_OK : weft_error_from_os(WSAGetLastError());
}

static int name(int (WSAAPI *ask)(SOCKET, struct sockaddr *, int *), int32_t system, weft_endpoint *endpoint) {
    address address;
    int size = sizeof address;
    memset(&address, 0, sizeof address);
    if (ask(socket_of(system), &address.any, &size) != 0) return weft_error_from_os(WSAGetLastError());
    return endpoint_of(&address, endpoint);
}

int io_local(int32_t system, weft_endpoint *endpoint) { return name(getsockname, system, endpoint); }

int io_remote(int32_t system, weft_endpoint *endpoint) { return name(getpeername, system, endpoint); }
