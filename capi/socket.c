/* SPDX-License-Identifier: MIT
 *
 * socket.c: the calls of weft/c/io.h that are no ops: opening, closing, shutdown, names. Arguments are checked here; the
 * system's part is in io_*.c, and the descriptor table's in core/descriptor.go.
 */
#include <limits.h>

#include "crossing.h"
#include "end.h"
#include "export.h"
#include "io.h"
#include "lane_internal.h"

/* A runtime that takes descriptors. */
static int open_runtime(weft_runtime handle, lane_runtime **runtime) {
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    *runtime = lane_runtime_of(handle.id);
    if (*runtime == NULL) return WEFT_EBADHANDLE;
    return atomic_load_explicit(&(*runtime)->state, memory_order_relaxed) == LANE_RUNNING ? WEFT_OK : WEFT_ESTOPPED;
}

int weft_descriptor_open(weft_runtime handle, intptr_t system, weft_descriptor *descriptor) {
    if (descriptor == NULL || system < 0 || system > INT32_MAX) return WEFT_EINVAL;
    lane_runtime *runtime;
    int rc = open_runtime(handle, &runtime);
    if (rc != WEFT_OK) return rc;
    io_errors saved = io_errors_keep();
    rc = io_register(runtime, (int32_t)system, io_kind_of((int32_t)system), descriptor);
    io_errors_restore(saved);
    return rc;
}

int weft_descriptor_close(weft_descriptor descriptor) {
    if (descriptor.id == 0) return WEFT_OK;
    lane_runtime *runtime;
    lane_descriptor *record;
    int rc = io_find(descriptor, &runtime, &record);
    if (rc != WEFT_OK) return rc;
    lane_visit visit = lane_visit_begin(runtime); /* late, there is nothing that waits */
    LANE_COUNT(runtime, crossings, 1);
    uint64_t waited[2] = {0, 0};
    lane_crossing crossing;
    lane_cross(&crossing);
    rc = weftgo_descriptor_close(atomic_load_explicit(&runtime->id, memory_order_relaxed), descriptor.id, waited);
    lane_crossed(&crossing);
    for (int i = 0; i < 2; i++)
        if (waited[i] != 0) lane_finish(runtime, (weft_op *)(uintptr_t)waited[i]);
    lane_visit_end(runtime, visit);
    return rc;
}

int weft_descriptor_system(weft_descriptor descriptor, intptr_t *system) {
    if (system == NULL) return WEFT_EINVAL;
    lane_descriptor *record;
    int rc = io_pin(descriptor, &record);
    if (rc != WEFT_OK) return rc;
    *system = atomic_load_explicit(&record->system, memory_order_relaxed);
    io_unpin(record);
    return WEFT_OK;
}

static bool is_address(const weft_endpoint *endpoint) {
    return endpoint != NULL && (endpoint->family == WEFT_IPV4 || endpoint->family == WEFT_IPV6);
}

/* Makes a socket and registers it. Its kind is known, so the system is not asked. */
static int make_socket(weft_runtime handle, int (*make)(const weft_endpoint *, int, int32_t *), const weft_endpoint *endpoint, int backlog,
                       uint32_t kind, weft_descriptor *descriptor) {
    lane_runtime *runtime;
    int rc = open_runtime(handle, &runtime);
    if (rc != WEFT_OK) return rc;
    io_errors saved = io_errors_keep();
    int32_t system;
    rc = make(endpoint, backlog, &system);
    if (rc == WEFT_OK) {
        rc = io_register(runtime, system, kind, descriptor);
        if (rc != WEFT_OK) io_close(system);
    }
    io_errors_restore(saved);
    return rc;
}

static int make_stream(const weft_endpoint *endpoint, int backlog, int32_t *system) {
    (void)backlog;
    return io_socket(endpoint->family, system);
}

static int make_datagrams(const weft_endpoint *endpoint, int backlog, int32_t *system) {
    (void)backlog;
    return io_datagrams(endpoint, system);
}

int weft_tcp_open(weft_runtime handle, int family, weft_descriptor *descriptor) {
    if (descriptor == NULL || (family != WEFT_IPV4 && family != WEFT_IPV6)) return WEFT_EINVAL;
    const weft_endpoint endpoint = {.family = (uint16_t)family};
    return make_socket(handle, make_stream, &endpoint, 0, IO_HINT_STREAM, descriptor);
}

int weft_tcp_listen(weft_runtime handle, const weft_endpoint *endpoint, int backlog, weft_descriptor *descriptor) {
    if (descriptor == NULL || !is_address(endpoint) || backlog < 0) return WEFT_EINVAL;
    return make_socket(handle, io_listen, endpoint, backlog, IO_HINT_STREAM, descriptor);
}

int weft_udp_open(weft_runtime handle, const weft_endpoint *endpoint, weft_descriptor *descriptor) {
    if (descriptor == NULL || !is_address(endpoint)) return WEFT_EINVAL;
    return make_socket(handle, make_datagrams, endpoint, 0, 0, descriptor);
}

int weft_udp_connect(weft_descriptor descriptor, const weft_endpoint *endpoint) {
    if (!is_address(endpoint)) return WEFT_EINVAL;
    lane_descriptor *record;
    int rc = io_pin(descriptor, &record);
    if (rc != WEFT_OK) return rc;
    io_errors saved = io_errors_keep();
    bool stream = (atomic_load_explicit(&record->hints, memory_order_relaxed) & IO_HINT_STREAM) != 0;
    rc = stream ? WEFT_ENOTSUP : io_aim(atomic_load_explicit(&record->system, memory_order_relaxed), endpoint);
    io_unpin(record);
    io_errors_restore(saved);
    return rc;
}

int weft_shutdown(weft_descriptor descriptor, int directions) {
    if (directions < WEFT_SHUTDOWN_RECEIVE || directions > (WEFT_SHUTDOWN_RECEIVE | WEFT_SHUTDOWN_SEND)) return WEFT_EINVAL;
    lane_descriptor *record;
    int rc = io_pin(descriptor, &record);
    if (rc != WEFT_OK) return rc;
    io_errors saved = io_errors_keep();
    rc = io_shutdown(atomic_load_explicit(&record->system, memory_order_relaxed), directions);
    io_unpin(record);
    io_errors_restore(saved);
    return rc;
}

static int name_of(weft_descriptor descriptor, weft_endpoint *endpoint, int (*ask)(int32_t, weft_endpoint *)) {
    if (endpoint == NULL) return WEFT_EINVAL;
    lane_descriptor *record;
    int rc = io_pin(descriptor, &record);
    if (rc != WEFT_OK) return rc;
    io_errors saved = io_errors_keep();
    rc = ask(atomic_load_explicit(&record->system, memory_order_relaxed), endpoint);
    io_unpin(record);
    io_errors_restore(saved);
    return rc;
}

int weft_local_endpoint(weft_descriptor descriptor, weft_endpoint *endpoint) { return name_of(descriptor, endpoint, io_local); }

int weft_remote_endpoint(weft_descriptor descriptor, weft_endpoint *endpoint) { return name_of(descriptor, endpoint, io_remote); }
