/* SPDX-License-Identifier: MIT
 *
 * poll_windows.c: the wait for packets on a worker's own thread, without Go. It is the short twin of iocp/poller_windows.go, which
 * makes the port; both keep the contract of core/poller.go.
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stddef.h>

#include "delay.h"
#include "flight.h"
#include "io.h"
#include "lane_internal.h"
#include "slot.h"
#include "transfer.h"

enum { BATCH = 128 }; /* packets in one wait */

static HANDLE handle_of(int32_t number) { return (HANDLE)(intptr_t)number; }

static ULONG take(const lane_runtime *runtime, OVERLAPPED_ENTRY *packets, DWORD milliseconds, BOOL alertable) {
    ULONG n = 0;
    return GetQueuedCompletionStatusEx(handle_of(runtime->port), packets, BATCH, &n, milliseconds, alertable) ? n : 0;
}

static VOID CALLBACK timer_ends(LPVOID argument, DWORD low, DWORD high) { (void)argument, (void)low, (void)high; }

/* Waits about as long as it is told. The port counts in milliseconds, and in ticks of up to 16 of them; so a timer ends the wait, by a call on
 * this thread. Only the keeper waits here, so the runtime has one. */
static ULONG take_finely(const lane_runtime *runtime, OVERLAPPED_ENTRY *packets, int64_t timeout_ns) {
    LARGE_INTEGER due = {.QuadPart = -(timeout_ns / 100 + 1)};
    BOOL alertable = SetWaitableTimer(handle_of(runtime->event), &due, 0, timer_ends, NULL, FALSE);
    int64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    ULONG n = take(runtime, packets, ms < INFINITE ? (DWORD)ms : INFINITE - 1, alertable);
    CancelWaitableTimer(handle_of(runtime->event));
    return n;
}

static ULONG take_until(const lane_runtime *runtime, OVERLAPPED_ENTRY *packets, int64_t timeout_ns) {
    if (timeout_ns <= 0) return take(runtime, packets, timeout_ns < 0 ? INFINITE : 0, FALSE);
    int64_t now = lane_now();
    int64_t deadline = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
    ULONG n = 0;
    /* The system counts ticks that have begun, so it may be early. */
    for (; n == 0 && now < deadline; now = lane_now()) n = take_finely(runtime, packets, deadline - now);
    return n;
}

static void queue(lane_worker *worker, void *runnable, bool behind) {
    if (runnable == NULL) return;
    if (behind)
        lane_push_behind_quiet(worker, runnable);
    else
        lane_push_quiet(worker, runnable);
}

uint32_t lane_poll(lane_runtime *runtime, lane_worker *worker, int64_t timeout_ns) {
    OVERLAPPED_ENTRY packets[BATCH];
    WEFT_TEST_DELAY(lane_poll_waits);
    io_errors saved = io_errors_keep();
    ULONG n = take_until(runtime, packets, timeout_ns);
    io_errors_restore(saved);
    WEFT_TEST_DELAY(lane_poll_woken);
    bool behind = timeout_ns == 0;
    bool woken = false;
    uint32_t count = 0;
    for (ULONG k = 0; k < n; k++) {
        ULONG i = behind ? k : n - 1 - k; /* last first: the worker takes its newest op first */
        if (packets[i].lpCompletionKey == (ULONG_PTR)IO_WAKE_DATA) {
            woken = true;
            continue;
        }
        count++;
        if (packets[i].lpCompletionKey == (ULONG_PTR)IO_FLIGHT_DATA) {
            queue(worker, flight_arrived(packets[i].lpOverlapped), behind);
            continue;
        }
        weft_io *io = (weft_io *)((char *)packets[i].lpOverlapped - offsetof(weft_io, system_));
        void *place = __atomic_load_n(&io->descriptor_, __ATOMIC_RELAXED);
        lane_descriptor *descriptor = (lane_descriptor *)((uintptr_t)place & ~(uintptr_t)1);
        transfer_land(io);
        WEFT_TEST_DELAY(lane_poll_event_found);
        weft_io *waiting = slot_ready(&descriptor->slot[(uintptr_t)place & 1]);
        WEFT_TEST_DELAY(lane_poll_slot_ready);
        queue(worker, waiting != NULL ? waiting->system_ : NULL, behind); /* NULL: its holder finds the slot ready; the op may be gone */
    }
    lane_polled(runtime, worker, count, woken && behind);
    return count;
}

void lane_poll_wake(lane_runtime *runtime) {
    WEFT_TEST_DELAY(lane_poll_wake);
    io_errors saved = io_errors_keep();
    /* It fails when the system has no memory for a packet, and then there are others at the port. */
    PostQueuedCompletionStatus(handle_of(runtime->port), 0, (ULONG_PTR)IO_WAKE_DATA, NULL);
    io_errors_restore(saved);
}
