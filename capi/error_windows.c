/* SPDX-License-Identifier: MIT
 *
 * error_windows.c: the system's error numbers, Winsock's and the kernel's, in weft's codes. Twin: iocp/error_windows.go.
 */
#include <winsock2.h>
#include <windows.h>

#include "weft.h"

int weft_error_from_os(int os_error) {
    switch (os_error) {
    case 0: return WEFT_OK;
    case WSAEINVAL:
    case WSAEMSGSIZE:
    case WSAEFAULT:
    case ERROR_INVALID_PARAMETER:
    case ERROR_INVALID_HANDLE:
    case ERROR_INVALID_NAME: return WEFT_EINVAL;
    case WSAEOPNOTSUPP:
    case WSAEAFNOSUPPORT:
    case WSAEPROTONOSUPPORT:
    case WSAEPROTOTYPE:
    case WSAESOCKTNOSUPPORT:
    case WSAENOTSOCK:
    case ERROR_NOT_SUPPORTED:
    case ERROR_INVALID_FUNCTION:
    case ERROR_CALL_NOT_IMPLEMENTED: return WEFT_ENOTSUP;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case WSAHOST_NOT_FOUND: return WEFT_ENOENT;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return WEFT_EEXIST;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_NONPAGED_SYSTEM_RESOURCES:
    case ERROR_WORKING_SET_QUOTA:
    case WSAENOBUFS: return WEFT_ENOMEM;
    case WSAEMFILE:
    case ERROR_TOO_MANY_OPEN_FILES: return WEFT_ELIMIT;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return WEFT_ENOSPC;
    case ERROR_OPERATION_ABORTED:
    case WSAEINTR:
    case WSA_E_CANCELLED:
    case WSAECANCELLED: return WEFT_ECANCELED;
    case WSAETIMEDOUT:
    case ERROR_SEM_TIMEOUT: return WEFT_ETIMEDOUT;
    case WSAECONNREFUSED:
    case ERROR_CONNECTION_REFUSED: return WEFT_ECONNREFUSED;
    case WSAECONNRESET:
    case WSAECONNABORTED:
    case WSAENETRESET:
    case ERROR_NETNAME_DELETED:
    case ERROR_CONNECTION_ABORTED: return WEFT_ECONNRESET;
    case WSAESHUTDOWN:
    case WSAEDISCON:
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA: return WEFT_EPIPE;
    case WSAENOTCONN:
    case ERROR_PIPE_NOT_CONNECTED: return WEFT_ENOTCONN;
    case WSAEADDRINUSE: return WEFT_EADDRINUSE;
    case WSAEADDRNOTAVAIL: return WEFT_EADDRNOTAVAIL;
    case WSAENETUNREACH:
    case WSAEHOSTUNREACH:
    case WSAENETDOWN:
    case WSAEHOSTDOWN:
    case ERROR_NETWORK_UNREACHABLE:
    case ERROR_HOST_UNREACHABLE:
    case ERROR_PORT_UNREACHABLE:
    case ERROR_PROTOCOL_UNREACHABLE: return WEFT_EUNREACH;
    case WSAEACCES:
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_WRITE_PROTECT:
    case ERROR_PRIVILEGE_NOT_HELD: return WEFT_EACCES;
    }
    return WEFT_ESYSTEM;
}
