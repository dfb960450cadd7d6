/* SPDX-License-Identifier: MIT
 *
 * file.h: what the C files of files offer each other and the rest of the library. file.c has the ops and the ways that they take; file_table.c which file a
 * handle means; file_*.c the system's calls; flight.h how the system carries ops out without a thread.
 */
#ifndef WEFT_FILE_INTERNAL_H
#define WEFT_FILE_INTERNAL_H

#include "lane_internal.h"

/* file.c */

/* A runtime begins to stop: what waits in the system is asked to end. */
void file_stop(uint32_t slot);
/* Closes all files of a runtime whose threads have ended; their handles are stale. */
void file_close_all(uint32_t slot);
/* Adds what weft_stats tells of files. */
void file_read_stats(uint32_t slot, weft_stats *stats);

/* file_table.c. A record is guarded by its table's mutex, but for system, which changes only while nobody uses the record. Whoever uses it is
 * counted in users from the start of an op until the call is over; a record that is not open any more is closed by the last user. */

typedef struct file_record {
    intptr_t system;
    uint32_t index;            /* immutable */
    uint32_t slot;             /* immutable */
    uint32_t generation;       /* guarded by mutex: the number of its file among all that the slot ever had */
    uint32_t users;            /* guarded by mutex */
    bool open;                 /* guarded by mutex: the handle is good */
    bool flies;                /* immutable while open: ops may fly (flight.h) */
    _Atomic bool uncached;     /* atomic: the file cannot be read without waiting; only an optimisation */
    struct file_record *free_; /* guarded by mutex: the next free one */
} file_record;

/* Why a record is wanted. */
typedef enum file_purpose {
    FILE_USED,    /* for an op */
    FILE_CLOSED,  /* for the op that closes it, which must be alone */
    FILE_GIVEN_UP /* to be closed by its last user */
} file_purpose;

bool file_add(uint32_t slot, intptr_t system, bool flies, weft_file *file); /* false: no memory */
/* Becomes a user of an open file. WEFT_EBADHANDLE; WEFT_EBUSY for FILE_CLOSED. */
int file_acquire(weft_file file, file_purpose purpose, file_record **record);
/* Lets go of a record. The last user of one that is not open closes it; returns what that said, an error of the system. */
int file_release(file_record *record);
void file_release_unused(file_record *record, file_purpose purpose); /* undoes file_acquire */
void file_table_end(uint32_t slot);
#if defined(_WIN32)
void file_table_each(uint32_t slot, void (*act)(const file_record *record)); /* all that are not closed, under the mutex */
#endif

/* file_*.c: one thing each, on a thread that may wait but for file_system_peek. They return the system's error number, or 0. */

#if defined(_WIN32)
#define FILE_NO_MEMORY 8 /* ERROR_NOT_ENOUGH_MEMORY */
#else
#define FILE_NO_MEMORY ENOMEM
#endif

int file_system_code(int os_error, bool opening); /* as an error of weft's */
int file_system_open(const char *path, uint32_t flags, uint32_t mode, intptr_t *system);
int file_system_close(intptr_t system);
int file_system_read(intptr_t system, void *data, uint64_t length, uint64_t offset, uint64_t *moved);
int file_system_write(intptr_t system, const void *data, uint64_t length, uint64_t offset, uint64_t *moved);
int file_system_size(intptr_t system, uint64_t *bytes);
int file_system_sync(intptr_t system);
int file_system_sync_error(int os_error); /* 0 for those that say that there is nothing to be synced */
/* What an error says of an op that has flown: that it was kept from being done, or cannot be done this way. */
bool file_system_refused(int os_error, bool sync);

typedef enum file_peeked { FILE_PEEKED, FILE_WOULD_WAIT, FILE_WAITS_ALWAYS } file_peeked;
/* Reads what is there without waiting; *moved is 0 at the end of the file. */
file_peeked file_system_peek(intptr_t system, void *data, uint64_t length, uint64_t offset, uint64_t *moved);

#endif
