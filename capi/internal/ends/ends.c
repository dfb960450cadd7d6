/* SPDX-License-Identifier: MIT
 *
 * ends.c: what the tests that let the two ends of cancellation meet need of C, besides cancel.c itself.
 */
#include "ends.h"

#include "cancel_host.h"

/* Another way to Go than weft_cancel_call_go, so that the Go end takes it for any function of C. */
void ends_callback(void *context) { weft_cancel_call_go(context); }

/* weft_cancel_register for Go, which must not make pointers of numbers. */
int ends_register(weft_cancel_token token, weft_cancel_registration *registration, uintptr_t callback, uintptr_t context) {
    return weft_cancel_register(token, registration, (weft_cancel_fn)callback, (void *)context);
}

const size_t ends_layout[ENDS_LAYOUT] = {
    sizeof(weft_cancel_source),
    offsetof(weft_cancel_source, state_),
    offsetof(weft_cancel_source, newest_),
    offsetof(weft_cancel_source, running_),
    sizeof(weft_cancel_registration),
    offsetof(weft_cancel_registration, callback_),
    offsetof(weft_cancel_registration, context_),
    offsetof(weft_cancel_registration, source_),
    offsetof(weft_cancel_registration, previous_),
    offsetof(weft_cancel_registration, next_),
    offsetof(weft_cancel_registration, thread_),
    offsetof(weft_cancel_registration, state_),
};
