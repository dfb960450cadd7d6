/* SPDX-License-Identifier: MIT
 *
 * posix.h: as much of POSIX as the tests use and MinGW lacks. It is read before each file of a test (-include); the headers beside it stand for
 * those that it replaces. Sockets are small numbers on Windows, too, so an int holds one.
 */
#ifndef WEFT_TESTS_WINDOWS_POSIX_H
#define WEFT_TESTS_WINDOWS_POSIX_H

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#include <errno.h>
#include <io.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#undef small
#undef near
#undef far
#undef interface

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((constructor)) static void posix_sockets_begin(void)
{
    WSADATA data;
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0) abort();
}

/* Affinity: the process's, whose threads all follow; Linux's tests restrict the calling thread, and those that it makes. */
typedef DWORD_PTR cpu_set_t;
#define CPU_SETSIZE 64
#define CPU_ZERO(set) (*(set) = 0)
#define CPU_SET(cpu, set) ((void)(*(set) |= (DWORD_PTR)1 << (cpu)))
#define CPU_ISSET(cpu, set) ((*(set) >> (cpu) & 1) != 0)
#define CPU_COUNT(set) __builtin_popcountll(*(set))

static inline int sched_getaffinity(int process, size_t size, cpu_set_t *set)
{
    DWORD_PTR system;
    (void)process, (void)size;
    return GetProcessAffinityMask(GetCurrentProcess(), set, &system) ? 0 : -1;
}

static inline int sched_setaffinity(int process, size_t size, const cpu_set_t *set)
{
    (void)process, (void)size;
    return SetProcessAffinityMask(GetCurrentProcess(), *set) ? 0 : -1;
}

/* The name of the calling thread. */
WINBASEAPI HRESULT WINAPI GetThreadDescription(HANDLE thread, PWSTR *description);
static inline int posix_thread_name(char *name, size_t size)
{
    PWSTR wide;
    if (GetThreadDescription(GetCurrentThread(), &wide) < 0) return -1;
    int length = WideCharToMultiByte(CP_UTF8, 0, wide, -1, name, (int)size, NULL, NULL);
    LocalFree(wide);
    return length > 0 ? 0 : -1;
}
#define pthread_getname_np(thread, name, size) posix_thread_name(name, size)

/* MinGW's does not sleep at all for less than a millisecond. */
static inline int posix_nanosleep(const struct timespec *span, struct timespec *left)
{
    (void)left;
    Sleep((DWORD)(span->tv_sec * 1000 + (span->tv_nsec + 999999) / 1000000));
    return 0;
}
#define nanosleep posix_nanosleep

#define _SC_NPROCESSORS_ONLN 84
static inline long sysconf(int name)
{
    SYSTEM_INFO info;
    (void)name;
    GetSystemInfo(&info);
    return (long)info.dwNumberOfProcessors;
}

static inline int rand_r(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u; /* the C standard's example */
    return (int)(*seed >> 16 & 0x7fff);
}

/* A folder of one's own; the name is made by the one who asks, so it need not be guessed by nobody. */
static inline char *mkdtemp(char *pattern)
{
    static LONG made;
    char *end = pattern + strlen(pattern) - 6;
    do {
        snprintf(end, 7, "%03lx%03lx", GetCurrentProcessId() & 0xfff, InterlockedIncrement(&made) & 0xfff);
    } while (!CreateDirectoryA(pattern, NULL) && GetLastError() == ERROR_ALREADY_EXISTS);
    return GetFileAttributesA(pattern) != INVALID_FILE_ATTRIBUTES ? pattern : NULL;
}

/* Two connected sockets. There are none without a name on Windows, so they are TCP's. */
static inline int socketpair(int family, int type, int protocol, int ends[2])
{
    (void)family, (void)type, (void)protocol;
    struct sockaddr_in address;
    int size = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    SOCKET listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 || connect(client, (struct sockaddr *)&address, size) != 0)
        return -1;
    SOCKET server = accept(listener, NULL, NULL);
    closesocket(listener);
    int now = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, (const char *)&now, sizeof now);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, (const char *)&now, sizeof now);
    ends[0] = (int)client;
    ends[1] = (int)server;
    return server == INVALID_SOCKET ? -1 : 0;
}

#define MSG_NOSIGNAL 0
#define SHUT_RD SD_RECEIVE
#define SHUT_WR SD_SEND
#define SHUT_RDWR SD_BOTH

#ifdef __cplusplus
}
#else
/* Of sockets alone, in C's tests. */
static inline int posix_send(int system, const void *data, int size, int flags)
{
    int sent = send((SOCKET)system, (const char *)data, size, flags);
    if (sent < 0) errno = WSAGetLastError() == WSAECONNRESET || WSAGetLastError() == WSAECONNABORTED ? EPIPE : EIO;
    return sent;
}
#define send(system, data, size, flags) posix_send(system, data, (int)(size), flags)
#define close(system) closesocket((SOCKET)(system))
#endif

#endif
