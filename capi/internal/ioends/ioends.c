/* SPDX-License-Identifier: MIT
 *
 * ioends.c: what io.c and poll_*.c need of the lane, for tests without one: queues are lists that Go empties.
 */
#include "ioends.h"

#include <stdlib.h>
#include <time.h>

#include "export.h"
#include "lane_internal.h"

LANE_LOCAL_IS(lane_worker *, lane_self);
lane_runtime lane_table[LANE_RUNTIMES_MAX];
bool lane_asymmetric;
_Atomic uint32_t lane_forked;

static _Thread_local weft_op *has_run;
static _Thread_local uintptr_t *pushed;
static _Thread_local uint32_t pushes;

static void run(weft_op *op) { has_run = op; }

uintptr_t ends_run(void) { return (uintptr_t)run; }

void lane_push_quiet(lane_worker *worker, void *runnable) {
    (void)worker;
    if (pushes == ENDS_READY) abort();
    pushed[pushes++] = (uintptr_t)runnable;
}

void lane_push_behind_quiet(lane_worker *worker, void *runnable) { lane_push_quiet(worker, runnable); }

void lane_finish(lane_runtime *runtime, weft_op *op) {
    (void)runtime;
    weftgo_ends_queue((uintptr_t)op);
}

int weft_schedule_local(weft_runtime runtime, void *runnable, int behind) {
    (void)runtime, (void)runnable, (void)behind;
    return WEFT_ENOTWORKER;
}

void lane_pause(uint32_t spins) { (void)spins; }

LANE_COLD void lane_enter_contended(lane_worker *worker) { (void)worker; }

#if defined(_WIN32)
#include <windows.h>

int64_t lane_now(void) {
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return now.QuadPart / frequency.QuadPart * 1000000000 + now.QuadPart % frequency.QuadPart * 1000000000 / frequency.QuadPart;
}
#else
int64_t lane_now(void) { return 0; } /* only for a statistic */
#endif

#if defined(_WIN32)
weft_op *flight_arrived(void *overlapped) { return overlapped; } /* none comes */
#else
uint32_t flight_collect(lane_runtime *runtime, bool behind) { return (void)runtime, (void)behind, 0; }
#endif

int ends_start(uintptr_t op, uint64_t id, uint16_t kind, uint16_t flags, uintptr_t data, uint64_t length, uintptr_t endpoint) {
    weft_io *io = (weft_io *)op;
    weft_descriptor descriptor = {id};
    switch (kind) {
    case IO_RECEIVE: return weft_recv(io, descriptor, (void *)data, length, flags);
    case IO_SEND: return weft_send(io, descriptor, (void *)data, length, flags);
    case IO_ACCEPT: return weft_accept(io, descriptor);
    case IO_RECEIVE_FROM: return weft_recv_from((weft_datagram *)io, descriptor, (void *)data, length);
    case IO_SEND_TO: return weft_send_to((weft_datagram *)io, descriptor, (void *)data, length, (const weft_endpoint *)endpoint);
    case IO_CONNECT: return weft_connect(io, descriptor, (const weft_endpoint *)endpoint);
    }
    return WEFT_ENOTSUP;
}

int ends_cancel(uintptr_t io) { return weft_io_cancel((weft_io *)io); }

uintptr_t ends_retry(uintptr_t op) {
    has_run = NULL;
    ((weft_op *)op)->run((weft_op *)op);
    return (uintptr_t)has_run;
}

uint32_t ends_poll(uintptr_t runtime, int64_t timeout_ns, uintptr_t *ready, uint32_t *events) {
    static _Thread_local lane_worker worker; /* only its statistics are written */
    uintptr_t order[ENDS_READY];
    pushed = order;
    pushes = 0;
    *events = lane_poll((lane_runtime *)runtime, &worker, timeout_ns);
    for (uint32_t i = 0; i < pushes; i++) ready[i] = order[timeout_ns == 0 ? i : pushes - 1 - i];
    return pushes;
}
