/* SPDX-License-Identifier: MIT
 *
 * file.c: files. An op is a blocking call whose function makes the system's calls; this file adds the table of open files, which keeps a
 * handle from meaning another file once its descriptor's number is used again, and two ways that need no thread: a read of what is in memory
 * anyway, and the ring of uring.h. Each takes only what it can finish; the pool does the rest of it. docs/decisions/files.md.
 *
 * A record is guarded by its table's mutex, but for system, which changes only while nobody uses the record. Whoever uses it is
 * counted in users from the start of an op until the call is over; a record that is not open any more is closed by the last user.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "blocking.h"
#include "tsan.h"
#include "uring.h"

enum {
    FILES_MAX = 1 << 20,   /* of one runtime; the system's own limit is below */
    PIECE_MAX = 1 << 20,   /* bytes of one call of an op that may be cancelled between calls */
    CALL_MAX = 0x7ffff000, /* bytes that Linux moves in one call */
    SHORT_MAX = 1 << 16,   /* bytes that a worker may copy itself: some 10 us */
};

enum { FILE_OPEN = 1, FILE_READ, FILE_WRITE, FILE_SIZE, FILE_SYNC, FILE_CLOSE };

typedef struct file_record {
    int system;
    uint32_t index;            /* immutable */
    uint32_t slot;             /* immutable */
    uint32_t generation;       /* guarded by mutex: the number of its file among all that the slot ever had */
    uint32_t users;            /* guarded by mutex */
    bool open;                 /* guarded by mutex: the handle is good */
    _Atomic bool uncached;     /* atomic: the file cannot be read without waiting; only an optimisation */
    struct file_record *free_; /* guarded by mutex: the next free one */
} file_record;

typedef struct file_table {
    pthread_mutex_t mutex;
    file_record **records; /* guarded by mutex: by index */
    uint32_t count, room;  /* guarded by mutex */
    uint32_t issued;       /* guarded by mutex: files ever opened, by all runtimes that had the slot */
    file_record *free_;    /* guarded by mutex */
    _Atomic uint64_t immediate; /* statistics */
} file_table;

static file_table tables[LANE_RUNTIMES_MAX];

__attribute__((constructor)) static void file_load(void) {
    for (uint32_t slot = 0; slot < LANE_RUNTIMES_MAX; slot++) pthread_mutex_init(&tables[slot].mutex, NULL);
}

/* The table. */

static weft_file handle_of(const file_record *record) {
    return (weft_file){(uint64_t)record->generation << 32 | (uint64_t)(record->slot + 1) << 24 | (record->index + 1)};
}

/* Makes room and a record. Under the mutex; NULL when there is no memory. */
static file_record *new_record(file_table *table, uint32_t slot) {
    if (table->count == FILES_MAX) return NULL;
    if (table->count == table->room) {
        uint32_t room = table->room == 0 ? 16 : table->room * 2;
        file_record **grown = realloc(table->records, room * sizeof(file_record *));
        if (grown == NULL) return NULL;
        table->records = grown;
        table->room = room;
    }
    file_record *record = calloc(1, sizeof *record);
    if (record == NULL) return NULL;
    record->index = table->count;
    record->slot = slot;
    table->records[table->count++] = record;
    return record;
}

static bool add_file(uint32_t slot, int system, weft_file *file) {
    file_table *table = &tables[slot];
    pthread_mutex_lock(&table->mutex);
    file_record *record = table->free_;
    if (record != NULL)
        table->free_ = record->free_;
    else
        record = new_record(table, slot);
    if (record != NULL) {
        record->system = system;
        record->open = true;
        record->generation = ++table->issued;
        atomic_store_explicit(&record->uncached, false, memory_order_relaxed);
        *file = handle_of(record);
    }
    pthread_mutex_unlock(&table->mutex);
    return record != NULL;
}

/* Finds an open file and locks its table; NULL, and nothing is locked, when the handle is stale. */
static file_record *find_locked(weft_file file, file_table **table) {
    uint64_t slot = (file.id >> 24 & 0xff) - 1;
    uint64_t index = (file.id & 0xffffff) - 1;
    if (slot >= LANE_RUNTIMES_MAX) return NULL;
    *table = &tables[slot];
    pthread_mutex_lock(&(*table)->mutex);
    if (index < (*table)->count) {
        file_record *record = (*table)->records[index];
        if (record->open && record->generation == file.id >> 32) return record;
    }
    pthread_mutex_unlock(&(*table)->mutex);
    return NULL;
}

