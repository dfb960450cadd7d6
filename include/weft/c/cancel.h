/* SPDX-License-Identifier: MIT
 *
 * weft/c/cancel.h: asking work to end early.
 *
 * A source is requested once. Whoever holds the source may register callbacks with it; they run on the requester's
 * thread, inside weft_cancel_request, newest first. A registration whose source was already requested runs at once, on
 * the registering thread. Deregistering waits for a callback that is running on another thread, and never for itself: a
 * callback may deregister and free its own registration, or any other (one that was still to run never does), or register
 * new ones. A token is a pointer to a source that one promises only to look at and register with.
 *
 * Rules:
 *  1. All memory is the caller's and must not move. A source outlives its registrations and the calls that name it.
 *  2. A registration is deregistered before its memory goes, by one thread. That may begin as soon as its callback has
 *     begun, although weft_cancel_register has not yet returned on another thread.
 *  3. Once weft_cancel_deregister has returned, no other thread touches the registration. When it was the last one, none
 *     touches the source either, although the call of weft_cancel_request or weft_cancel_register that ran its callback may
 *     not have returned there yet: both may be freed. Only where a callback deregistered its own registration the
 *     source stays until the call that ran it has returned.
 *  4. Callbacks are short: who deregisters waits for them. They must not throw, longjmp or end their thread.
 *  5. Callbacks that run at once on two threads must not deregister each other's registration: each would wait for
 *     the other, for ever. That takes two sources, or one with a registration that came after its request.
 */
#ifndef WEFT_C_CANCEL_H
#define WEFT_C_CANCEL_H

#include "error.h"

/** Zeroed memory is a source that has not been requested. */
typedef struct weft_cancel_source {
    uint32_t state_;    /* weft's: requested, locked */
    uint32_t reserved_; /* weft's */
    void *newest_;      /* weft's: registrations that wait, newest first */
    void *running_;     /* weft's: registrations whose callback runs */
} weft_cancel_source;

typedef const weft_cancel_source *weft_cancel_token; /* NULL is a token that is never requested */

typedef void (*weft_cancel_fn)(void *context);

/** Zeroed memory is a registration that is not registered. */
typedef struct weft_cancel_registration {
    weft_cancel_fn callback_;    /* weft's, set by weft_cancel_register */
    void *context_;              /* weft's */
    weft_cancel_source *source_; /* weft's */
    void *previous_;             /* weft's */
    void *next_;                 /* weft's */
    uint64_t thread_;            /* weft's: who runs the callback */
    uint32_t state_;             /* weft's */
    uint32_t reserved_;          /* weft's */
} weft_cancel_registration;

#ifdef __cplusplus
extern "C" {
#endif

/** Requests cancellation: the first call runs every registered callback on this thread and returns when they are done.
 *  Registrations that come later run by themselves, and may still run when this returns.
 *  Params:   source  not NULL
 *  Returns:  WEFT_OK (this call was the first); 1 (it had been requested before; returns at once); WEFT_EINVAL.
 *  Threads:  any; calls back. A callback may itself call anything in this header.
 *  Since:    0.1 */
WEFT_API int weft_cancel_request(weft_cancel_source *source) WEFT_NOEXCEPT;

/** Tells whether cancellation was requested.
 *  Params:   token  NULL gives 0
 *  Returns:  1 or 0.
 *  Threads:  any; never blocks, never calls back.
 *  Since:    0.1 */
WEFT_API int weft_cancel_requested(weft_cancel_token token) WEFT_NOEXCEPT;

/** Registers a callback.
 *  Params:   token         NULL: nothing is registered and WEFT_OK returned
 *            registration  not NULL; idle (zeroed or deregistered)
 *            callback      not NULL
 *            context       passed to callback; may be NULL
 *  Returns:  WEFT_OK (registered); 1 (already requested: callback was called by this call, on this thread);
 *            WEFT_EINVAL; WEFT_EBUSY (registration is in use).
 *  Owns:     registration is weft's until weft_cancel_deregister returns.
 *  Threads:  any; may call back; waits only for short list operations of other threads.
 *  Since:    0.1 */
WEFT_API int weft_cancel_register(weft_cancel_token token, weft_cancel_registration *registration,
                                  weft_cancel_fn callback, void *context) WEFT_NOEXCEPT;

/** Deregisters: when it returns the callback has run to its end, or will never run. Called from inside the callback
 *  itself it does not wait.
 *  Params:   registration  not NULL; idle ones are allowed
 *  Returns:  WEFT_OK (it had not been called); 1 (it has been called, or is being called by this very thread);
 *            WEFT_EINVAL.
 *  Threads:  any; waits while the callback runs on another thread; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_cancel_deregister(weft_cancel_registration *registration) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
