/* SPDX-License-Identifier: MIT
 *
 * weft/c/error.h: every code that weft returns, the same number on every system.
 *
 * A function returns 0 (WEFT_OK), a positive value that its own page explains, or one of these negative codes.
 * Numbers are never reused. The system's own error number, where there was one, is in the op's os_error.
 */
#ifndef WEFT_C_ERROR_H
#define WEFT_C_ERROR_H

#include "version.h"

/* X(name, number, text) */
#define WEFT_ERROR_TABLE(X)                                                                                       \
    X(WEFT_EINVAL, -1, "invalid argument")                                                                        \
    X(WEFT_EBADHANDLE, -2, "handle is null, stale or of another kind")                                            \
    X(WEFT_EVERSION, -3, "config structure is of an unknown size or version")                                     \
    X(WEFT_EBUSY, -4, "op is already started, or another op waits in this direction")                             \
    X(WEFT_ESTOPPED, -5, "runtime is stopping or has stopped")                                                    \
    X(WEFT_ENOTWORKER, -6, "calling thread is not a worker of this runtime")                                      \
    X(WEFT_ENOTSUP, -7, "not supported for this kind of descriptor or on this system")                            \
    X(WEFT_EEXIST, -8, "already exists, or descriptor is already registered")                                     \
    X(WEFT_EFORKED, -9, "process is a fork of the one that started the runtime")                                  \
    X(WEFT_EPANIC, -10, "internal failure; the runtime must not be used any more")                                \
    X(WEFT_ENOMEM, -20, "out of memory")                                                                          \
    X(WEFT_ELIMIT, -21, "limit reached: threads, runtimes or open descriptors")                                   \
    X(WEFT_ECANCELED, -30, "operation was cancelled")                                                             \
    X(WEFT_ETIMEDOUT, -31, "time ran out")                                                                        \
    X(WEFT_ECLOSED, -32, "descriptor was closed while the operation waited")                                      \
    X(WEFT_EOF, -33, "end of stream before the requested amount")                                                 \
    X(WEFT_ECONNREFUSED, -40, "connection refused")                                                               \
    X(WEFT_ECONNRESET, -41, "connection reset by peer")                                                           \
    X(WEFT_EPIPE, -42, "peer no longer reads")                                                                    \
    X(WEFT_ENOTCONN, -43, "socket is not connected")                                                              \
    X(WEFT_EADDRINUSE, -44, "address is in use")                                                                  \
    X(WEFT_EADDRNOTAVAIL, -45, "address is not available on this machine")                                        \
    X(WEFT_EUNREACH, -46, "network or host is unreachable")                                                       \
    X(WEFT_EACCES, -47, "permission denied")                                                                      \
    X(WEFT_ENOENT, -48, "no such file, host or service")                                                          \
    X(WEFT_ENOSPC, -49, "no space left on the device")                                                            \
    X(WEFT_ENOANSWER, -50, "no name server gave an answer")                                                       \
    X(WEFT_ESYSTEM, -99, "system call failed; see os_error")

enum weft_error {
    WEFT_OK = 0,
#define WEFT_ERROR_ENUM_(name, number, text) name = number,
    WEFT_ERROR_TABLE(WEFT_ERROR_ENUM_)
#undef WEFT_ERROR_ENUM_
};

#ifdef __cplusplus
extern "C" {
#endif

/** Explains a code in one English phrase.
 *  Params:   code  any value; 0 gives "success", an unknown one "unknown error"
 *  Returns:  a static, NUL-terminated string; the library owns it.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API const char *weft_error_text(int code) WEFT_NOEXCEPT;

/** Names a code as it is spelled in this header, for example "WEFT_ECANCELED".
 *  Params:   code  any value; 0 gives "WEFT_OK", an unknown one "WEFT_E?"
 *  Returns:  a static, NUL-terminated string; the library owns it.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API const char *weft_error_name(int code) WEFT_NOEXCEPT;

/** Translates an error number of the operating system (errno, or a Windows error) to a code of this table.
 *  Params:   os_error  a value of errno or GetLastError(); 0 gives WEFT_OK
 *  Returns:  0, or a negative code; WEFT_ESYSTEM when the table has no closer one.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_error_from_os(int os_error) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
