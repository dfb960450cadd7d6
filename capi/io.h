/* SPDX-License-Identifier: MIT
 *
 * io.h: what the C files of I/O offer the lane and each other. poll_*.c waits for events on a worker's own thread; io.c
 * holds the ops; io_*.c makes their system calls; socket.c and endpoint.c have the rest of weft/c/io.h. The slot
 * protocol is in slot.h, and what a system that reports completion adds to it in core/transfer.go.
 */
#ifndef WEFT_IO_INTERNAL_H
#define WEFT_IO_INTERNAL_H

#include <errno.h>

#include "lane.h"

/* weft_io.state_. An op that was asked to end before it was started, and one that was asked under way, are told apart: a
 * second start of the latter is refused instead of completing it twice. Model: docs/models/op.pml. */
enum {
    IO_IDLE = 0,
    IO_STARTED = 1,
    IO_CANCELLING = 2,      /* under way, and asked to end */
    IO_COMPLETED = 3,       /* has its result; may be started again */
    IO_CANCELLED_EARLY = 4, /* asked to end before it was started */
};

/* weft_io.kind_. The buffers of an op are one piece at data_ of length_ bytes, or length_ pieces at data_. */
enum { IO_RECEIVE = 1, IO_SEND, IO_RECEIVE_BUFFERS, IO_SEND_BUFFERS, IO_ACCEPT, IO_CONNECT, IO_RECEIVE_FROM, IO_SEND_TO };

/* weft_io.flags_, beside WEFT_IO_ALL. */
#define IO_UNDER_WAY 0x8000u /* the system is at it: a connect, or, where it reports completion, any transfer */

/* Whether the system reports completion instead of readiness: core.Poller's Completes. */
#if defined(_WIN32)
#define IO_COMPLETES true
#else
#define IO_COMPLETES false
#endif

/* lane_descriptor.hints, beside those of lane.h. */
#define IO_HINT_STREAM UINT32_C(8) /* a TCP socket: a short receive has emptied its queue. Other kinds keep boundaries */
#define IO_HINT_FILE UINT32_C(16)  /* no socket: read and write instead of recv and send */
#define IO_HINT_SKIPS UINT32_C(32) /* a call that succeeds at once is not reported as well */
#define IO_HINT_IPV6 UINT32_C(64)  /* what an accept of this listener makes */
#define IO_PIN UINT32_C(0x100)     /* added by each who makes a system call without being the slot's op: close waits for them */

/* The data of an event is index | generation << 32; those of the wake event and of the ring are none of these. */
#define IO_WAKE_DATA UINT64_MAX
#define IO_FLIGHT_DATA (UINT64_MAX - 1) /* files that fly (flight.h); epoll.RingData, iocp.FlightKey */

/* poll_*.c */

/* Waits at most timeout_ns (negative: for ever; 0: not at all) for events, and queues the ops that can go on at the worker
 * itself: the first event's newest, or, for a worker that does not wait and so has others to run, all behind those. Owner only. A wake
 * ends it early; one that does not wait hands a wake on to the keeper. Returns the number of events, wakes not counted. */
uint32_t lane_poll(lane_runtime *runtime, lane_worker *worker, int64_t timeout_ns);
void lane_poll_wake(lane_runtime *runtime); /* ends one lane_poll, or the next; any thread */

/* io.c */

/* Finds the record of a handle, for any thread. WEFT_EBADHANDLE, WEFT_EFORKED. */
int io_find(weft_descriptor handle, lane_runtime **runtime, lane_descriptor **descriptor);
/* io_find that keeps the descriptor from being closed until io_unpin. */
int io_pin(weft_descriptor handle, lane_descriptor **descriptor);
void io_unpin(lane_descriptor *descriptor);
/* Gives a system's descriptor to a runtime; it stays the caller's on an error. */
int io_register(lane_runtime *runtime, int32_t system, uint32_t kind, weft_descriptor *descriptor);

/* The function of the op that tries again, system_. Runs on a worker. */
void io_retry(weft_op *op);

/* io_*.c: one system call each. The caller's errno, and on Windows its last error, are theirs to change; the public functions keep them. */

#if defined(_WIN32)
typedef struct io_errors {
    unsigned long last;
    int c;
} io_errors;
io_errors io_errors_keep(void);
void io_errors_restore(io_errors errors);
#else
typedef int io_errors;
static inline io_errors io_errors_keep(void) { return errno; }
static inline void io_errors_restore(io_errors errors) { errno = errors; }
#endif

/* The whole of an op that moves a datagram. */
static inline weft_datagram *datagram_of(weft_io *io) { return (weft_datagram *)io; }

/* What a system call of an op came to. */
typedef struct io_attempt {
    uint64_t moved;   /* bytes */
    int32_t os_error; /* 0, or why it failed */
    int32_t accepted; /* the new descriptor */
    bool wait;        /* nothing happened: the op has to wait */
    bool partial;     /* fewer bytes than asked for */
} io_attempt;

io_attempt io_try(int32_t system, uint32_t hints, weft_io *io);
uint32_t io_kind_of(int32_t system);                           /* IO_HINT_STREAM, IO_HINT_FILE or 0 */
void io_close(int32_t system);
int io_socket(int family, int32_t *system);
int io_listen(const weft_endpoint *endpoint, int backlog, int32_t *system);
int io_datagrams(const weft_endpoint *endpoint, int32_t *system); /* a UDP socket that is bound */
int io_aim(int32_t system, const weft_endpoint *endpoint);        /* connects one */
int io_shutdown(int32_t system, int directions);
int io_local(int32_t system, weft_endpoint *endpoint);
int io_remote(int32_t system, weft_endpoint *endpoint);

#if defined(_WIN32)
/* What has become of a transfer that io_try has begun, and that has ended; to wait, if it has begun another. system is -1 when the descriptor is closed; an
 * accepted one is of no use then, but for io_close. */
io_attempt io_collect(int32_t system, uint32_t hints, weft_io *io);
void io_interrupt(int32_t system, weft_io *io); /* asks for the end of a transfer; io may have ended, system be -1 */
#else
static inline io_attempt io_collect(int32_t system, uint32_t hints, weft_io *io) {
    (void)system, (void)hints, (void)io;
    return (io_attempt){.wait = true};
}
static inline void io_interrupt(int32_t system, weft_io *io) { (void)system, (void)io; }
#endif

#endif
