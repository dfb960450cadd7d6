/* SPDX-License-Identifier: MIT
 *
 * flight_linux.c: the ring of a runtime: submission, collection, and whether the kernel lets us have one. docs/decisions/files.md.
 *
 * A submission is filled in and taken by the kernel under one mutex; so the submission queue holds one entry at most, which is taken back when the
 * kernel refuses it. What the kernel has done is collected by whoever sees it first, under another: the submitter, or who polls, since the
 * ring stands in the runtime's epoll, level-triggered: whatever is left is reported again. No more ops fly than the completion queue has
 * places, so it never overflows.
 */
#include "flight.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"
#include "tsan.h"

enum {
    SUBMISSIONS = 4,
    COMPLETIONS = 1024, /* more than any device has under way at once; what is beyond goes to the pool */
    BATCH = 32,
    TURN = 128, /* ops collected in one turn */
};

/* Linux 5.13, and not before: threads of the kernel's that are the process's own, short transfers of files only at their ends. */
#define FEATURES (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_NATIVE_WORKERS | IORING_FEAT_RSRC_TAGS)

/* uring.state */
enum { URING_UNTRIED = 0, URING_OPEN = 1, URING_REFUSED = 2 };

typedef struct uring {
    pthread_mutex_t submitting;
    pthread_mutex_t collecting;
    _Atomic uint32_t state;  /* atomic: URING_OPEN is stored last, so that who reads it (acquire) sees the rest. Written under submitting */
    _Atomic uint32_t flying; /* atomic: entries that the kernel has taken and whose completion has not been collected. No more than COMPLETIONS */
    _Atomic uint64_t landed; /* statistics */
    bool closed;             /* guarded by submitting */
    int ring;                /* immutable while open, and so all below */
    void *memory;
    size_t memory_bytes;
    struct io_uring_sqe *entries;
    size_t entries_bytes;
    /* In memory that the kernel shares: it reads what one of us has stored with release, and the other way round. */
    _Atomic uint32_t *submit_head, *submit_tail; /* the kernel's; guarded by submitting */
    _Atomic uint32_t *done_head, *done_tail;     /* guarded by collecting; the kernel's */
    uint32_t submit_mask, done_mask;
    const struct io_uring_cqe *done;
} uring;

static uring rings[LANE_RUNTIMES_MAX];

__attribute__((constructor)) static void uring_load(void) {
    for (uint32_t slot = 0; slot < LANE_RUNTIMES_MAX; slot++) {
        pthread_mutex_init(&rings[slot].submitting, NULL);
        pthread_mutex_init(&rings[slot].collecting, NULL);
    }
}

static uring *ring_of(const lane_runtime *runtime) { return &rings[runtime - lane_table]; }

/* acquire pairs with the store in flight_open. */
static bool is_open(const uring *r) { return atomic_load_explicit(&r->state, memory_order_acquire) == URING_OPEN; }

/* Three system calls, which the C library does not have. A ring is closed on exec. */

static int ring_setup(uint32_t submissions, struct io_uring_params *parameters) {
    return (int)syscall(SYS_io_uring_setup, submissions, parameters);
}

static bool has_calls(int ring) {
    static const uint8_t needed[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC, IORING_OP_ASYNC_CANCEL};
    enum { OPS = 64 };
    struct io_uring_probe *probe = calloc(1, sizeof *probe + OPS * sizeof probe->ops[0]);
    if (probe == NULL) return false;
    bool has = syscall(SYS_io_uring_register, ring, IORING_REGISTER_PROBE, probe, OPS) == 0;
    for (size_t i = 0; i < sizeof needed; i++)
        has = has && needed[i] <= probe->last_op && (probe->ops[needed[i]].flags & IO_URING_OP_SUPPORTED) != 0;
    free(probe);
    return has;
}

static bool kernel_allows;

/* Once: a small ring, only to be asked. */
static void ask_kernel(void) {
    const char *files = getenv("WEFT_FILES");
    if (files != NULL && strcmp(files, "pool") == 0) return;
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    int saved = errno;
    int ring = ring_setup(1, &parameters);
    if (ring >= 0) {
        kernel_allows = (parameters.features & FEATURES) == FEATURES && has_calls(ring);
        close(ring);
    }
    errno = saved;
}

bool flight_allowed(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_kernel);
    return kernel_allows;
}

static void unmap(uring *r) {
    if (r->entries != MAP_FAILED && r->entries != NULL) munmap(r->entries, r->entries_bytes);
    if (r->memory != MAP_FAILED && r->memory != NULL) munmap(r->memory, r->memory_bytes);
    r->entries = NULL;
    r->memory = NULL;
}

