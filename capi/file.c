/* SPDX-License-Identifier: MIT
 *
 * file.c: the ops of files. An op is a blocking call whose function makes the system's calls; beside the pool there are two ways that need no thread: a read of
 * what is in memory anyway, and a flight (flight.h). Each takes only what it can finish; the pool does the rest of it. docs/decisions/files.md.
 */
#include "file.h"

#include <stdlib.h>

#include "blocking.h"
#include "flight.h"
#include "io.h"
#include "tsan.h"

enum {
    PIECE_MAX = 1 << 20, /* bytes of one call of an op that may be cancelled between calls */
    SHORT_MAX = 1 << 16, /* bytes that a worker may copy itself: some 10 us */
};

enum { FILE_OPEN = 1, FILE_READ, FILE_WRITE, FILE_SIZE, FILE_SYNC, FILE_CLOSE };

static _Atomic uint64_t immediate[LANE_RUNTIMES_MAX]; /* statistics */

void file_stop(uint32_t slot) { flight_stop(slot); }

void file_close_all(uint32_t slot) {
    flight_close(slot);
    file_table_end(slot);
    atomic_store_explicit(&immediate[slot], 0, memory_order_relaxed);
}

void file_read_stats(uint32_t slot, weft_stats *stats) {
    stats->file_immediate = atomic_load_explicit(&immediate[slot], memory_order_relaxed);
    stats->file_ring = flight_count(slot);
    stats->descriptors -= flight_is_open(slot); /* lane_keep_polling */
}

/* The calls, on a thread of the pool. */

static void conclude(weft_file_op *op, int os_error) {
    op->os_error = os_error;
    op->status = file_system_code(os_error, op->kind_ == FILE_OPEN);
}

static void call_open(weft_file_op *op) {
    intptr_t system;
    int error = file_system_open(op->data_, op->flags_, (uint32_t)op->length_, &system);
    if (error == 0 && !file_add((uint32_t)op->offset_, system, flight_open(&lane_table[op->offset_], system), &op->opened)) {
        error = FILE_NO_MEMORY;
        file_system_close(system);
    }
    conclude(op, error);
}

static void call_move(weft_file_op *op, intptr_t system) {
    bool all = (op->flags_ & WEFT_IO_ALL) != 0;
    while (op->count < op->length_) {
        if (all && op->count != 0 && weft_blocking_requested(&op->call_)) {
            op->status = WEFT_ECANCELED;
            return;
        }
        uint64_t length = op->length_ - op->count, moved;
        if (all && length > PIECE_MAX) length = PIECE_MAX;
        char *data = (char *)op->data_ + op->count;
        int error = op->kind_ == FILE_READ ? file_system_read(system, data, length, op->offset_ + op->count, &moved)
                                           : file_system_write(system, data, length, op->offset_ + op->count, &moved);
        if (error != 0) {
            conclude(op, error);
            return;
        }
        op->count += moved;
        if (moved == 0 && all) op->status = WEFT_EOF;
        if (moved == 0 || !all) return;
    }
}

static weft_file_op *op_of(void *call) { return (weft_file_op *)((char *)call - offsetof(weft_file_op, call_)); }

static void file_call(weft_blocking *call) {
    weft_file_op *op = op_of(call);
    file_record *record = op->file_;
    op->file_ = NULL;
    switch (op->kind_) {
    case FILE_OPEN: call_open(op); return;
    case FILE_READ:
    case FILE_WRITE: call_move(op, record->system); break;
    case FILE_SIZE: conclude(op, file_system_size(record->system, &op->count)); break;
    case FILE_SYNC: conclude(op, file_system_sync(record->system)); break;
    case FILE_CLOSE: conclude(op, file_release(record)); return;
    }
    file_release(record);
}

/* An op whose call never ran. A close is made all the same. What was in memory, and not asked to be all, has been read. */
static void file_cancelled(weft_file_op *op) {
    if (op->count == 0 || (op->flags_ & WEFT_IO_ALL)) op->status = WEFT_ECANCELED;
    if (op->file_ == NULL) return;
    int error = file_release(op->file_);
    op->file_ = NULL;
    if (op->kind_ == FILE_CLOSE) conclude(op, error);
}

static void file_done(weft_op *call) {
    weft_file_op *op = op_of(call);
    if (op->call_.status != WEFT_OK) {
        io_errors saved = io_errors_keep();
        file_cancelled(op);
        io_errors_restore(saved);
    }
    op->op.run(&op->op);
}

/* Without a thread. */

static bool moves_all(const weft_file_op *op) { return op->kind_ != FILE_SYNC && (op->flags_ & WEFT_IO_ALL) != 0; }

static void finish(weft_file_op *op, bool behind) {
    op->call_.op.run = file_done;
    file_release(op->file_);
    op->file_ = NULL;
    blocking_finish(&op->call_, behind);
}

static void hand_over(weft_file_op *op) {
    op->call_.op.run = file_done;
    blocking_hand_over(&op->call_, WEFT_BLOCKING_FILE);
}

