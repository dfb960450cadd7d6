/* SPDX-License-Identifier: MIT
 *
 * flight_windows.c: files by overlapped calls. The OVERLAPPED stands where the op of the blocking call does, which is in no queue meanwhile: 32 bytes both.
 *
 * The packet may be taken by another thread before the call has returned. So two share the op, who makes the call and who takes the packet; each says
 * in flight_ that he is through, and the second one goes on with it. Neither touches it after that, and a file is not closed while an op of it
 * has not ended. A canceller, for whom the memory is there, says there that the end is wanted: he asks the system for it if the call has
 * returned, and else who makes the call does before he lets go. Each step is one atomic instruction on one word. Model: docs/models/flight.pml.
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winternl.h>

#include <stdlib.h>
#include <string.h>

#include "delay.h"
#include "file.h"
#include "flight.h"
#include "io.h"

/* weft_file_op.flight_: the file's handle, which has 32 bits, above these. */
enum {
    RETURNED = 1, /* the call has returned, and its thread is through with the op */
    ARRIVED = 2,  /* the packet has been taken */
    ASKED = 4,    /* the end is wanted */
};

/* NTSTATUS, which is in no header that goes together with the others. */
#define PENDING 0x103u
#define END_OF_FILE UINT32_C(0xC0000011)

static _Atomic uint64_t landed[LANE_RUNTIMES_MAX]; /* statistics */
static _Atomic bool open[LANE_RUNTIMES_MAX];       /* atomic: two files may be opened at once */

static bool allowed = true, everything;

/* WEFT_FILES=ring has all fly that can, for tests. */
__attribute__((constructor)) static void flight_choose(void) {
    const char *files = getenv("WEFT_FILES");
    allowed = files == NULL || strcmp(files, "pool") != 0;
    everything = files != NULL && strcmp(files, "ring") == 0;
}

bool flight_allowed(void) { return allowed; }

_Static_assert(sizeof(OVERLAPPED) == sizeof(weft_op), "the OVERLAPPED stands where the op does");

static OVERLAPPED *overlapped_of(weft_file_op *op) { return (OVERLAPPED *)&op->call_.op; }

static weft_file_op *op_of(void *overlapped) { return (weft_file_op *)((char *)overlapped - offsetof(weft_file_op, call_)); }

/* What cannot be given to the port is what was not opened for such calls. A call that is done at once posts no packet then: these files are the system's own. */
bool flight_open(lane_runtime *runtime, intptr_t system) {
    HANDLE handle = (HANDLE)system, port = (HANDLE)(intptr_t)runtime->port;
    if (!allowed || CreateIoCompletionPort(handle, port, (ULONG_PTR)IO_FLIGHT_DATA, 0) == NULL ||
        !SetFileCompletionNotificationModes(handle, FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE))
        return false;
    if (!atomic_exchange_explicit(&open[runtime - lane_table], true, memory_order_relaxed)) lane_keep_polling(runtime);
    return true;
}

/* As file_landed has it. A status that is negative is a failure. Wine 8 posts the packet of a call whose thread has ended without having written one. */
static int32_t result_of(uint32_t status, uint64_t bytes) {
    if (status == PENDING) return -ERROR_OPERATION_ABORTED;
    if (status == END_OF_FILE) return 0;
    return (int32_t)status < 0 ? -(int32_t)RtlNtStatusToDosError((NTSTATUS)status) : (int32_t)bytes;
}

static void count(lane_runtime *runtime) { atomic_fetch_add_explicit(&landed[runtime - lane_table], 1, memory_order_relaxed); }

/* Lets go of an op whose call has returned; false if the packet has been taken. The look at the runtime's state comes after the call: who stops
 * it writes that, and then asks all that are under way. So one of the two asks. The file is open, since the op has not ended. */