static void *map(int ring, size_t bytes, off_t what) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
    if (memory != MAP_FAILED) madvise(memory, bytes, MADV_DONTFORK); /* a child has no business here */
    return memory;
}

static bool map_ring(uring *r, const struct io_uring_params *p) {
    size_t done_end = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    size_t submit_end = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    r->memory_bytes = done_end > submit_end ? done_end : submit_end;
    r->entries_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    r->memory = map(r->ring, r->memory_bytes, IORING_OFF_SQ_RING);
    r->entries = map(r->ring, r->entries_bytes, IORING_OFF_SQES);
    if (r->memory == MAP_FAILED || r->entries == MAP_FAILED) return false;
    char *memory = r->memory;
    r->submit_head = (_Atomic uint32_t *)(memory + p->sq_off.head);
    r->submit_tail = (_Atomic uint32_t *)(memory + p->sq_off.tail);
    r->done_head = (_Atomic uint32_t *)(memory + p->cq_off.head);
    r->done_tail = (_Atomic uint32_t *)(memory + p->cq_off.tail);
    memcpy(&r->submit_mask, memory + p->sq_off.ring_mask, sizeof r->submit_mask);
    memcpy(&r->done_mask, memory + p->cq_off.ring_mask, sizeof r->done_mask);
    r->done = (const struct io_uring_cqe *)(memory + p->cq_off.cqes);
    uint32_t *order = (uint32_t *)(memory + p->sq_off.array);
    for (uint32_t i = 0; i < p->sq_entries; i++) order[i] = i;
    return true;
}

static bool make_ring(uring *r, const lane_runtime *runtime) {
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.flags = IORING_SETUP_CQSIZE;
    parameters.cq_entries = COMPLETIONS;
    r->ring = ring_setup(SUBMISSIONS, &parameters);
    if (r->ring < 0) return false;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = IO_FLIGHT_DATA};
    if (map_ring(r, &parameters) && epoll_ctl(runtime->port, EPOLL_CTL_ADD, r->ring, &event) == 0) return true;
    unmap(r);
    close(r->ring);
    return false;
}

bool flight_open(lane_runtime *runtime, intptr_t system) {
    (void)system; /* the kernel tells for each op */
    uring *r = ring_of(runtime);
    uint32_t known = atomic_load_explicit(&r->state, memory_order_acquire);
    if (known != URING_UNTRIED) return known == URING_OPEN;
    int saved = errno;
    bool allowed = flight_allowed();
    pthread_mutex_lock(&r->submitting);
    if (atomic_load_explicit(&r->state, memory_order_relaxed) == URING_UNTRIED && !r->closed) {
        bool made = allowed && make_ring(r, runtime);
        atomic_store_explicit(&r->state, made ? URING_OPEN : URING_REFUSED, memory_order_release);
        if (made) lane_keep_polling(runtime);
    }
    pthread_mutex_unlock(&r->submitting);
    errno = saved;
    return is_open(r);
}

/* Has the kernel take one entry; under submitting. It counts as flying before, so that collecting it never makes the count negative. */
static bool push(uring *r, const struct io_uring_sqe *entry) {
    if (atomic_fetch_add_explicit(&r->flying, 1, memory_order_relaxed) >= COMPLETIONS) {
        atomic_fetch_sub_explicit(&r->flying, 1, memory_order_relaxed);
        return false;
    }
    int saved = errno;
    uint32_t tail = atomic_load_explicit(r->submit_tail, memory_order_relaxed);
    r->entries[tail & r->submit_mask] = *entry;
    atomic_store_explicit(r->submit_tail, tail + 1, memory_order_release); /* pairs with the kernel's load: the entry is visible */
    syscall(SYS_io_uring_enter, r->ring, 1, 0, 0, NULL, 0);
    errno = saved;
    WEFT_TEST_DELAY(flight_pushed);
    /* The head tells better than the result, which may speak of something else. */
    if (atomic_load_explicit(r->submit_head, memory_order_acquire) == tail + 1) return true;
    /* The kernel looks only when it is asked to, and nobody else asks meanwhile. */
    atomic_store_explicit(r->submit_tail, tail, memory_order_relaxed);
    atomic_fetch_sub_explicit(&r->flying, 1, memory_order_relaxed);
    return false;
}

