/* SPDX-License-Identifier: MIT
 *
 * io.c: I/O ops. An op takes its direction's slot, makes its system call, and if the system would make it wait, stays in the
 * slot until an event (poll_linux.c, core/descriptor.go), a cancel, a close or a stop takes it out. slot.h has the protocol,
 * docs/models/op.pml the model, core/io.go the twin in Go. Where the system reports completion (IO_COMPLETES) only the end of its transfer
 * takes the op out; core/transfer.go says who owns system_ when.
 *
 * What an op costs beside its system calls, in locked instructions: begin and claim, and release, when it completes at once;
 * arm, the event and reclaim more when it waits. Each is one step of the protocol; the rest are plain loads and stores.
 */
#include "address.h"
#include "delay.h"
#include "io.h"
#include "io_op.h"

#include <string.h>

#include "crossing.h"
#include "end.h"
#include "export.h"
#include "lane_internal.h"
#include "slot.h"
#include "tsan.h"

enum {
    CALLS_MAX = 16,  /* system calls of an op before it gives others a turn; an op of WEFT_IO_ALL may need many */
    STREAK_MAX = 64, /* ops completed at once while one op runs; the next one goes through the queue */
};

/* Handles. */

static lane_runtime *runtime_of_slot(uint64_t slot) {
    lane_worker *self = lane_self;
    if (LANE_LIKELY(self != NULL && (self->runtime_id & 0xff) == slot)) return lane_runtime_at(self);
    if (slot - 1 >= LANE_RUNTIMES_MAX) return NULL;
    lane_runtime *runtime = &lane_table[slot - 1];
    /* acquire, as in lane_runtime_of. */
    return atomic_load_explicit(&runtime->id, memory_order_acquire) != 0 ? runtime : NULL;
}

int io_find(weft_descriptor handle, lane_runtime **runtime, lane_descriptor **descriptor) {
    if (LANE_UNLIKELY(lane_self == NULL && atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0)) return WEFT_EFORKED;
    *runtime = runtime_of_slot(handle.id >> 24 & 0xff);
    uint64_t index = (handle.id & 0xffffff) - 1;
    uint64_t generation = handle.id >> 32;
    if (LANE_UNLIKELY(*runtime == NULL || index >= (uint64_t)LANE_CHUNKS_MAX * LANE_CHUNK_DESCRIPTORS || (generation & 1) == 0))
        return WEFT_EBADHANDLE;
    /* acquire pairs with the store of the chunk in take (core/descriptor.go): with it come the records. */
    uint64_t chunk = atomic_load_explicit(&(*runtime)->chunks[index / LANE_CHUNK_DESCRIPTORS], memory_order_acquire);
    if (LANE_UNLIKELY(chunk == 0)) return WEFT_EBADHANDLE;
    *descriptor = (lane_descriptor *)(uintptr_t)chunk + index % LANE_CHUNK_DESCRIPTORS;
    /* acquire pairs with the store in Open: with the generation come the record's other fields. */
    bool open = atomic_load_explicit(&(*descriptor)->generation, memory_order_acquire) == generation;
    return LANE_LIKELY(open) ? WEFT_OK : WEFT_EBADHANDLE;
}

/* Whether the record is still the handle's. seq_cst, after a claim or a pin: the closer changes the generation before he
 * looks whether anybody is inside (shut, core/descriptor.go), so either he waits for us, or we see the change. */
static inline bool still_open(const lane_descriptor *descriptor, weft_descriptor handle) {
    return LANE_LIKELY(atomic_load_explicit(&descriptor->generation, memory_order_seq_cst) == handle.id >> 32);
}

int io_pin(weft_descriptor handle, lane_descriptor **descriptor) {
    lane_runtime *runtime;
    int rc = io_find(handle, &runtime, descriptor);
    if (rc != WEFT_OK) return rc;
    atomic_fetch_add_explicit(&(*descriptor)->hints, IO_PIN, memory_order_seq_cst);
    WEFT_TEST_DELAY(io_pinned);
    if (still_open(*descriptor, handle)) return WEFT_OK;
    io_unpin(*descriptor);
    return WEFT_EBADHANDLE;
}

