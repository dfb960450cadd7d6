/* SPDX-License-Identifier: MIT
 *
 * runtime.c: versions, error table, and the life of a runtime as C sees it. Arguments are checked here, before Go is entered.
 */
#include "delay.h"
#include "lane_internal.h"

#include <stdlib.h>
#include <string.h>

#include "blocking.h"
#include "crossing.h"
#include "export.h"
#include "file.h"
#include "tsan.h"
#include "flight.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

uint32_t weft_version_number(void) { return WEFT_VERSION_NUMBER; }

const char *weft_version_text(void) {
    return TEXT(WEFT_VERSION_MAJOR) "." TEXT(WEFT_VERSION_MINOR) "." TEXT(WEFT_VERSION_PATCH);
}

uint32_t weft_abi_version(void) { return WEFT_ABI_VERSION; }

uint64_t weft_features(void) {
#if defined(_WIN32)
    uint64_t features = WEFT_FEATURE_IOCP | (flight_allowed() ? WEFT_FEATURE_OVERLAPPED : 0);
#else
    uint64_t features = WEFT_FEATURE_EPOLL | (flight_allowed() ? WEFT_FEATURE_URING : 0);
#endif
    return features | (lane_asymmetric ? WEFT_FEATURE_ASYMMETRIC_BARRIER : 0);
}

const char *weft_error_text(int code) {
    switch (code) {
#define ROW(name, number, text) \
    case number: return text;
        WEFT_ERROR_TABLE(ROW)
#undef ROW
    }
    return code == WEFT_OK ? "success" : "unknown error";
}

const char *weft_error_name(int code) {
    switch (code) {
#define ROW(name, number, text) \
    case number: return #name;
        WEFT_ERROR_TABLE(ROW)
#undef ROW
    }
    return code == WEFT_OK ? "WEFT_OK" : "WEFT_E?";
}

enum { STACK_MIN_BYTES = 65536, STACK_DEFAULT_BYTES = 1 << 20, NAME_MAX_BYTES = 10,
       BLOCKING_DEFAULT = 64, BLOCKING_MAX = 1024 };

#define KEEP_DEFAULT_NS INT64_C(10000000000)
#define STALL_DEFAULT_NS INT64_C(10000000)

/* Copies a config of any size that we understand: a shorter one leaves the rest at its default, a longer one may only hold zeros there. */
static int lane_read_config(const weft_runtime_config *given, weft_runtime_config *config) {
    memset(config, 0, sizeof *config);
    if (given == NULL) return WEFT_OK;
    uint32_t size = given->size;
    if (size < sizeof given->size) return WEFT_EVERSION;
    for (uint32_t i = sizeof *config; i < size; i++)
        if (((const unsigned char *)given)[i] != 0) return WEFT_EVERSION;
    memcpy(config, given, size < sizeof *config ? size : sizeof *config);
    return WEFT_OK;
}

