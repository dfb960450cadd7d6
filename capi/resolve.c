/* SPDX-License-Identifier: MIT
 *
 * resolve.c: lookups as ops. The looking up is Go's (export_resolve.go), on goroutines that are no workers: each is counted in the
 * runtime's pending ops.
 */
#include "resolve.h"

#include <string.h>

#include "crossing.h"
#include "end.h"
#include "export.h"
#include "tsan.h"

/* weft_resolve_op.state_. seq_cst throughout: nothing here is hot. */
enum {
    RESOLVE_IDLE = 0,
    RESOLVE_STARTED = 1,
    RESOLVE_CANCELLING = 2, /* under way, and asked to end */
    RESOLVE_COMPLETED = 3,
    RESOLVE_CANCELLED_EARLY = 4, /* asked to end before it was started */
};

static uint32_t state_of(const weft_resolve_op *op) { return __atomic_load_n(&op->state_, __ATOMIC_SEQ_CST); }
static void set_state(weft_resolve_op *op, uint32_t state) { __atomic_store_n(&op->state_, state, __ATOMIC_SEQ_CST); }
static bool change_state(weft_resolve_op *op, uint32_t *seen, uint32_t state) {
    return __atomic_compare_exchange_n(&op->state_, seen, state, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool resolve_requested(const weft_resolve_op *op) { return state_of(op) == RESOLVE_CANCELLING; }

void resolve_complete(weft_resolve_op *op, int status, const weft_endpoint *found, uint32_t count) {
    lane_runtime *runtime = op->runtime_;
    tsan_acquire(op);
    op->status = status;
    op->count = count;
    uint32_t fitting = count < op->capacity ? count : op->capacity;
    if (fitting != 0) memcpy(op->endpoints, found, fitting * sizeof *found);
    set_state(op, RESOLVE_COMPLETED);
    tsan_release(op);
    lane_finish(runtime, &op->op);
    lane_release_end(runtime);
}

/* Takes an idle op; *before is what it was. */
static int begin(weft_resolve_op *op, uint32_t *before) {
    uint32_t state = state_of(op);
    do {
        if (state == RESOLVE_STARTED || state == RESOLVE_CANCELLING) return WEFT_EBUSY;
    } while (!change_state(op, &state, RESOLVE_STARTED));
    *before = state;
    return WEFT_OK;
}

/* Undoes begin. A request that came meanwhile is kept for the next start. */
static int abandon(weft_resolve_op *op, uint32_t before, int rc) {
    uint32_t started = RESOLVE_STARTED;
    if (!change_state(op, &started, before)) set_state(op, RESOLVE_CANCELLED_EARLY);
    return rc;
}

int weft_resolve(weft_runtime handle, weft_resolve_op *op, const char *host, const char *service, int64_t timeout_ns) {
    if (op == NULL || op->op.run == NULL || (op->endpoints == NULL && op->capacity != 0) || host == NULL || host[0] == '\0' ||
        (op->server != NULL && op->server->family != WEFT_IPV4 && op->server->family != WEFT_IPV6))
        return WEFT_EINVAL;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    lane_runtime *runtime = lane_runtime_of(handle.id);
    if (runtime == NULL) return WEFT_EBADHANDLE;
    if (atomic_load_explicit(&runtime->state, memory_order_relaxed) != LANE_RUNNING) return WEFT_ESTOPPED;
    uint32_t before;
    int rc = begin(op, &before);
    if (rc != WEFT_OK) return rc;
    op->count = 0;
    if (before == RESOLVE_CANCELLED_EARLY) {
        op->status = WEFT_ECANCELED;
        set_state(op, RESOLVE_COMPLETED);
        return 1;
    }
    if (!lane_hold_end(runtime)) return abandon(op, before, WEFT_ESTOPPED);
    op->runtime_ = runtime;
    tsan_release(op);
    LANE_COUNT(runtime, crossings, 1);
    lane_crossing crossing;
    lane_cross(&crossing);
    rc = weftgo_resolve(handle.id, op, host, service, op->server, timeout_ns);
    lane_crossed(&crossing);
    if (rc == WEFT_OK) return WEFT_OK;
    lane_release_end(runtime);
    return abandon(op, before, rc);
}

/* The request is written first and Go's table looked at second; a start enters the table first and looks at the request second
 * (resolve_requested). One of the two sees the other. */
int weft_resolve_cancel(weft_resolve_op *op) {
    if (op == NULL) return WEFT_EINVAL;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    tsan_release(op);
    uint32_t state = state_of(op);
    for (;;) {
        if (state != RESOLVE_IDLE && state != RESOLVE_STARTED) return 1;
        if (change_state(op, &state, state == RESOLVE_IDLE ? RESOLVE_CANCELLED_EARLY : RESOLVE_CANCELLING)) break;
    }
    if (state == RESOLVE_STARTED) {
        lane_crossing crossing;
        lane_cross(&crossing);
        weftgo_resolve_cancel(op);
        lane_crossed(&crossing);
    }
    return WEFT_OK;
}