/* release: the closer, who sees the pin gone, comes after the call. */
void io_unpin(lane_descriptor *descriptor) {
    atomic_fetch_sub_explicit(&descriptor->hints, IO_PIN, memory_order_release);
}

/* Results. */

static inline bool io_moves(const weft_io *io) { return io->kind_ <= IO_SEND_BUFFERS; }

static uint64_t io_total(const weft_io *io) {
    if (LANE_LIKELY(io->kind_ <= IO_SEND)) return io->length_;
    uint64_t total = 0;
    const weft_buffer *buffers = io->data_;
    for (uint64_t i = 0; i < io->length_; i++) total += buffers[i].length;
    return total;
}

static inline void io_finish(lane_descriptor *descriptor, int direction, weft_io *io, int status, int os_error) {
    slot_release(descriptor, &descriptor->slot[direction]);
    WEFT_TEST_DELAY(io_finish_released);
    io_complete(io, status, os_error);
}

int io_register(lane_runtime *runtime, int32_t system, uint32_t kind, weft_descriptor *descriptor) {
    LANE_COUNT(runtime, crossings, 1);
    uint64_t handle = 0;
    lane_crossing crossing;
    lane_cross(&crossing);
    int rc = weftgo_descriptor_open(atomic_load_explicit(&runtime->id, memory_order_relaxed), system, kind, &handle);
    lane_crossed(&crossing);
    if (rc == WEFT_OK) descriptor->id = handle;
    return rc;
}

/* A result of accept. Its slot is free by now: who closes the listener while we are in Go must not wait for us. */
static void io_accepted(weft_io *io, lane_runtime *runtime, uint32_t hints, int32_t system) {
    WEFT_TEST_DELAY(io_accepted);
    int rc = io_register(runtime, system, hints & IO_HINT_STREAM, &io->accepted);
    if (rc != WEFT_OK) io_close(system);
    io_complete(io, rc, 0);
}

static void io_conclude(lane_runtime *runtime, lane_descriptor *descriptor, int direction, weft_io *io, io_attempt attempt) {
    if (LANE_UNLIKELY(attempt.os_error != 0)) {
        io_finish(descriptor, direction, io, weft_error_from_os(attempt.os_error), attempt.os_error);
    } else if (LANE_UNLIKELY(io->kind_ == IO_ACCEPT)) {
        uint32_t hints = atomic_load_explicit(&descriptor->hints, memory_order_relaxed);
        slot_release(descriptor, &descriptor->slot[direction]);
        io_accepted(io, runtime, hints, attempt.accepted);
    } else {
        bool ended = (io->flags_ & WEFT_IO_ALL) && io_moves(io) && io->count < io_total(io);
        io_finish(descriptor, direction, io, ended ? WEFT_EOF : WEFT_OK, 0);
    }
}

/* The way to a result. */

/* Whether a receive need not be tried, since it would be refused: the last one on this TCP socket took less than it asked for, nothing has been
 * reported since, and the peer has not ended.
 *
 * A short receive leaves the queue empty at a moment t within that call. What comes after t is an edge, and so an event that is handled after t,
 * which either sets READY, or finds an op armed. READY, in turn, is only cleared by somebody who makes a call next, and who forgets the short receive
 * if that call fails; the one who claimed the slot just now found it clear (*news is false). So there is nothing, or there is an event still to come;
 * and an op that arms now is found by it. Two things make a receive short although more is there: the end of the stream right behind the bytes, which
 * is no edge of its own when both came before the event; and urgent data, at which a receive stops. The event that reports them says so (EPOLLRDHUP,
 * EPOLLPRI) and leaves HANGUP, for good; and it is handled before the receive is made, or comes after it. Mutants DRAINED_ALWAYS, HANGUP_LATE.
 *
 * relaxed: DRAINED is written by the holders of the slot, HANGUP before the event's step on the slot; the claim has acquired both. */