/* Goes on with an op that has flown. True when it has to fly on. The pool does, and answers for, what the system would not do this way, or was kept
 * from doing; if its end was asked for, the pool honours that. */
static bool lands(weft_file_op *op, int32_t result, bool behind) {
    bool sync = op->kind_ == FILE_SYNC;
    if (result < 0 && file_system_refused(-result, sync)) {
        hand_over(op);
        return false;
    }
    op->count += result < 0 ? 0 : (uint64_t)result;
    bool more = result >= 0 && moves_all(op) && op->count < op->length_;
    if (more && result != 0) return true;
    if (more) op->status = WEFT_EOF;
    if (result < 0) conclude(op, sync ? file_system_sync_error(-result) : -result);
    finish(op, behind);
    return false;
}

static void file_fly(weft_op *call);

/* Submits an op, or what is left of it, to the system; else hands it to the pool. A worker of the runtime. One that is done at once and has to fly on waits
 * for its turn. */
static void fly(weft_file_op *op) {
    static const flight_call calls[] = {[FILE_READ] = FLIGHT_READ, [FILE_WRITE] = FLIGHT_WRITE, [FILE_SYNC] = FLIGHT_SYNC};
    const file_record *record = op->file_;
    uint64_t left = op->kind_ == FILE_SYNC ? 0 : op->length_ - op->count;
    uint64_t most = moves_all(op) ? PIECE_MAX : INT32_MAX; /* the system shortens it as it likes */
    flight_request request = {
        .call = calls[op->kind_],
        .system = record->system,
        .data = (char *)op->data_ + op->count,
        .offset = op->offset_ + op->count,
        .length = (uint32_t)(left < most ? left : most),
        .apart = left > SHORT_MAX,
        .op = op,
    };
    int32_t result = 0;
    flight_start start = flight_submit(&lane_table[record->slot], &request, &result);
    if (start == FLIGHT_REFUSED) {
        hand_over(op);
    } else if (start == FLIGHT_OVER && lands(op, result, false)) {
        op->call_.op.run = file_fly;
        lane_push_behind_quiet(lane_self, &op->call_.op);
    }
}

/* An op that comes from elsewhere, or has had its turn, now on a worker. */
static void file_fly(weft_op *call) {
    weft_file_op *op = op_of(call);
    io_errors saved = io_errors_keep();
    uint32_t slot = ((file_record *)op->file_)->slot;
    fly(op);
    flight_collect(&lane_table[slot], false);
    io_errors_restore(saved);
}

/* fly, for a thread that is no worker of the runtime. */
static void fly_elsewhere(weft_file_op *op) {
    lane_runtime *runtime = &lane_table[((file_record *)op->file_)->slot];
    op->call_.op.run = file_fly;
    tsan_release(op);
    lane_finish(runtime, &op->call_.op);
}

void file_landed(weft_file_op *op, int32_t result, bool behind) {
    io_errors saved = io_errors_keep();
    if (lands(op, result, behind)) {
        if (lane_self != NULL) /* else the monitor, in the workers' stead */
            fly(op);
        else
            fly_elsewhere(op);
    }
    io_errors_restore(saved);
}

/* Reads what is in memory. True when that is all there is to do. A read that ends early is repeated: 0 bytes tell the end of the file, which has to be
 * told from the end of what is in memory. */
static bool read_cached(weft_file_op *op) {
    file_record *record = op->file_;
    if (op->kind_ != FILE_READ || op->length_ > SHORT_MAX || atomic_load_explicit(&record->uncached, memory_order_relaxed)) return false;
    file_peeked peeked = FILE_PEEKED;
    uint64_t moved = 1;
    while (op->count < op->length_ && moved != 0) {
        peeked = file_system_peek(record->system, (char *)op->data_ + op->count, op->length_ - op->count, op->offset_ + op->count, &moved);
        op->count += moved;
    }
    if (peeked == FILE_WAITS_ALWAYS) atomic_store_explicit(&record->uncached, true, memory_order_relaxed);
    if (peeked != FILE_PEEKED) return false; /* errors of the file, too, are found by a read that may wait */
    if (moved == 0 && (op->flags_ & WEFT_IO_ALL) != 0) op->status = WEFT_EOF;
    atomic_fetch_add_explicit(&immediate[record->slot], 1, memory_order_relaxed);
    return true;
}

/* WEFT_FILES=ring does without what is in memory, for tests. */
static bool tries_memory = true;

__attribute__((constructor)) static void file_choose(void) {
    const char *files = getenv("WEFT_FILES");
    tries_memory = files == NULL || *files == 0;
}

/* Starts an op that has begun. */
static void take_off(weft_file_op *op, lane_runtime *runtime) {
    io_errors saved = io_errors_keep();
    if ((op->kind_ != FILE_SYNC && op->length_ == 0) || (tries_memory && read_cached(op))) {
        finish(op, false);
    } else if (!((file_record *)op->file_)->flies) {
        hand_over(op);
    } else if (lane_self != NULL && lane_runtime_at(lane_self) == runtime) {
        fly(op);
        flight_collect(runtime, false); /* it may have been done at once */
    } else {
        fly_elsewhere(op);
    }
    io_errors_restore(saved);
}

