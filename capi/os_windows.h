/* SPDX-License-Identifier: MIT
 *
 * os_windows.h: the types of os.h on Windows.
 *
 * MinGW's _Thread_local is a call and a search (emutls), too slow for a word that is read with each op. So the words of a thread stand in the
 * section for such, as a compiler of Microsoft's would put them: the loader gives each thread a copy of it, at an address that the thread's
 * block tells.
 */
#ifndef WEFT_OS_WINDOWS_H
#define WEFT_OS_WINDOWS_H

#include <stdint.h>

/* SRWLOCK, CONDITION_VARIABLE and HANDLE, without windows.h. */
typedef struct lane_mutex {
    void *system;
} lane_mutex;
typedef struct lane_condition {
    void *system;
} lane_condition;
typedef void *lane_thread;
typedef unsigned lane_thread_result; /* 0 */

extern unsigned long _tls_index; /* of this module; the C runtime's */

#if defined(__x86_64__)
static inline char *lane_local_block(void) {
    char **blocks;
    __asm__("movq %%gs:0x58, %0" : "=r"(blocks)); /* TEB.ThreadLocalStoragePointer */
    return blocks[_tls_index];
}
#else
#error "the thread's block of this processor is not known"
#endif

#define LANE_LOCAL(type, name)                                                                          \
    extern type name##_local;                                                                           \
    static inline type *name##_here(void) {                                                             \
        type *here;                                                                                     \
        __asm__("leaq " #name "_local@SECREL32(%1), %0" : "=r"(here) : "r"(lane_local_block()));       \
        return here;                                                                                    \
    }                                                                                                   \
    _Static_assert(1, "takes a semicolon")
#define LANE_LOCAL_IS(type, name) __attribute__((section(".tls$LANE"), used)) type name##_local = 0

#define lane_self (*lane_self_here())
#define lane_watched (*lane_watched_here())
#define lane_stack_half (*lane_stack_half_here())
#define lane_ops_floating (*lane_ops_floating_here())
#define blocking_self (*blocking_self_here())

/* Times of threads are counted at the clock's ticks, of which there are 64 a second at the least. */
enum { LANE_CPU_LAG_NS = 20000000 };

#endif