static inline bool io_vain(const lane_descriptor *descriptor, int direction) {
    return direction == LANE_RECEIVE && (atomic_load_explicit(&descriptor->hints, memory_order_relaxed) &
                                         (LANE_HINT_RECEIVE_DRAINED | LANE_HINT_HANGUP)) == LANE_HINT_RECEIVE_DRAINED;
}

/* Keeps what a receive has told about the stream. One that failed has left there what it could have taken, and used up the event that told of
 * it. Locked only when it changes; in a dialogue every receive is short. */
static inline void io_note(lane_descriptor *descriptor, uint32_t hints, bool partial) {
    bool drained = partial && (hints & IO_HINT_STREAM);
    if (drained == ((hints & LANE_HINT_RECEIVE_DRAINED) != 0)) return;
    if (drained)
        atomic_fetch_or_explicit(&descriptor->hints, LANE_HINT_RECEIVE_DRAINED, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&descriptor->hints, ~(uint32_t)LANE_HINT_RECEIVE_DRAINED, memory_order_relaxed);
}

/* Whether nobody wants the op to wait any more. seq_cst, between the slot's claim and its arming: against slot_withdraw, see
 * there. */
static inline bool io_unwanted(const lane_runtime *runtime, const weft_io *io) {
    return __atomic_load_n(&io->state_, __ATOMIC_SEQ_CST) == IO_CANCELLING ||
           atomic_load_explicit(&runtime->state, memory_order_seq_cst) != LANE_RUNNING;
}

/* Queues behind everything that is runnable here. */
static void io_queue_behind(lane_runtime *runtime, weft_op *op) {
    weft_runtime handle = {atomic_load_explicit(&runtime->id, memory_order_relaxed)};
    if (weft_schedule_local(handle, op, 1) != WEFT_OK) lane_finish(runtime, op);
}

/* Whether the system has the op's system_. */
static inline bool io_is_lent(const weft_io *io) { return IO_COMPLETES && (io->flags_ & IO_UNDER_WAY) != 0; }

/* One system call; an op that has nothing to move needs none. Of an op that is lent, what has become of that. */
static inline io_attempt io_call(lane_descriptor *descriptor, uint32_t hints, weft_io *io) {
    int32_t system = atomic_load_explicit(&descriptor->system, memory_order_relaxed);
    io_attempt attempt = {0};
    if (io_is_lent(io))
        attempt = io_collect(system, hints, io);
    else if (LANE_LIKELY(!io_moves(io) || io->count < io_total(io)))
        attempt = io_try(system, hints, io);
    if (IO_COMPLETES) io->flags_ = (uint16_t)((io->flags_ & ~IO_UNDER_WAY) | (attempt.wait ? IO_UNDER_WAY : 0));
    return attempt;
}

/* Asks the system for the end of a transfer; false when there is none. The slot is held, so the descriptor is open. */
static bool io_ask_for_end(lane_descriptor *descriptor, weft_io *io) {
    if (!io_is_lent(io)) return false;
    io_interrupt(atomic_load_explicit(&descriptor->system, memory_order_relaxed), io);
    return true;
}

/* Collects what a transfer has brought to an op whose descriptor is closed. Its bytes are counted; a connection is of no use. */
static LANE_COLD void io_discard(weft_io *io) {
    if (!io_is_lent(io)) return;
    io->flags_ &= (uint16_t)~IO_UNDER_WAY;
    io_attempt attempt = io_collect(-1, 0, io);
    io->count += attempt.moved;
    if (io->kind_ == IO_ACCEPT && attempt.os_error == 0) io_close(attempt.accepted);
}

/* Takes an op whose slot is held to its result (true), or leaves it waiting (false): then it is not the caller's any more,
 * and may be gone. vain tells that the first call would be refused. */
