/* SPDX-License-Identifier: MIT
 *
 * poll.h: see posix.h. A descriptor is a socket to who includes this.
 */
#ifndef WEFT_TESTS_WINDOWS_POLL_H
#define WEFT_TESTS_WINDOWS_POLL_H

#include "posix.h"

#define MSG_MORE 0 /* it leaves at once */
#define MSG_DONTWAIT 0x40

/* Sockets block unless they are told otherwise. */
#define F_SETFL 4
#define fcntl(system, command, flags) ((void)(system), (command) == F_SETFL && (flags) == 0 ? 0 : -1)

#define poll(watches, count, ms) WSAPoll(watches, count, ms)

static inline int posix_recv(int system, void *data, int size, int flags)
{
    struct pollfd watch = {.fd = (SOCKET)system, .events = POLLIN};
    if ((flags & MSG_DONTWAIT) != 0 && poll(&watch, 1, 0) == 0) return -1;
    return recv((SOCKET)system, (char *)data, size, flags & ~MSG_DONTWAIT);
}
#define recv(system, data, size, flags) posix_recv(system, data, (int)(size), flags)
#define read(system, data, size) posix_recv(system, data, (int)(size), 0)
#define write(system, data, size) posix_send(system, data, (int)(size), 0)

static inline int posix_dup(int system)
{
    WSAPROTOCOL_INFOW info;
    if (WSADuplicateSocketW((SOCKET)system, GetCurrentProcessId(), &info) != 0) return -1;
    return (int)WSASocketW(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, &info, 0, WSA_FLAG_OVERLAPPED);
}
#define dup(system) posix_dup(system)

#endif
