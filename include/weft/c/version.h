/* SPDX-License-Identifier: MIT
 *
 * weft/c/version.h: which weft this is, at compile time and at run time.
 *
 * The three numbers below are the only place in the project where the version stands; CMake, pkg-config and
 * the Go side read them from here.
 */
#ifndef WEFT_C_VERSION_H
#define WEFT_C_VERSION_H

#include <stdint.h>

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION_NUMBER (WEFT_VERSION_MAJOR * 1000000 + WEFT_VERSION_MINOR * 1000 + WEFT_VERSION_PATCH)

/* Number of the binary interface. It grows when a program built with an older header could no longer run. */
#define WEFT_ABI_VERSION 0

#if defined(_WIN32) && !defined(WEFT_STATIC)
#define WEFT_API __declspec(dllimport)
#elif defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#ifdef __cplusplus
#define WEFT_NOEXCEPT noexcept
extern "C" {
#else
#define WEFT_NOEXCEPT
#endif

/* Bits of weft_features(). */
#define WEFT_FEATURE_EPOLL UINT64_C(0x1)              /* sockets by epoll */
#define WEFT_FEATURE_IOCP UINT64_C(0x2)               /* sockets by I/O completion ports */
#define WEFT_FEATURE_ASYMMETRIC_BARRIER UINT64_C(0x4) /* thieves pay for the owner's barrier */
#define WEFT_FEATURE_URING UINT64_C(0x8)              /* files by io_uring; weft/c/file.h */
#define WEFT_FEATURE_OVERLAPPED UINT64_C(0x10)        /* files by overlapped calls; weft/c/file.h */

/** Tells the version of the library that the program runs with.
 *  Returns:  WEFT_VERSION_NUMBER as the library was built with it.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API uint32_t weft_version_number(void) WEFT_NOEXCEPT;

/** Tells the version of the library as text, "MAJOR.MINOR.PATCH".
 *  Returns:  a static, NUL-terminated string; the library owns it.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API const char *weft_version_text(void) WEFT_NOEXCEPT;

/** Tells the number of the binary interface that the library offers; a program compares it with WEFT_ABI_VERSION.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API uint32_t weft_abi_version(void) WEFT_NOEXCEPT;

/** Tells what this build on this machine can do.
 *  Returns:  a set of WEFT_FEATURE_* bits.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API uint64_t weft_features(void) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
