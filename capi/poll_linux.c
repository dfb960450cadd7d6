/* SPDX-License-Identifier: MIT
 *
 * poll_linux.c: the wait for events on a worker's own thread, without Go. It is the short twin of epoll/poller_linux.go,
 * which registers the descriptors; both keep the contract of core/poller.go.
 */
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "delay.h"
#include "io.h"
#include "lane_internal.h"
#include "slot.h"
#include "flight.h"

enum { BATCH = 128 }; /* events in one wait */

/* epoll/poller_linux.go has the argument for each of these. */
#define RECEIVES (EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLHUP | EPOLLERR)
#define SENDS (EPOLLOUT | EPOLLHUP | EPOLLERR)
#define HANGUPS (EPOLLRDHUP | EPOLLPRI | EPOLLERR)

static int wait_ms(int epoll, struct epoll_event *events, int64_t timeout_ns) {
    int64_t ms = timeout_ns < 0 ? -1 : timeout_ns / 1000000 + (timeout_ns % 1000000 != 0); /* up: never early */
    return epoll_wait(epoll, events, BATCH, ms > INT_MAX ? INT_MAX : (int)ms);
}

/* Returns the number of events; a signal ends it early, with none. */
static int wait_ns(int epoll, struct epoll_event *events, int64_t timeout_ns) {
#ifdef SYS_epoll_pwait2
    static _Atomic bool missing; /* atomic: any thread may learn that the kernel (before 5.11) does not have it */
    if (timeout_ns > 0 && !atomic_load_explicit(&missing, memory_order_relaxed)) {
        /* epoll's own slack is a thousandth of the time, 100 ms at most. */
        int64_t slack_ns = timeout_ns / 1001 < 100000000 ? timeout_ns / 1001 : 100000000;
        int64_t ask_ns = lane_ask_for(timeout_ns, slack_ns);
        struct {
            int64_t seconds, nanoseconds;
        } limit = {ask_ns / 1000000000, ask_ns % 1000000000}; /* the kernel's timespec, on 32-bit systems too */
        long n = syscall(SYS_epoll_pwait2, epoll, events, BATCH, &limit, NULL, 0);
        if (n >= 0) return (int)n;
        if (errno != ENOSYS) return 0;
        atomic_store_explicit(&missing, true, memory_order_relaxed);
    }
#endif
    int n = wait_ms(epoll, events, timeout_ns);
    return n < 0 ? 0 : n;
}

/* The record that an event is for, or NULL when the event is for one that was closed. */
static lane_descriptor *event_descriptor(const lane_runtime *runtime, uint64_t data) {
    uint32_t index = (uint32_t)data;
    uint64_t chunk = atomic_load_explicit(&runtime->chunks[index / LANE_CHUNK_DESCRIPTORS], memory_order_acquire);
    lane_descriptor *descriptor = (lane_descriptor *)(uintptr_t)chunk + index % LANE_CHUNK_DESCRIPTORS;
    /* One that slips through, since the record is closed just now, does no harm: it is spurious. */
    return atomic_load_explicit(&descriptor->generation, memory_order_relaxed) == data >> 32 ? descriptor : NULL;
}

static inline void event_direction(lane_descriptor *descriptor, int direction, lane_worker *worker, bool behind) {
    weft_io *io = slot_ready(&descriptor->slot[direction]);
    WEFT_TEST_DELAY(lane_poll_slot_ready);
    if (io == NULL) return;
    if (behind)
        lane_push_behind_quiet(worker, io->system_);
    else
        lane_push_quiet(worker, io->system_);
}

uint32_t lane_poll(lane_runtime *runtime, lane_worker *worker, int64_t timeout_ns) {
    struct epoll_event events[BATCH];
    WEFT_TEST_DELAY(lane_poll_waits);
    int saved = errno;
    int n = wait_ns(runtime->port, events, timeout_ns);
    errno = saved;
    WEFT_TEST_DELAY(lane_poll_woken);
    bool behind = timeout_ns == 0;
    bool woken = false;
    bool flown = false;
    uint32_t count = 0;
    for (int k = 0; k < n; k++) {
        int i = behind ? k : n - 1 - k; /* last first: the worker takes its newest op first */
        uint64_t data = events[i].data.u64;
        if (data == IO_WAKE_DATA) {
            woken = true;
            continue;
        }
        if (data == IO_FLIGHT_DATA) {
            flown = true;
            continue;
        }
        count++;
        lane_descriptor *descriptor = event_descriptor(runtime, data);
        if (descriptor == NULL) continue;
        WEFT_TEST_DELAY(lane_poll_event_found);
        uint32_t what = events[i].events;
        /* Before the slot: whoever learns of the event there sees the hint, since io_start reads it after its claim. Mutant
         * HANGUP_LATE. */
        if ((what & HANGUPS) && !(atomic_load_explicit(&descriptor->hints, memory_order_relaxed) & LANE_HINT_HANGUP))
            atomic_fetch_or_explicit(&descriptor->hints, LANE_HINT_HANGUP, memory_order_seq_cst);
        /* A send is always tried, so one that starts after this load needs no word of it: its call comes later still. In a
         * dialogue that saves a locked instruction a message, since a receive's event reports that the socket is writable,
         * too. */
        if ((what & SENDS) && (atomic_load_explicit(&descriptor->slot[LANE_SEND], memory_order_seq_cst) & LANE_SLOT_OWNER) != 0)
            event_direction(descriptor, LANE_SEND, worker, behind);
        if (what & RECEIVES) event_direction(descriptor, LANE_RECEIVE, worker, behind);
    }
    if (flown) count += flight_collect(runtime, behind);
    lane_polled(runtime, worker, count, woken && behind);
    return count;
}

void lane_poll_wake(lane_runtime *runtime) {
    WEFT_TEST_DELAY(lane_poll_wake);
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;
    /* The event is edge-triggered, so nobody reads the counter, which would be full after 2^64 wakes. */
    do {
        written = write(runtime->event, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
    errno = saved;
}
