/* SPDX-License-Identifier: MIT
 *
 * cancel.c: the C end of cancellation. cancel/request.go and cancel/register.go are the Go end, with the same steps on the
 * same words; cancel/doc.go has the protocol, docs/models/cancel.pml the model. Any thread, any end, at any time.
 *
 * Everything but weft_cancel_source.state_ is read and written under the source's lock, so acquire and release are enough
 * everywhere: no decision rests on the order of two words. weft_cancel_registration.source_ is the registrant's alone.
 * The public header must be valid C++ and cannot say _Atomic, so the atomics here are the compiler's C11 builtins.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "cancel_host.h"
#include "delay.h"
#include "tsan.h"

#include <stdbool.h>
#include <stddef.h>
#if !defined(_WIN32)
#include <errno.h>
#include <sched.h>
#include <time.h>
#endif

/* Bits of weft_cancel_source.state_. */
enum { SOURCE_REQUESTED = 1, SOURCE_LOCKED = 2 };

/* weft_cancel_registration.state_, under the lock of its source. */
enum { REGISTRATION_IDLE = 0, REGISTRATION_WAITING = 1, REGISTRATION_RUNNING = 2, REGISTRATION_CALLED = 3 };

/* The operating system's part: to give the CPU away, and to sleep. */
#if defined(_WIN32)
__declspec(dllimport) int __stdcall SwitchToThread(void);
__declspec(dllimport) void __stdcall Sleep(unsigned long milliseconds);
static void os_yield(void) { SwitchToThread(); }
static void os_sleep(long ns) { Sleep((unsigned long)(ns / 1000000)); }
#else
static void os_yield(void) { sched_yield(); }
static void os_sleep(long ns) {
    int saved = errno; /* the caller's errno stays as it is, also when a signal ends the sleep */
    struct timespec span = {.tv_sec = 0, .tv_nsec = ns};
    nanosleep(&span, NULL);
    errno = saved;
}
#endif

/* Waits a little, longer each time: for the lock, whose holder may have lost its CPU, and for a callback that runs on
 * another thread. Steps and limits are those of pause in cancel/lock.go. Sleeping beats a futex here: nobody has to wake anybody,
 * so whoever ran the callback need not touch memory that the one who waited may already have freed. */
static void cancel_pause(unsigned attempt) {
    if (attempt < 64) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    } else if (attempt < 128) {
        os_yield();
    } else {
        long ns = 50000L << (attempt - 128 < 5 ? attempt - 128 : 5);
        os_sleep(ns < 1000000 ? ns : 1000000);
    }
}

/* Who the calling thread is: a number that no other living thread has, and never 0. Go gets it through cancel.Host.Thread. */
#if defined(_WIN32)
__declspec(dllimport) unsigned long __stdcall GetCurrentThreadId(void);
uint64_t weft_cancel_thread(void) { return GetCurrentThreadId(); }
#else
static _Thread_local __attribute__((tls_model("initial-exec"))) char cancel_self; /* for its address */
uint64_t weft_cancel_thread(void) { return (uint64_t)(uintptr_t)&cancel_self; }
#endif

/* Locks a source and sets bits in the same step; returns the bits from before.
 *   acquire pairs with the release in cancel_unlock and with SourceMemory.unlock in cancel/lock.go: what the last holder
 *           did to the lists is visible. Weaker, a registration could be linked over one that it does not see.
 *   release (needed when set is SOURCE_REQUESTED) pairs with weft_cancel_requested and SourceMemory.Requested, which may
 *           see the bit while the lock is still held: what the requester did before is visible to them. */
static uint32_t cancel_lock(weft_cancel_source *source, uint32_t set) {
    uint32_t seen = __atomic_load_n(&source->state_, __ATOMIC_RELAXED);
    for (unsigned attempt = 0;;) {
        if (seen & SOURCE_LOCKED) {
            cancel_pause(attempt++);
            seen = __atomic_load_n(&source->state_, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&source->state_, &seen, seen | set | SOURCE_LOCKED, 1, __ATOMIC_ACQ_REL,
                                               __ATOMIC_RELAXED)) {
            tsan_acquire(source);
            return seen;
        }
    }
}

/* release pairs with the acquire in cancel_lock and with SourceMemory.lock in cancel/lock.go. It is the holder's last access: whoever locks
 * next may free the source. A plain store will do, because only the holder changes the word. */
static void cancel_unlock(weft_cancel_source *source, uint32_t bits) {
    tsan_release(source);
    __atomic_store_n(&source->state_, bits, __ATOMIC_RELEASE);
}

/* The two lists of a source, under its lock. */

static void cancel_link(void **first, weft_cancel_registration *registration) {
    weft_cancel_registration *next = *first;
    registration->previous_ = NULL;
    registration->next_ = next;
    if (next != NULL) next->previous_ = registration;
    *first = registration;
}

static void cancel_unlink(void **first, weft_cancel_registration *registration) {
    weft_cancel_registration *previous = registration->previous_, *next = registration->next_;
    if (previous != NULL)
        previous->next_ = next;
    else
        *first = next;
    if (next != NULL) next->previous_ = previous;
}

