/* SPDX-License-Identifier: MIT
 *
 * io.h: what the C files of I/O offer the lane and each other. poll_linux.c waits for events on a worker's own thread; io.c
 * holds the ops; io_linux.c makes their system calls; socket.c and endpoint.c have the rest of weft/c/io.h. The slot
 * protocol is in slot.h.
 */
#ifndef WEFT_IO_INTERNAL_H
#define WEFT_IO_INTERNAL_H

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
enum { IO_RECEIVE = 1, IO_SEND, IO_RECEIVE_BUFFERS, IO_SEND_BUFFERS, IO_ACCEPT, IO_CONNECT };

/* weft_io.flags_, beside WEFT_IO_ALL. */
#define IO_CONNECTING 0x8000u /* connect was called, and is in progress */

/* lane_descriptor.hints, beside those of lane.h. */
#define IO_HINT_STREAM UINT32_C(8) /* a TCP socket: a short receive has emptied its queue. Other kinds keep boundaries */
#define IO_HINT_FILE UINT32_C(16)  /* no socket: read and write instead of recv and send */
#define IO_PIN UINT32_C(0x100)     /* added by each who makes a system call without being the slot's op: close waits for them */

/* The data of an event is index | generation << 32; those of the wake event and of the ring are none of these. */
#define IO_WAKE_DATA UINT64_MAX
#define IO_RING_DATA (UINT64_MAX - 1) /* the ring of files (uring.h); core.RingData */

/* poll_linux.c */

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

/* io_linux.c: one system call each. errno is theirs to change; the public functions keep it. */

/* What a system call of an op came to. */
typedef struct io_attempt {
    uint64_t moved;   /* bytes */
    int32_t os_error; /* 0, or why it failed */
    int32_t accepted; /* the new descriptor */
    bool wait;        /* nothing happened: the op has to wait */
    bool partial;     /* fewer bytes than asked for */
} io_attempt;

io_attempt io_try(int32_t system, uint32_t hints, weft_io *io);
void io_keep_peer(weft_io *io, const weft_endpoint *endpoint); /* where a connect goes, kept in the op */
uint32_t io_kind_of(int32_t system);                           /* IO_HINT_STREAM, IO_HINT_FILE or 0 */
void io_close(int32_t system);
int io_socket(int family, int32_t *system);
int io_listen(const weft_endpoint *endpoint, int backlog, int32_t *system);
int io_shutdown(int32_t system, int directions);
int io_local(int32_t system, weft_endpoint *endpoint);
int io_remote(int32_t system, weft_endpoint *endpoint);

#endif
