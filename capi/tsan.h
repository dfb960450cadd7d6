/* SPDX-License-Identifier: MIT
 *
 * tsan.h: what ThreadSanitizer must know of the library. It sees neither Go's code nor the lane's plain instructions, so in a build for
 * it (-DWEFT_TSAN, the preset tsan) the lane announces each handover of user's memory with a release on the address of what is handed
 * over, and accepts it with an acquire: op to run, registration to callback, last op to the return of stop. Layouts and steps are
 * the same in all builds. The C++ headers announce their own handovers too, for programs that use a library without this.
 */
#ifndef WEFT_TSAN_H
#define WEFT_TSAN_H

#include <stddef.h>

#if defined(WEFT_TSAN)
/* Weak: the program brings them, if it is one that looks for races. */
extern __attribute__((weak)) void __tsan_acquire(void *address);
extern __attribute__((weak)) void __tsan_release(void *address);
static inline void tsan_acquire(const void *what) {
    if (what != NULL && __tsan_acquire != NULL) __tsan_acquire((void *)what);
}
static inline void tsan_release(const void *what) {
    if (what != NULL && __tsan_release != NULL) __tsan_release((void *)what);
}
#else
static inline void tsan_acquire(const void *what) { (void)what; }
static inline void tsan_release(const void *what) { (void)what; }
#endif

#endif
