/* SPDX-License-Identifier: MIT
 *
 * file_table.c: the open files of each runtime, which keep a handle from meaning another file once its descriptor's number is used again.
 */
#include "file.h"

#include <stdlib.h>

enum { FILES_MAX = 1 << 20 }; /* of one runtime; the system's own limit is below */

typedef struct file_table {
    lane_mutex mutex;
    file_record **records; /* guarded by mutex: by index */
    uint32_t count, room;  /* guarded by mutex */
    uint32_t issued;       /* guarded by mutex: files ever opened, by all runtimes that had the slot */
    file_record *free_;    /* guarded by mutex */
} file_table;

static file_table tables[LANE_RUNTIMES_MAX];

__attribute__((constructor)) static void file_load(void) {
    for (uint32_t slot = 0; slot < LANE_RUNTIMES_MAX; slot++) lane_mutex_begin(&tables[slot].mutex);
}

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

bool file_add(uint32_t slot, intptr_t system, bool flies, weft_file *file) {
    file_table *table = &tables[slot];
    lane_mutex_lock(&table->mutex);
    file_record *record = table->free_;
    if (record != NULL)
        table->free_ = record->free_;
    else
        record = new_record(table, slot);
    if (record != NULL) {
        record->system = system;
        record->open = true;
        record->flies = flies;
        record->generation = ++table->issued;
        atomic_store_explicit(&record->uncached, false, memory_order_relaxed);
        *file = handle_of(record);
    }
    lane_mutex_unlock(&table->mutex);
    return record != NULL;
}

/* Finds an open file and locks its table; NULL, and nothing is locked, when the handle is stale. */
static file_record *find_locked(weft_file file, file_table **table) {
    uint64_t slot = (file.id >> 24 & 0xff) - 1;
    uint64_t index = (file.id & 0xffffff) - 1;
    if (slot >= LANE_RUNTIMES_MAX) return NULL;
    *table = &tables[slot];
    lane_mutex_lock(&(*table)->mutex);
    if (index < (*table)->count) {
        file_record *record = (*table)->records[index];
        if (record->open && record->generation == file.id >> 32) return record;
    }
    lane_mutex_unlock(&(*table)->mutex);
    return NULL;
}

int file_release(file_record *record) {
    file_table *table = &tables[record->slot];
    lane_mutex_lock(&table->mutex);
    bool closes = --record->users == 0 && !record->open;
    lane_mutex_unlock(&table->mutex);
    if (!closes) return 0;
    int error = file_system_close(record->system);
    lane_mutex_lock(&table->mutex);
    record->free_ = table->free_;
    table->free_ = record;
    lane_mutex_unlock(&table->mutex);
    return error;
}

int file_acquire(weft_file file, file_purpose purpose, file_record **record) {
    file_table *table;
    file_record *found = find_locked(file, &table);
    if (found == NULL) return WEFT_EBADHANDLE;
    int rc = purpose == FILE_CLOSED && found->users != 0 ? WEFT_EBUSY : WEFT_OK;
    if (rc == WEFT_OK) {
        found->users++;
        found->open = purpose == FILE_USED;
        *record = found;
    }
    lane_mutex_unlock(&table->mutex);
    return rc;
}

void file_release_unused(file_record *record, file_purpose purpose) {
    file_table *table = &tables[record->slot];
    lane_mutex_lock(&table->mutex);
    record->open = record->open || purpose == FILE_CLOSED;
    lane_mutex_unlock(&table->mutex);
    file_release(record);
}

#if defined(_WIN32)
void file_table_each(uint32_t slot, void (*act)(const file_record *record)) {
    file_table *table = &tables[slot];
    lane_mutex_lock(&table->mutex);
    for (uint32_t i = 0; i < table->count; i++)
        if (table->records[i]->open || table->records[i]->users != 0) act(table->records[i]);
    lane_mutex_unlock(&table->mutex);
}
#endif

void file_table_end(uint32_t slot) {
    file_table *table = &tables[slot];
    lane_mutex_lock(&table->mutex);
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->records[i]->open) file_system_close(table->records[i]->system);
        free(table->records[i]);
    }
    free(table->records);
    table->records = NULL;
    table->free_ = NULL;
    table->count = table->room = 0;
    lane_mutex_unlock(&table->mutex);
}