/* Lets go of a record. The last user of one that is not open closes it; returns what that said, an errno. Not repeated on EINTR: on
 * Linux the descriptor is gone. */
static int release(file_record *record) {
    file_table *table = &tables[record->slot];
    pthread_mutex_lock(&table->mutex);
    bool closes = --record->users == 0 && !record->open;
    pthread_mutex_unlock(&table->mutex);
    if (!closes) return 0;
    int error = close(record->system) == 0 || errno == EINTR ? 0 : errno;
    pthread_mutex_lock(&table->mutex);
    record->free_ = table->free_;
    table->free_ = record;
    pthread_mutex_unlock(&table->mutex);
    return error;
}

void file_stop(uint32_t slot) { uring_stop(slot); }

void file_read_stats(uint32_t slot, weft_stats *stats) {
    stats->file_immediate = atomic_load_explicit(&tables[slot].immediate, memory_order_relaxed);
    stats->file_ring = uring_count(slot);
    stats->descriptors -= uring_is_open(slot); /* uring_open */
}

void file_close_all(uint32_t slot) {
    uring_close(slot);
    file_table *table = &tables[slot];
    pthread_mutex_lock(&table->mutex);
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->records[i]->open) close(table->records[i]->system);
        free(table->records[i]);
    }
    free(table->records);
    table->records = NULL;
    table->free_ = NULL;
    table->count = table->room = 0;
    atomic_store_explicit(&table->immediate, 0, memory_order_relaxed);
    pthread_mutex_unlock(&table->mutex);
}

/* The calls, on a thread of the pool. */

static int code_of(int os_error) {
    switch (os_error) {
    case ENOTDIR: return WEFT_ENOENT;
    case EISDIR:
    case ENXIO: /* a FIFO that nobody reads, or a socket */
    case ESPIPE: return WEFT_ENOTSUP;
    case ENOSPC:
    case EDQUOT: return WEFT_ENOSPC;
    case EBADF: return WEFT_EBADHANDLE;
    case EROFS:
    case ETXTBSY: return WEFT_EACCES;
    default: return weft_error_from_os(os_error);
    }
}

static void conclude(weft_file_op *op, int os_error) {
    op->os_error = os_error;
    op->status = code_of(os_error);
}

/* What is opened but cannot be a file: an errno, else 0. O_NONBLOCK kept the open from waiting for a peer, and has no other use. */
static int check_kind(int system) {
    struct stat about;
    if (fstat(system, &about) != 0) return errno;
    if (S_ISDIR(about.st_mode)) return EISDIR;
    if (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode)) return ESPIPE;
    int flags = fcntl(system, F_GETFL);
    return flags < 0 || fcntl(system, F_SETFL, flags & ~O_NONBLOCK) != 0 ? errno : 0;
}

static int open_flags(uint32_t flags) {
    int access = !(flags & WEFT_FILE_WRITE) ? O_RDONLY : flags & WEFT_FILE_READ ? O_RDWR : O_WRONLY;
    return access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (flags & WEFT_FILE_CREATE ? O_CREAT : 0) |
           (flags & WEFT_FILE_EXCLUSIVE ? O_EXCL : 0) | (flags & WEFT_FILE_TRUNCATE ? O_TRUNC : 0) |
           (flags & WEFT_FILE_APPEND ? O_APPEND : 0);
}

static void call_open(weft_file_op *op) {
    int system;
    do {
        system = open(op->data_, open_flags(op->flags_), (mode_t)op->length_);
    } while (system < 0 && errno == EINTR);
    int error = system < 0 ? errno : check_kind(system);
    if (error == 0 && !add_file((uint32_t)op->offset_, system, &op->opened)) error = ENOMEM;
    if (error == 0) uring_open(&lane_table[op->offset_]);
    if (error != 0 && system >= 0) close(system);
    conclude(op, error);
}

/* One call of the system. What has no positions (a terminal) is read and written as it comes. */
static ssize_t move(const weft_file_op *op, int system, size_t length) {
    char *data = (char *)op->data_ + op->count;
    off_t offset = (off_t)(op->offset_ + op->count);
    ssize_t moved = op->kind_ == FILE_READ ? pread(system, data, length, offset) : pwrite(system, data, length, offset);
    if (moved < 0 && errno == ESPIPE)
        moved = op->kind_ == FILE_READ ? read(system, data, length) : write(system, data, length);
    return moved;
}