/* Before and after a callback, under the lock. A callback that deregistered its own registration on this thread has taken
 * it off the list, and it may be freed memory: so it is looked for by address, and by thread, for the memory may have become
 * a registration that now runs on another thread. On this thread it cannot be running anew: that would have ended
 * inside the callback. RegistrationMemory.begin and SourceMemory.end in cancel/request.go. */
static void cancel_begin(weft_cancel_source *source, weft_cancel_registration *registration) {
    registration->state_ = REGISTRATION_RUNNING;
    registration->thread_ = weft_cancel_thread();
    cancel_link(&source->running_, registration);
}

static void cancel_end(weft_cancel_source *source, const weft_cancel_registration *ran) {
    for (weft_cancel_registration *r = source->running_; r != NULL; r = r->next_) {
        if (r != ran || r->thread_ != weft_cancel_thread()) continue;
        cancel_unlink(&source->running_, r);
        r->state_ = REGISTRATION_CALLED;
        return;
    }
}

int weft_cancel_request(weft_cancel_source *source) {
    if (source == NULL) return WEFT_EINVAL;
    if (weft_cancel_requested(source)) return 1;
    tsan_release(source);
    if (cancel_lock(source, SOURCE_REQUESTED) & SOURCE_REQUESTED) {
        cancel_unlock(source, SOURCE_REQUESTED);
        return 1;
    }
    for (weft_cancel_registration *r; (r = source->newest_) != NULL;) {
        cancel_unlink(&source->newest_, r);
        cancel_begin(source, r);
        weft_cancel_fn callback = r->callback_;
        void *context = r->context_;
        cancel_unlock(source, SOURCE_REQUESTED);
        WEFT_TEST_DELAY(cancel_request_begun);
        callback(context);
        WEFT_TEST_DELAY(cancel_request_called);
        cancel_lock(source, 0);
        /* The end of one and the choice of the next are one step: were the lock given back between them, whoever
         * deregistered the last registration could free the source too early. */
        cancel_end(source, r);
    }
    cancel_unlock(source, SOURCE_REQUESTED);
    return WEFT_OK;
}

int weft_cancel_requested(weft_cancel_token token) {
    /* acquire pairs with the release in cancel_lock and SourceMemory.lock: who sees the request sees what came before it. */
    bool requested = token != NULL && (__atomic_load_n(&token->state_, __ATOMIC_ACQUIRE) & SOURCE_REQUESTED) != 0;
    if (requested) tsan_acquire(token);
    return requested;
}

int weft_cancel_register(weft_cancel_token token, weft_cancel_registration *registration, weft_cancel_fn callback,
                         void *context) {
    if (registration == NULL || callback == NULL) return WEFT_EINVAL;
    if (registration->source_ != NULL) return WEFT_EBUSY;
    if (token == NULL) return WEFT_OK;
    weft_cancel_source *source = (weft_cancel_source *)token; /* const is the holder's promise, not the object's nature */
    registration->callback_ = callback;
    registration->context_ = context;
    registration->source_ = source;
    tsan_release(context);
    /* The decision falls under the lock: either the requester will find the registration, or it is seen here that it
     * came too late. */
    WEFT_TEST_DELAY(cancel_register_written);
    uint32_t bits = cancel_lock(source, 0);
    if (!(bits & SOURCE_REQUESTED)) {
        registration->state_ = REGISTRATION_WAITING;
        cancel_link(&source->newest_, registration);
        cancel_unlock(source, bits);
        return WEFT_OK;
    }
    cancel_begin(source, registration);
    cancel_unlock(source, bits);
    WEFT_TEST_DELAY(cancel_register_begun);
    callback(context);
    cancel_lock(source, 0);
    cancel_end(source, registration);
    cancel_unlock(source, bits);
    return 1;
}

int weft_cancel_deregister(weft_cancel_registration *registration) {
    if (registration == NULL) return WEFT_EINVAL;
    weft_cancel_source *source = registration->source_;
    if (source == NULL) return WEFT_OK;
    WEFT_TEST_DELAY(cancel_deregister);
    uint32_t bits = cancel_lock(source, 0);
    for (unsigned attempt = 0;
         registration->state_ == REGISTRATION_RUNNING && registration->thread_ != weft_cancel_thread(); attempt++) {
        cancel_unlock(source, bits);
        cancel_pause(attempt);
        bits = cancel_lock(source, 0);
    }
    int called = registration->state_ != REGISTRATION_WAITING;
    if (registration->state_ == REGISTRATION_WAITING) cancel_unlink(&source->newest_, registration);
    if (registration->state_ == REGISTRATION_RUNNING) cancel_unlink(&source->running_, registration);
    registration->state_ = REGISTRATION_IDLE;
    registration->source_ = NULL;
    cancel_unlock(source, bits);
    if (called) tsan_acquire(registration->context_);
    return called;
}