static bool io_settle(lane_runtime *runtime, lane_descriptor *descriptor, int direction, weft_io *io, bool vain) {
    _Atomic uint64_t *slot = &descriptor->slot[direction];
    for (int calls = 0;;) {
        if (!vain) {
            if (LANE_UNLIKELY(++calls > CALLS_MAX) && !io_is_lent(io)) {
                ((weft_op *)io->system_)->run = io_retry;
                slot_requeue(slot, io);
                io_queue_behind(runtime, (weft_op *)io->system_);
                return false;
            }
            uint32_t hints = atomic_load_explicit(&descriptor->hints, memory_order_relaxed);
            io_attempt attempt = io_call(descriptor, hints, io);
            if (!attempt.wait) {
                io->count += attempt.moved;
                if (direction == LANE_RECEIVE && (attempt.moved != 0 || attempt.os_error != 0)) io_note(descriptor, hints, attempt.partial);
                /* The system gave up a transfer though nobody has asked for the end of this op: the descriptor was closed; or a cancel was
                 * late, and hit what its op did next, which is begun again if it can have lost nothing. */
                if (IO_COMPLETES && attempt.os_error != 0 && weft_error_from_os(attempt.os_error) == WEFT_ECANCELED &&
                    !io_unwanted(runtime, io)) {
                    if (atomic_load_explicit(slot, memory_order_seq_cst) & LANE_SLOT_CLOSED) {
                        io_finish(descriptor, direction, io, WEFT_ECLOSED, attempt.os_error);
                        return true;
                    }
                    if (direction == LANE_RECEIVE && attempt.moved == 0) continue;
                }
                if ((IO_COMPLETES && attempt.os_error != 0) || attempt.moved == 0 || !(io->flags_ & WEFT_IO_ALL) || io->count >= io_total(io)) {
                    io_conclude(runtime, descriptor, direction, io, attempt);
                    return true;
                }
                vain = io_vain(descriptor, direction);
                if (!vain) continue;
            }
        }
        vain = false;
        WEFT_TEST_DELAY(io_settle_tried);
        if (LANE_UNLIKELY(io_unwanted(runtime, io)) && !io_ask_for_end(descriptor, io)) {
            io_finish(descriptor, direction, io, WEFT_ECANCELED, 0);
            return true;
        }
        WEFT_TEST_DELAY(io_settle_looked);
        slot_armed armed = slot_arm(slot, io);
        if (LANE_UNLIKELY(armed == SLOT_CLOSED)) {
            if (!io_ask_for_end(descriptor, io)) {
                io_finish(descriptor, direction, io, WEFT_ECLOSED, 0);
                return true;
            }
            armed = slot_arm_closed(slot, io);
        }
        if (armed == SLOT_WAITS) return false;
    }
}

/* What an event queues: io->system_ as an op. Runs on a worker. */
void io_retry(weft_op *op) {
    weft_io *io = (weft_io *)((char *)op - offsetof(weft_io, system_));
    lane_descriptor *descriptor = io_descriptor(io->descriptor_);
    int direction = io_direction(io->descriptor_);
    lane_runtime *runtime = (lane_runtime *)(uintptr_t)descriptor->runtime;
    io_errors saved = io_errors_keep();
    bool done = true;
    tsan_acquire(io);
    WEFT_TEST_DELAY(io_retry_begins);
    if (LANE_LIKELY(slot_reclaim(&descriptor->slot[direction]))) {
        done = io_settle(runtime, descriptor, direction, io, false);
    } else {
        io_discard(io);
        io_finish(descriptor, direction, io, WEFT_ECLOSED, 0);
    }
    io_errors_restore(saved);
    if (done) io->op.run(&io->op);
}

_Static_assert(sizeof((weft_io *)NULL)->system_ >= sizeof(weft_op), "the op that tries again stands in system_");

/* Takes an idle op; *before is what it was. A compare-and-swap: a cancel may come at the same time, and a second start must
 * not. */