static void call_move(weft_file_op *op, int system) {
    bool all = (op->flags_ & WEFT_IO_ALL) != 0;
    size_t most = all ? PIECE_MAX : CALL_MAX;
    while (op->count < op->length_) {
        if (all && op->count != 0 && weft_blocking_requested(&op->call_)) {
            op->status = WEFT_ECANCELED;
            return;
        }
        size_t length = op->length_ - op->count < most ? op->length_ - op->count : most;
        ssize_t moved = move(op, system, length);
        if (moved < 0) {
            if (errno == EINTR) continue;
            conclude(op, errno);
            return;
        }
        op->count += (uint64_t)moved;
        if (moved == 0 && all) op->status = WEFT_EOF;
        if (moved == 0 || !all) return;
    }
}

static int call_size(weft_file_op *op, int system) {
    struct stat about;
    if (fstat(system, &about) != 0) return errno;
    off_t size = S_ISBLK(about.st_mode) ? lseek(system, 0, SEEK_END) : about.st_size;
    if (size < 0) return errno;
    op->count = (uint64_t)size;
    return 0;
}

static int sync_error(int error) { return error == EINVAL || error == EROFS ? 0 : error; } /* those two: nothing to be synced */

static int call_sync(int system) {
    int rc;
    do {
        rc = fsync(system);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : sync_error(errno);
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
    case FILE_SIZE: conclude(op, call_size(op, record->system)); break;
    case FILE_SYNC: conclude(op, call_sync(record->system)); break;
    case FILE_CLOSE: conclude(op, release(record)); return;
    }
    release(record);
}

/* An op whose call never ran. A close is made all the same. What was in memory, and not asked to be all, has been read. */
static void file_cancelled(weft_file_op *op) {
    if (op->count == 0 || (op->flags_ & WEFT_IO_ALL)) op->status = WEFT_ECANCELED;
    if (op->file_ == NULL) return;
    int error = release(op->file_);
    op->file_ = NULL;
    if (op->kind_ == FILE_CLOSE) conclude(op, error);
}

static void file_done(weft_op *call) {
    weft_file_op *op = op_of(call);
    if (op->call_.status != WEFT_OK) {
        int saved = errno;
        file_cancelled(op);
        errno = saved;
    }
    op->op.run(&op->op);
}

/* Without a thread. */

static bool moves_all(const weft_file_op *op) { return op->kind_ != FILE_SYNC && (op->flags_ & WEFT_IO_ALL) != 0; }

static void finish(weft_file_op *op, bool behind) {
    release(op->file_);
    op->file_ = NULL;
    blocking_finish(&op->call_, behind);
}

static void hand_over(weft_file_op *op) { blocking_hand_over(&op->call_, WEFT_BLOCKING_FILE); }

/* Submits an op, or what is left of it, to the ring; else hands it to the pool. A worker of the runtime. */
static void fly(weft_file_op *op) {
    static const uring_call calls[] = {[FILE_READ] = URING_READ, [FILE_WRITE] = URING_WRITE, [FILE_SYNC] = URING_SYNC};
    const file_record *record = op->file_;
    uint64_t left = op->kind_ == FILE_SYNC ? 0 : op->length_ - op->count;
    uint64_t most = moves_all(op) ? PIECE_MAX : CALL_MAX;
    uring_request request = {
        .call = calls[op->kind_],
        .system = record->system,
        .data = (char *)op->data_ + op->count,
        .offset = op->offset_ + op->count,
        .length = (uint32_t)(left < most ? left : most),
        .apart = left > SHORT_MAX,
        .op = op,
    };
    if (!uring_submit(&lane_table[record->slot], &request)) hand_over(op);
}

/* An op that was started elsewhere, now on a worker. */
static void file_fly(weft_op *call) {
    call->run = file_done;
    weft_file_op *op = op_of(call);
    int saved = errno;
    uint32_t slot = ((file_record *)op->file_)->slot;
    fly(op);
    uring_collect(&lane_table[slot], false);
    errno = saved;
}

/* What an errno says of an op that has flown. The pool does, and answers for, what the kernel would not do this way, or was kept from doing: a thread
 * that ends takes along what it has submitted, and a cancellation may be one of an earlier flight. If it was asked for, the pool honours it. */
