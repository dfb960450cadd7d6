/* SPDX-License-Identifier: MIT
 *
 * cancel_host.h: what the Go end of cancellation needs of C; cancel.Host has the rules. Used by cancel.go, and by
 * internal/ends for the tests of both ends.
 */
#ifndef WEFT_CANCEL_HOST_H
#define WEFT_CANCEL_HOST_H

#include "weft/c/cancel.h"

uint64_t weft_cancel_thread(void);                            /* cancel.c: who the calling thread is, at both ends */
void weft_cancel_call_go(void *context);                      /* a weft_cancel_fn: calls a function of Go by its number */
void weft_cancel_call(uintptr_t callback, uintptr_t context); /* calls a weft_cancel_fn, for Go */

/* Go. A panic in it ends the program, for it may have C frames above it. */
extern void weftgo_cancel_dispatch(uintptr_t context);

#endif