static bool let_go(const lane_runtime *runtime, HANDLE handle, weft_file_op *op, uint64_t state) {
    bool asked = false;
    do {
        bool wanted = !(state & ASKED) && atomic_load_explicit(&runtime->state, memory_order_seq_cst) == LANE_RUNNING;
        if (!wanted && !asked) asked = CancelIoEx(handle, overlapped_of(op));
        WEFT_TEST_DELAY(flight_let_go);
    } while (!__atomic_compare_exchange_n(&op->flight_, &state, state | RETURNED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return !(state & ARRIVED);
}

flight_start flight_submit(lane_runtime *runtime, const flight_request *request, int32_t *result) {
    if (request->call == FLIGHT_SYNC || (request->apart && !everything)) return FLIGHT_REFUSED;
    weft_file_op *op = request->op;
    HANDLE handle = (HANDLE)request->system;
    OVERLAPPED *place = overlapped_of(op);
    *place = (OVERLAPPED){.Internal = PENDING, .Offset = (DWORD)request->offset, .OffsetHigh = (DWORD)(request->offset >> 32)};
    uint64_t state = (uint64_t)(uint32_t)request->system << 32;
    /* Before the look at the request, against flight_cancel, who comes after it has been published: either he finds this word, or the look sees it. */
    __atomic_store_n(&op->flight_, state, __ATOMIC_SEQ_CST);
    WEFT_TEST_DELAY(flight_submit_published);
    if (weft_blocking_requested(&op->call_)) return FLIGHT_REFUSED;
    BOOL done = request->call == FLIGHT_READ ? ReadFile(handle, request->data, request->length, NULL, place)
                                             : WriteFile(handle, request->data, request->length, NULL, place);
    DWORD error = done ? 0 : GetLastError();
    WEFT_TEST_DELAY(flight_submit_returned);
    if (error == ERROR_IO_PENDING) {
        if (let_go(runtime, handle, op, state)) return FLIGHT_UP;
        *result = result_of((uint32_t)place->Internal, place->InternalHigh);
    } else { /* no packet comes */
        *result = done ? (int32_t)place->InternalHigh : error == ERROR_HANDLE_EOF ? 0 : -(int32_t)error;
    }
    count(runtime);
    return FLIGHT_OVER;
}

/* What a packet queues: the op that the OVERLAPPED has become. */
static void flight_lands(weft_op *call) {
    weft_file_op *op = op_of(call);
    count(&lane_table[((file_record *)op->file_)->slot]);
    file_landed(op, result_of((uint32_t)call->reserved_, (uint64_t)(uintptr_t)call->context), false);
}

weft_op *flight_arrived(void *overlapped) {
    weft_file_op *op = op_of(overlapped);
    WEFT_TEST_DELAY(flight_arrived);
    uint64_t before = __atomic_fetch_or(&op->flight_, ARRIVED, __ATOMIC_SEQ_CST);
    if (!(before & RETURNED)) return NULL;
    weft_op *call = &op->call_.op;
    call->reserved_ = (uint32_t)((OVERLAPPED *)overlapped)->Internal; /* the bytes stay where they are, in context */
    call->run = flight_lands;
    return call;
}

/* The handle is read together with the bits, so it is that of the flight. It may have been closed since; but no other flight has this address. */
void flight_cancel(lane_runtime *runtime, weft_file_op *op) {
    (void)runtime;
    uint64_t before = __atomic_fetch_or(&op->flight_, ASKED, __ATOMIC_SEQ_CST);
    WEFT_TEST_DELAY(flight_cancel);
    io_errors saved = io_errors_keep();
    if ((before & (RETURNED | ARRIVED)) == RETURNED) CancelIoEx((HANDLE)(intptr_t)(int32_t)(before >> 32), overlapped_of(op));
    io_errors_restore(saved);
}

static void interrupt(const file_record *record) {
    if (record->flies) CancelIoEx((HANDLE)record->system, NULL);
}

void flight_stop(uint32_t slot) { file_table_each(slot, interrupt); }

void flight_close(uint32_t slot) {
    atomic_store_explicit(&landed[slot], 0, memory_order_relaxed);
    atomic_store_explicit(&open[slot], false, memory_order_relaxed);
}

uint64_t flight_count(uint32_t slot) { return atomic_load_explicit(&landed[slot], memory_order_relaxed); }

bool flight_is_open(uint32_t slot) { return atomic_load_explicit(&open[slot], memory_order_relaxed); }