static int io_begin(weft_io *io, uint32_t *before) {
    uint32_t state = __atomic_load_n(&io->state_, __ATOMIC_RELAXED);
    do {
        if (LANE_UNLIKELY(state == IO_STARTED || state == IO_CANCELLING)) return WEFT_EBUSY;
    } while (!__atomic_compare_exchange_n(&io->state_, &state, IO_STARTED, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    *before = state;
    return WEFT_OK;
}

/* Undoes io_begin for an op that could not be started. A request that came meanwhile is kept for the next start. */
static LANE_COLD void io_abandon(weft_io *io, uint32_t before) {
    __atomic_store_n(&io->descriptor_, NULL, __ATOMIC_RELAXED);
    uint32_t state = IO_STARTED;
    if (!__atomic_compare_exchange_n(&io->state_, &state, before, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        __atomic_store_n(&io->state_, IO_CANCELLED_EARLY, __ATOMIC_RELEASE);
}

/* An op has completed at once. Too many of these in a row on a worker, and it goes through the queue, so that a hot socket
 * starves nobody. */
static int io_immediate(lane_runtime *runtime, weft_io *io) {
    LANE_COUNT(runtime, io_immediate, 1);
    lane_worker *self = lane_self;
    if (self == NULL || lane_runtime_at(self) != runtime) return 1;
    uint64_t tick = atomic_load_explicit(&self->ticks, memory_order_relaxed);
    if (self->io_streak_tick != tick) {
        self->io_streak_tick = tick;
        self->io_streak = 0;
    }
    if (LANE_LIKELY(++self->io_streak <= STREAK_MAX)) return 1;
    io_queue_behind(runtime, &io->op);
    return WEFT_OK;
}

/* What a start is to do, apart from op and descriptor. */
typedef struct io_request {
    uint16_t kind;
    uint16_t flags;
    void *data;
    uint64_t length;
    const weft_endpoint *endpoint;
} io_request;

static inline __attribute__((always_inline)) int io_start_here(weft_io *io, weft_descriptor handle, io_request request, lane_runtime *runtime,
                                                              lane_descriptor *descriptor) {
    uint32_t before;
    int rc = io_begin(io, &before);
    if (LANE_UNLIKELY(rc != WEFT_OK)) return rc;
    if (LANE_UNLIKELY(before == IO_CANCELLED_EARLY)) {
        io->count = 0;
        io_complete(io, WEFT_ECANCELED, 0);
        return 1;
    }
    int direction = request.kind & 1 ? LANE_RECEIVE : LANE_SEND;
    /* Stands before the claim's seq_cst step, and io_unwanted's look at the state behind it: against weft_io_cancel, which
     * writes the state and then reads this. If it reads none, the look sees the request. Behind the claim it could be overtaken by the look:
     * mutant PUBLISH_LATE. */
    __atomic_store_n(&io->descriptor_, io_place(descriptor, direction), __ATOMIC_RELEASE);
    WEFT_TEST_DELAY(io_start_published);
    bool news = false;
    rc = slot_claim(&descriptor->slot[direction], &news);
    WEFT_TEST_DELAY(io_start_claimed);
    if (LANE_UNLIKELY(rc == WEFT_OK && !still_open(descriptor, handle))) {
        slot_unclaim(descriptor, &descriptor->slot[direction]);
        rc = WEFT_EBADHANDLE;
    }
    /* seq_cst, behind the claim: who stops waits for all who have claimed before (busy in core/transfer.go). */
    if (IO_COMPLETES && rc == WEFT_OK && atomic_load_explicit(&runtime->state, memory_order_seq_cst) != LANE_RUNNING) {
        slot_unclaim(descriptor, &descriptor->slot[direction]);
        rc = WEFT_ESTOPPED;
    }
    if (LANE_UNLIKELY(rc != WEFT_OK)) {
        io_abandon(io, before);
        return rc;
    }
    io->count = 0;
    io->accepted.id = 0;
    io->kind_ = request.kind;
    io->flags_ = request.flags;
    io->data_ = request.data;
    io->length_ = request.length;
    if (request.kind >= IO_CONNECT) peer_keep(io, request.endpoint);
    ((weft_op *)io->system_)->run = io_retry;
    LANE_COUNT(runtime, io_started, 1);
    tsan_release(io);
    io_errors saved = io_errors_keep();
    rc = WEFT_OK;
    if (io_settle(runtime, descriptor, direction, io, !news && io_vain(descriptor, direction))) rc = io_immediate(runtime, io);
    WEFT_TEST_DELAY(io_start_settled);
    io_errors_restore(saved);
    return rc;
}

static int io_start(weft_io *io, weft_descriptor handle, io_request request) {
    if (LANE_UNLIKELY(io == NULL || io->op.run == NULL)) return WEFT_EINVAL;
    lane_runtime *runtime;
    lane_descriptor *descriptor;
    int rc = io_find(handle, &runtime, &descriptor);
    if (LANE_UNLIKELY(rc != WEFT_OK)) return rc;
    /* relaxed: an op that slips through while a stop begins sees it before it waits (io_unwanted). */
    if (LANE_UNLIKELY(atomic_load_explicit(&runtime->state, memory_order_relaxed) != LANE_RUNNING)) return WEFT_ESTOPPED;
    WEFT_TEST_DELAY(io_start_accepted);
    lane_visit visit = lane_visit_begin(runtime);
    if (LANE_UNLIKELY(visit == LANE_VISIT_LATE)) return WEFT_ESTOPPED;
    rc = io_start_here(io, handle, request, runtime, descriptor);
    lane_visit_end(runtime, visit);
    return rc;
}

/* The public calls. Receives have odd kinds. */

_Static_assert((IO_RECEIVE & IO_RECEIVE_BUFFERS & IO_ACCEPT & IO_RECEIVE_FROM & 1) == 1, "kinds that receive are odd");
_Static_assert(((IO_SEND | IO_SEND_BUFFERS | IO_CONNECT | IO_SEND_TO) & 1) == 0, "kinds that send are even");

static int io_transfer(weft_io *io, weft_descriptor descriptor, uint16_t kind, void *data, size_t length, uint32_t flags) {
    if (LANE_UNLIKELY((data == NULL && length != 0) || (flags & ~WEFT_IO_ALL) != 0)) return WEFT_EINVAL;
    return io_start(io, descriptor, (io_request){.kind = kind, .flags = (uint16_t)flags, .data = data, .length = length});
}

int weft_recv(weft_io *io, weft_descriptor descriptor, void *data, size_t length, uint32_t flags) {
    return io_transfer(io, descriptor, IO_RECEIVE, data, length, flags);
}

int weft_send(weft_io *io, weft_descriptor descriptor, const void *data, size_t length, uint32_t flags) {
    return io_transfer(io, descriptor, IO_SEND, (void *)(uintptr_t)data, length, flags);
}

/* The system moves at most SSIZE_MAX bytes in one call, and refuses pieces that are more together. */
static int io_transfer_buffers(weft_io *io, weft_descriptor descriptor, uint16_t kind, const weft_buffer *buffers, uint32_t count,
                               uint32_t flags) {
    if (buffers == NULL || count == 0 || count > WEFT_BUFFERS_MAX) return WEFT_EINVAL;
    uint64_t room = PTRDIFF_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if ((buffers[i].data == NULL && buffers[i].length != 0) || buffers[i].length > room) return WEFT_EINVAL;
        room -= buffers[i].length;
    }
    return io_transfer(io, descriptor, kind, (void *)(uintptr_t)buffers, count, flags);
}

int weft_recv_buffers(weft_io *io, weft_descriptor descriptor, const weft_buffer *buffers, uint32_t count, uint32_t flags) {
    return io_transfer_buffers(io, descriptor, IO_RECEIVE_BUFFERS, buffers, count, flags);
}

int weft_send_buffers(weft_io *io, weft_descriptor descriptor, const weft_buffer *buffers, uint32_t count, uint32_t flags) {
    return io_transfer_buffers(io, descriptor, IO_SEND_BUFFERS, buffers, count, flags);
}

int weft_accept(weft_io *io, weft_descriptor listener) {
    return io_start(io, listener, (io_request){.kind = IO_ACCEPT});
}

int weft_connect(weft_io *io, weft_descriptor descriptor, const weft_endpoint *endpoint) {
    if (endpoint == NULL || (endpoint->family != WEFT_IPV4 && endpoint->family != WEFT_IPV6)) return WEFT_EINVAL;
    return io_start(io, descriptor, (io_request){.kind = IO_CONNECT, .endpoint = endpoint});
}

_Static_assert(offsetof(weft_datagram, io) == 0, "a datagram and its op are at the same address");

int weft_recv_from(weft_datagram *datagram, weft_descriptor descriptor, void *data, size_t length) {
    if (data == NULL && length != 0) return WEFT_EINVAL;
    return io_start((weft_io *)datagram, descriptor, (io_request){.kind = IO_RECEIVE_FROM, .data = data, .length = length});
}

int weft_send_to(weft_datagram *datagram, weft_descriptor descriptor, const void *data, size_t length, const weft_endpoint *endpoint) {
    if ((data == NULL && length != 0) || endpoint == NULL || (endpoint->family != WEFT_IPV4 && endpoint->family != WEFT_IPV6)) return WEFT_EINVAL;
    io_request request = {.kind = IO_SEND_TO, .data = (void *)(uintptr_t)data, .length = length, .endpoint = endpoint};
    return io_start((weft_io *)datagram, descriptor, request);
}

/* Asks the system for the end of an op that was requested to end, unless its holder does, who looks at the state after he has begun a transfer. He is
 * in a call that does not block; the end of a transfer whose call has not returned is not asked for. seq_cst on the slot, behind the request. */
static void io_ask_from_outside(lane_descriptor *descriptor, int direction, weft_io *io) {
    uint64_t owner;
    for (uint32_t spins = 0;; spins++) {
        owner = atomic_load_explicit(&descriptor->slot[direction], memory_order_seq_cst) & LANE_SLOT_OWNER;
        if (owner != LANE_SLOT_HELD || __atomic_load_n(&io->state_, __ATOMIC_SEQ_CST) != IO_CANCELLING) break;
        lane_pause(spins);
    }
    if (owner != (uint64_t)(uintptr_t)io) return;
    io_errors saved = io_errors_keep();
    io_interrupt(atomic_load_explicit(&descriptor->system, memory_order_relaxed), io);
    io_errors_restore(saved);
}

int weft_io_cancel(weft_io *io) {
    if (io == NULL) return WEFT_EINVAL;
    tsan_release(io);
    uint32_t state = __atomic_load_n(&io->state_, __ATOMIC_SEQ_CST);
    for (;;) {
        if (state != IO_IDLE && state != IO_STARTED) return 1;
        uint32_t request = state == IO_IDLE ? IO_CANCELLED_EARLY : IO_CANCELLING;
        if (__atomic_compare_exchange_n(&io->state_, &state, request, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) break;
    }
    if (state == IO_IDLE) return WEFT_OK;
    WEFT_TEST_DELAY(io_cancel_requested);
    /* The request stands in the state. seq_cst, against io_start: see there. */
    void *place = __atomic_load_n(&io->descriptor_, __ATOMIC_SEQ_CST);
    lane_descriptor *descriptor = io_descriptor(place);
    if (descriptor == NULL) return WEFT_OK;
    /* Where the op completes meanwhile, the record may be another's by now, or its runtime may have ended; it still is one of a runtime's. */
    lane_runtime *runtime = (lane_runtime *)(uintptr_t)descriptor->runtime;
    WEFT_TEST_DELAY(io_cancel_found);
    lane_visit visit = lane_visit_begin(runtime);
    if (visit == LANE_VISIT_LATE) return WEFT_OK; /* Stop has taken out all that waited, and no other has come to wait since */
    if (IO_COMPLETES) {
        io_ask_from_outside(descriptor, io_direction(place), io);
    } else if (slot_withdraw(descriptor, &descriptor->slot[io_direction(place)], io)) {
        WEFT_TEST_DELAY(io_cancel_withdrawn);
        io_complete(io, WEFT_ECANCELED, 0);
        lane_finish(runtime, &io->op);
    }
    lane_visit_end(runtime, visit);
    return WEFT_OK;
}
