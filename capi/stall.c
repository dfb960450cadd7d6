/* SPDX-License-Identifier: MIT
 *
 * stall.c: reports of stalls, and what functions are called in them. The lane stores nothing per op but the function's address, so a name is
 * found only when it is needed: in a table that spawning fills once per function, or by the system.
 */
#include <stdio.h>

#include "watch.h"

enum { DESCRIPTIONS = 4096 };

/* A function's description. Whoever puts the function in by compare-and-swap writes the rest, and then says that it is there. */
typedef struct description {
    _Atomic uint64_t function; /* atomic: 0: free */
    _Atomic uint32_t written;  /* atomic: release pairs with acquire in describe_find: name, file and line are visible */
    uint32_t line;
    const char *name, *file;
} description;

static description descriptions[DESCRIPTIONS];

static uint32_t describe_hash(uint64_t function) { return (uint32_t)(function * UINT64_C(0x9e3779b97f4a7c15) >> 52); }

int weft_describe(weft_function function, const char *name, const char *file, uint32_t line) {
    if (function == NULL) return WEFT_EINVAL;
    uint64_t wanted = (uint64_t)(uintptr_t)function;
    for (uint32_t i = 0; i < DESCRIPTIONS; i++) {
        description *entry = &descriptions[(describe_hash(wanted) + i) % DESCRIPTIONS];
        uint64_t found = 0;
        if (atomic_compare_exchange_strong_explicit(&entry->function, &found, wanted, memory_order_relaxed, memory_order_relaxed)) {
            entry->name = name;
            entry->file = file;
            entry->line = line;
            atomic_store_explicit(&entry->written, 1, memory_order_release);
            return WEFT_OK;
        }
        if (found == wanted) return WEFT_OK;
    }
    return WEFT_ELIMIT;
}

static const description *describe_find(uint64_t function) {
    for (uint32_t i = 0; i < DESCRIPTIONS; i++) {
        const description *entry = &descriptions[(describe_hash(function) + i) % DESCRIPTIONS];
        uint64_t found = atomic_load_explicit(&entry->function, memory_order_relaxed);
        if (found == 0) return NULL;
        if (found == function) return atomic_load_explicit(&entry->written, memory_order_acquire) != 0 ? entry : NULL;
    }
    return NULL;
}

void weft_goes_on_as(weft_function function) {
    if (lane_self != NULL && function != NULL)
        atomic_store_explicit(&lane_self->running, (uint64_t)(uintptr_t)function, memory_order_relaxed);
}

/* One write, so that lines of several threads do not mix. */
static void stall_log(const weft_stall *stall) {
    char origin[256] = "", line[640];
    if (stall->file != NULL) snprintf(origin, sizeof origin, ", from %s:%u", stall->file, stall->line);
    const char *does = stall->computes ? (stall->ended ? "computed" : "computes") : (stall->ended ? "blocked" : "blocks");
    snprintf(line, sizeof line, "weft: worker %u (thread %u) %s held up by an op that %s for %.1f ms: %.200s%s (%.100s+0x%llx)\n", stall->worker,
             stall->thread, stall->ended ? "was" : "is", does, (double)stall->duration_ns / 1e6, stall->name != NULL ? stall->name : "?",
             origin, stall->module != NULL ? stall->module : "?", (unsigned long long)stall->offset);
    fputs(line, stderr);
}

void watch_tell(const watch_report *report, const lane_worker *worker, uint64_t function, int64_t lasted, bool busy, bool ended) {
    if (lasted < report->after_ns || (report->callback == NULL && !report->log)) return;
    weft_stall stall = {
        .size = sizeof stall,
        .runtime = report->runtime,
        .worker = worker->index,
        .thread = atomic_load_explicit(&worker->thread, memory_order_relaxed),
        .duration_ns = lasted,
        .ended = ended,
        .computes = busy,
        .function = (weft_function)(uintptr_t)function,
    };
    lane_place place;
    lane_locate(function, &place);
    stall.name = place.name;
    stall.module = place.module;
    stall.offset = place.offset;
    const description *known = describe_find(function);
    if (known != NULL) {
        if (known->name != NULL) stall.name = known->name;
        stall.file = known->file;
        stall.line = known->line;
    }
    if (report->log) stall_log(&stall);
    if (report->callback != NULL) report->callback(&stall, report->context);
}