int weft_runtime_create(const weft_runtime_config *given, weft_runtime *runtime) {
    if (runtime == NULL) return WEFT_EINVAL;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    weft_runtime_config config;
    int rc = lane_read_config(given, &config);
    if (rc != WEFT_OK) return rc;
    if (config.workers > LANE_WORKERS_MAX) return WEFT_EINVAL;
    if (config.max_workers == 0) config.max_workers = LANE_WORKERS_MAX;
    if (config.max_workers > LANE_WORKERS_MAX || config.workers > config.max_workers) return WEFT_EINVAL;
    if ((config.flags & ~WEFT_RUNTIME_LOG_STALLS) != 0 || config.reserved_ != 0 || config.keep_ns < 0 || config.stall_ns < 0)
        return WEFT_EINVAL;
    if (config.keep_ns == 0) config.keep_ns = KEEP_DEFAULT_NS;
    if (config.stall_ns == 0) config.stall_ns = STALL_DEFAULT_NS;
    const char *log = getenv("WEFT_LOG_STALLS");
    if (log != NULL && *log != 0) config.flags |= WEFT_RUNTIME_LOG_STALLS;
    if (config.stack_bytes == 0) config.stack_bytes = STACK_DEFAULT_BYTES;
    if (config.stack_bytes < STACK_MIN_BYTES || config.stack_bytes > UINT64_C(1) << 40) return WEFT_EINVAL;
    if (config.name == NULL) config.name = "weft";
    if (strnlen(config.name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES) return WEFT_EINVAL;
    if (config.blocking_threads == 0) config.blocking_threads = BLOCKING_DEFAULT;
    if (config.blocking_threads > BLOCKING_MAX) return WEFT_EINVAL;
    lane_crossing crossing;
    lane_cross(&crossing);
    rc = weftgo_runtime_create(&config, &runtime->id);
    lane_crossed(&crossing);
    return rc;
}

/* Whether the stop of a runtime would wait for the calling thread: a worker, one of the blocking pool, or the monitor in a callback. */
static bool lane_is_own_thread(weft_runtime runtime) {
    return (lane_self != NULL && lane_self->runtime_id == runtime.id) || blocking_self == runtime.id || lane_watched == runtime.id;
}

int weft_runtime_stop(weft_runtime runtime) {
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    lane_runtime *stopped = lane_runtime_of(runtime.id);
    if (stopped == NULL) return WEFT_EBADHANDLE;
    WEFT_TEST_DELAY(runtime_stop_found);
    lane_crossing crossing;
    lane_cross(&crossing);
    int rc = weftgo_runtime_stop(runtime.id, !lane_is_own_thread(runtime));
    lane_crossed(&crossing);
    tsan_acquire(stopped);
    return rc;
}

int weft_runtime_destroy(weft_runtime runtime) {
    if (runtime.id == 0) return WEFT_OK;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    lane_runtime *destroyed = lane_runtime_of(runtime.id);
    if (destroyed == NULL) return WEFT_EBADHANDLE;
    WEFT_TEST_DELAY(runtime_destroy_found);
    lane_crossing crossing;
    lane_cross(&crossing);
    int rc = weftgo_runtime_destroy(runtime.id, !lane_is_own_thread(runtime));
    lane_crossed(&crossing);
    tsan_acquire(destroyed);
    return rc;
}

weft_runtime weft_runtime_current(void) {
    return (weft_runtime){lane_self != NULL ? lane_self->runtime_id : 0};
}

int weft_worker_index(void) { return lane_self != NULL ? (int)lane_self->index : WEFT_ENOTWORKER; }

int weft_runtime_status(weft_runtime handle) {
    const lane_runtime *runtime = lane_runtime_of(handle.id);
    if (runtime == NULL) return WEFT_EBADHANDLE;
    return atomic_load_explicit(&runtime->state, memory_order_relaxed) == LANE_RUNNING ? WEFT_OK : WEFT_ESTOPPED;
}

static uint64_t lane_read(const _Atomic uint64_t *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

/* Timers are counted under the wheel's lock; a statistic may read them without, as each is one aligned word. */
static uint64_t lane_read_word(const uint64_t *counter) { return *(const volatile uint64_t *)counter; }

static void lane_add_worker(const lane_worker *worker, weft_stats *sum) {
    sum->ops_run += lane_read(&worker->ticks);
    sum->crossings += lane_read(&worker->crossings);
    sum->steals += lane_read(&worker->steals);
    sum->ops_stolen += lane_read(&worker->ops_stolen);
    sum->parks += lane_read(&worker->parks);
    sum->wakes += lane_read(&worker->wakes);
    sum->injected += lane_read(&worker->injected_count);
    sum->timers_started += lane_read_word(&worker->wheel.started);
    sum->timers_fired += lane_read_word(&worker->wheel.fired);
    sum->timers_cancelled += lane_read_word(&worker->wheel.cancelled);
    sum->io_started += lane_read(&worker->io_started);
    sum->io_events += lane_read(&worker->io_events);
    sum->io_immediate += lane_read(&worker->io_immediate);
    sum->recoveries += lane_read(&worker->recoveries);
    sum->recovery_total_ns += (uint64_t)atomic_load_explicit(&worker->recovery_total, memory_order_relaxed);
    uint64_t longest = (uint64_t)atomic_load_explicit(&worker->recovery_longest, memory_order_relaxed);
    if (longest > sum->recovery_longest_ns) sum->recovery_longest_ns = longest;
    uint32_t life = atomic_load_explicit(&worker->life, memory_order_relaxed);
    sum->workers += life == LANE_RUNS || life == LANE_ASKED;
    uint32_t park = atomic_load_explicit(&worker->park, memory_order_relaxed);
    sum->parked += park == LANE_PARKED || park == LANE_PARKED_IN_POLLER;
}

enum { STATS_MIN_BYTES = 16 };

static int lane_write_stats(weft_stats *out, weft_stats *stats) {
    stats->size = out->size;
    memcpy(out, stats, out->size < sizeof *stats ? (size_t)out->size : sizeof *stats);
    return WEFT_OK;
}

int weft_runtime_stats(weft_runtime handle, weft_stats *out) {
    if (out == NULL) return WEFT_EINVAL;
    if (out->size < STATS_MIN_BYTES) return WEFT_EVERSION;
    const lane_runtime *runtime = lane_runtime_of(handle.id);
    if (runtime == NULL) return WEFT_EBADHANDLE;
    weft_stats stats = {
        .crossings = lane_read(&runtime->crossings),
        .wakes = lane_read(&runtime->wakes),
        .io_started = lane_read(&runtime->io_started),
        .io_events = lane_read(&runtime->io_events),
        .io_immediate = lane_read(&runtime->io_immediate),
        .descriptors = atomic_load_explicit(&runtime->descriptors, memory_order_relaxed),
        .max_workers = runtime->worker_max,
        .stalls = lane_read(&runtime->stalls),
        .stalls_dismissed = lane_read(&runtime->dismissed),
        .stalled_longest_ns = (uint64_t)atomic_load_explicit(&runtime->stalled_longest, memory_order_relaxed),
        .replacements = lane_read(&runtime->replacements),
    };
    blocking_read_stats((uint32_t)(runtime - lane_table), &stats);
    file_read_stats((uint32_t)(runtime - lane_table), &stats);
    for (uint32_t i = 0; i < atomic_load_explicit(&runtime->begun, memory_order_acquire); i++) lane_add_worker(lane_worker_at(runtime, i), &stats);
    return lane_write_stats(out, &stats);
}

int weft_worker_stats(weft_runtime handle, uint32_t worker, weft_stats *out) {
    if (out == NULL) return WEFT_EINVAL;
    if (out->size < STATS_MIN_BYTES) return WEFT_EVERSION;
    const lane_runtime *runtime = lane_runtime_of(handle.id);
    if (runtime == NULL) return WEFT_EBADHANDLE;
    if (worker >= runtime->worker_max) return WEFT_EINVAL;
    weft_stats stats = {.max_workers = 1};
    lane_add_worker(lane_worker_at(runtime, worker), &stats);
    return lane_write_stats(out, &stats);
}