/* The starts. */

typedef struct file_request {
    uint32_t kind;
    uint32_t flags;
    void *data;
    uint64_t length;
    uint64_t offset;
} file_request;

static int submit(weft_runtime runtime, weft_file_op *op, file_record *record, file_request request) {
    op->kind_ = request.kind;
    op->flags_ = request.flags;
    op->data_ = request.data;
    op->length_ = request.length;
    op->offset_ = request.offset;
    op->file_ = record;
    op->status = WEFT_OK;
    op->os_error = 0;
    op->count = 0;
    op->opened.id = 0;
    op->call_.op.run = file_done;
    op->call_.call = file_call;
    bool flies = request.kind == FILE_READ || request.kind == FILE_WRITE || request.kind == FILE_SYNC;
    int rc = flies ? blocking_begin(runtime, &op->call_) : weft_blocking_submit(runtime, &op->call_, WEFT_BLOCKING_FILE);
    if (rc == 1) file_cancelled(op);
    if (rc == WEFT_OK && flies) take_off(op, &lane_table[record->slot]);
    return rc;
}

static int check_op(const weft_file_op *op) {
    if (op == NULL || op->op.run == NULL) return WEFT_EINVAL;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    return blocking_is_idle(&op->call_) ? WEFT_OK : WEFT_EBUSY;
}

int weft_file_open(weft_runtime handle, weft_file_op *op, const char *path, uint32_t flags, uint32_t mode) {
    const uint32_t known = WEFT_FILE_APPEND * 2 - 1, writing = WEFT_FILE_TRUNCATE | WEFT_FILE_APPEND;
    if (path == NULL || (flags & ~known) != 0 || (flags & (WEFT_FILE_READ | WEFT_FILE_WRITE)) == 0 ||
        ((flags & writing) != 0 && !(flags & WEFT_FILE_WRITE)) || ((flags & WEFT_FILE_EXCLUSIVE) && !(flags & WEFT_FILE_CREATE)))
        return WEFT_EINVAL;
    int rc = check_op(op);
    if (rc != WEFT_OK) return rc;
    uint32_t slot = (uint32_t)((handle.id & 0xff) - 1); /* of a good handle; a bad one is refused */
    return submit(handle, op, NULL, (file_request){FILE_OPEN, flags, (void *)(uintptr_t)path, mode, slot});
}

/* Starts an op of an open file. A close must be alone. */
static int start(weft_file_op *op, weft_file file, file_request request) {
    int rc = check_op(op);
    if (rc != WEFT_OK) return rc;
    file_record *record;
    file_purpose purpose = request.kind == FILE_CLOSE ? FILE_CLOSED : FILE_USED;
    rc = file_acquire(file, purpose, &record);
    if (rc != WEFT_OK) return rc;
    /* A runtime cannot be destroyed under its open file: that closes them all. */
    weft_runtime runtime = {atomic_load_explicit(&lane_table[record->slot].id, memory_order_acquire)};
    rc = submit(runtime, op, record, request);
    if (rc < 0) file_release_unused(record, purpose);
    return rc;
}

static int start_move(weft_file_op *op, weft_file file, file_request request) {
    if ((request.data == NULL && request.length != 0) || (request.flags & ~WEFT_IO_ALL) != 0 || request.length > INT64_MAX ||
        request.offset > INT64_MAX - request.length)
        return WEFT_EINVAL;
    return start(op, file, request);
}

int weft_file_read(weft_file_op *op, weft_file file, void *data, size_t length, uint64_t offset, uint32_t flags) {
    return start_move(op, file, (file_request){FILE_READ, flags, data, length, offset});
}

int weft_file_write(weft_file_op *op, weft_file file, const void *data, size_t length, uint64_t offset, uint32_t flags) {
    return start_move(op, file, (file_request){FILE_WRITE, flags, (void *)(uintptr_t)data, length, offset});
}

int weft_file_size(weft_file_op *op, weft_file file) { return start(op, file, (file_request){.kind = FILE_SIZE}); }

int weft_file_sync(weft_file_op *op, weft_file file) { return start(op, file, (file_request){.kind = FILE_SYNC}); }

int weft_file_close(weft_file_op *op, weft_file file) { return start(op, file, (file_request){.kind = FILE_CLOSE}); }

int weft_file_abandon(weft_file file) {
    if (file.id == 0) return WEFT_OK;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    file_record *record;
    int rc = file_acquire(file, FILE_GIVEN_UP, &record);
    if (rc != WEFT_OK) return rc;
    io_errors saved = io_errors_keep();
    file_release(record);
    io_errors_restore(saved);
    return WEFT_OK;
}

int weft_file_cancel(weft_file_op *op) {
    if (op == NULL) return WEFT_EINVAL;
    int rc = weft_blocking_cancel(&op->call_);
    lane_runtime *runtime = rc == 1 ? blocking_asked(&op->call_) : NULL;
    if (runtime != NULL) flight_cancel(runtime, op);
    return rc;
}