flight_start flight_submit(lane_runtime *runtime, const flight_request *request, int32_t *result) {
    (void)result; /* what is done at once is reported, too */
    static const uint8_t calls[] = {[FLIGHT_READ] = IORING_OP_READ, [FLIGHT_WRITE] = IORING_OP_WRITE, [FLIGHT_SYNC] = IORING_OP_FSYNC};
    uring *r = ring_of(runtime);
    if (!is_open(r)) return FLIGHT_REFUSED;
    struct io_uring_sqe entry;
    memset(&entry, 0, sizeof entry);
    entry.opcode = calls[request->call];
    entry.flags = request->apart ? IOSQE_ASYNC : 0;
    entry.fd = (int32_t)request->system;
    entry.user_data = (uint64_t)(uintptr_t)request->op;
    if (request->call != FLIGHT_SYNC) {
        entry.off = request->offset;
        entry.addr = (uint64_t)(uintptr_t)request->data;
        entry.len = request->length;
    }
    tsan_release(request->op);
    pthread_mutex_lock(&r->submitting);
    /* Against flight_cancel, which comes after the request has been published: either this look sees it, or that finds the op in the kernel. */
    bool taken = !r->closed && !weft_blocking_requested(&request->op->call_) && push(r, &entry);
    pthread_mutex_unlock(&r->submitting);
    return taken ? FLIGHT_UP : FLIGHT_REFUSED;
}

static void ask_to_end(uring *r, const weft_file_op *op) {
    struct io_uring_sqe entry;
    memset(&entry, 0, sizeof entry);
    entry.opcode = IORING_OP_ASYNC_CANCEL;
    entry.fd = -1;
    entry.addr = (uint64_t)(uintptr_t)op;
    if (op == NULL) entry.cancel_flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL; /* before 5.19: an error, and what flies ends by itself */
    push(r, &entry); /* if there is no room: nothing that flies is in a hurry */
}

void flight_cancel(lane_runtime *runtime, weft_file_op *op) {
    uring *r = ring_of(runtime);
    if (!is_open(r)) return;
    pthread_mutex_lock(&r->submitting);
    if (is_open(r)) ask_to_end(r, op);
    pthread_mutex_unlock(&r->submitting);
}

uint32_t flight_collect(lane_runtime *runtime, bool behind) {
    uring *r = ring_of(runtime);
    uint32_t count = 0;
    while (is_open(r) && count < TURN) {
        struct io_uring_cqe batch[BATCH];
        pthread_mutex_lock(&r->collecting);
        uint32_t head = atomic_load_explicit(r->done_head, memory_order_relaxed);
        uint32_t n = atomic_load_explicit(r->done_tail, memory_order_acquire) - head; /* pairs with the kernel's store: the entries are there */
        if (n > BATCH) n = BATCH;
        for (uint32_t i = 0; i < n; i++) batch[i] = r->done[(head + i) & r->done_mask];
        atomic_store_explicit(r->done_head, head + n, memory_order_release); /* pairs with the kernel's load: it may write there again */
        pthread_mutex_unlock(&r->collecting);
        if (n == 0) break;
        WEFT_TEST_DELAY(flight_collected);
        atomic_fetch_sub_explicit(&r->flying, n, memory_order_relaxed);
        for (uint32_t k = 0; k < n; k++) {
            const struct io_uring_cqe *entry = &batch[behind ? k : n - 1 - k]; /* as in lane_poll: the worker takes its newest first */
            if (entry->user_data == 0) continue; /* of ask_to_end */
            weft_file_op *op = (weft_file_op *)(uintptr_t)entry->user_data;
            tsan_acquire(op);
            atomic_fetch_add_explicit(&r->landed, 1, memory_order_relaxed);
            file_landed(op, entry->res, behind);
            count++;
        }
    }
    return count;
}

void flight_stop(uint32_t slot) {
    uring *r = &rings[slot];
    pthread_mutex_lock(&r->submitting);
    r->closed = true;
    if (is_open(r)) ask_to_end(r, NULL);
    pthread_mutex_unlock(&r->submitting);
}

void flight_close(uint32_t slot) {
    uring *r = &rings[slot];
    pthread_mutex_lock(&r->submitting);
    if (is_open(r)) {
        atomic_store_explicit(&r->state, URING_UNTRIED, memory_order_relaxed);
        unmap(r);
        close(r->ring);
    }
    atomic_store_explicit(&r->state, URING_UNTRIED, memory_order_relaxed);
    atomic_store_explicit(&r->flying, 0, memory_order_relaxed);
    atomic_store_explicit(&r->landed, 0, memory_order_relaxed);
    r->closed = false;
    pthread_mutex_unlock(&r->submitting);
}

uint64_t flight_count(uint32_t slot) { return atomic_load_explicit(&rings[slot].landed, memory_order_relaxed); }

bool flight_is_open(uint32_t slot) { return is_open(&rings[slot]); }