static bool is_refusal(const weft_file_op *op, int error) {
    return error == ECANCELED || error == EINTR || error == EAGAIN || error == EOPNOTSUPP || (error == EINVAL && op->kind_ != FILE_SYNC);
}

void file_landed(weft_file_op *op, int32_t result, bool behind) {
    int saved = errno;
    if (result < 0 && is_refusal(op, -result)) {
        hand_over(op);
    } else {
        uint64_t moved = result < 0 ? 0 : (uint64_t)result;
        op->count += moved;
        bool more = moves_all(op) && op->count < op->length_;
        if (result >= 0 && more && moved != 0) {
            if (lane_self != NULL) /* else the monitor, in the workers' stead */
                fly(op);
            else
                hand_over(op);
        } else {
            if (result >= 0 && more) op->status = WEFT_EOF;
            if (result < 0) conclude(op, op->kind_ == FILE_SYNC ? sync_error(-result) : -result);
            finish(op, behind);
        }
    }
    errno = saved;
}

/* Reads what is in memory. True when that is all there is to do. A read that ends early is repeated: 0 bytes tell the end of the file, which has to be
 * told from the end of what is in memory. */
static bool read_cached(weft_file_op *op) {
    file_record *record = op->file_;
    if (op->kind_ != FILE_READ || op->length_ > SHORT_MAX || atomic_load_explicit(&record->uncached, memory_order_relaxed)) return false;
    ssize_t moved = 1;
    while (op->count < op->length_ && moved > 0) {
        struct iovec piece = {(char *)op->data_ + op->count, op->length_ - op->count};
        moved = preadv2(record->system, &piece, 1, (off_t)(op->offset_ + op->count), RWF_NOWAIT);
        if (moved > 0) op->count += (uint64_t)moved;
    }
    if (moved < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) atomic_store_explicit(&record->uncached, true, memory_order_relaxed);
    if (moved < 0) return false; /* errors of the file, too, are found by a read that may wait */
    if (moved == 0 && (op->flags_ & WEFT_IO_ALL) != 0) op->status = WEFT_EOF;
    atomic_fetch_add_explicit(&tables[record->slot].immediate, 1, memory_order_relaxed);
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
    int saved = errno;
    if ((op->kind_ != FILE_SYNC && op->length_ == 0) || (tries_memory && read_cached(op))) {
        finish(op, false);
    } else if (!uring_is_open((uint32_t)(runtime - lane_table))) {
        hand_over(op);
    } else if (lane_self != NULL && lane_runtime_at(lane_self) == runtime) {
        fly(op);
        uring_collect(runtime, false); /* it may have been done at once */
    } else {
        op->call_.op.run = file_fly;
        tsan_release(op);
        lane_finish(runtime, &op->call_.op);
    }
    errno = saved;
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
    file_table *table;
    file_record *record = find_locked(file, &table);
    if (record == NULL) return WEFT_EBADHANDLE;
    bool closes = request.kind == FILE_CLOSE;
    if (closes && record->users != 0) {
        pthread_mutex_unlock(&table->mutex);
        return WEFT_EBUSY;
    }
    record->users++;
    record->open = !closes;
    pthread_mutex_unlock(&table->mutex);
    /* A runtime cannot be destroyed under its open file: that closes them all. */
    weft_runtime runtime = {atomic_load_explicit(&lane_table[record->slot].id, memory_order_acquire)};
    rc = submit(runtime, op, record, request);
    if (rc >= 0) return rc;
    pthread_mutex_lock(&table->mutex);
    record->open = record->open || closes;
    pthread_mutex_unlock(&table->mutex);
    release(record);
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
    file_table *table;
    file_record *record = find_locked(file, &table);
    if (record == NULL) return WEFT_EBADHANDLE;
    record->users++;
    record->open = false;
    pthread_mutex_unlock(&table->mutex);
    int saved = errno;
    release(record);
    errno = saved;
    return WEFT_OK;
}

int weft_file_cancel(weft_file_op *op) {
    if (op == NULL) return WEFT_EINVAL;
    int rc = weft_blocking_cancel(&op->call_);
    lane_runtime *runtime = rc == 1 ? blocking_asked(&op->call_) : NULL;
    if (runtime != NULL) uring_cancel(runtime, op);
    return rc;
}
