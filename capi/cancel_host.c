/* SPDX-License-Identifier: MIT
 *
 * cancel_host.c: the two ways between callbacks of C and of Go. Neither is on a path that is taken when nothing is
 * being cancelled.
 */
#include "cancel_host.h"

#include "tsan.h"

void weft_cancel_call_go(void *context) { weftgo_cancel_dispatch((uintptr_t)context); }

/* The request came from Go, whose lock on the source ThreadSanitizer has not seen: the context stands for it. */
void weft_cancel_call(uintptr_t callback, uintptr_t context) {
    tsan_acquire((void *)context);
    ((weft_cancel_fn)callback)((void *)context);
    tsan_release((void *)context);
}
