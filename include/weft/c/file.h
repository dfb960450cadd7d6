/* SPDX-License-Identifier: MIT
 *
 * weft/c/file.h: files, without holding a worker.
 *
 * Completion-shaped, as io.h, and with its return values: WEFT_OK (op.run will be called, on a worker of the file's runtime), 1
 * (cancelled before the start: the result is there, op.run is not called), or a negative code (not started; the system's
 * failures are results, not returns).
 *
 * Nobody waits in a system call, and the results are the same, whichever way an op goes: a read of up to 64 KiB that finds all of it in memory
 * is over at once; else reads, writes and syncs go through io_uring where the kernel allows that (WEFT_FEATURE_URING; Linux 5.13 and
 * later, unless a sandbox forbids it), on Windows reads and writes of up to 64 KiB by overlapped calls (WEFT_FEATURE_OVERLAPPED); and all else is done on the
 * blocking pool, as WEFT_BLOCKING_FILE. weft_stats tells the ways. The environment variable WEFT_FILES=pool has all done on the pool, and WEFT_FILES=ring
 * as much as can be by io_uring or overlapped calls. With io_uring a system call that a worker waits in, such as
 * epoll_wait in an op, may be interrupted (EINTR) although there was no signal.
 *
 * A file is what has positions: a regular file or a block device; and a character device such as /dev/null. Every read and write tells
 * its offset; for what has no positions after all, the offset counts for nothing. What cannot be a file:
 *   directory          WEFT_ENOTSUP, os_error EISDIR (ERROR_DIRECTORY_NOT_SUPPORTED)
 *   FIFO, socket       WEFT_ENOTSUP; they wait for their peers, and belong to weft_descriptor_open
 * Results that say more than an error:
 *   fewer bytes        without WEFT_IO_ALL: as the system gave; count tells how many, status is WEFT_OK
 *   end of file        a read there: count 0, WEFT_OK; with WEFT_IO_ALL: WEFT_EOF, and count tells what was before the end
 *   full device        WEFT_ENOSPC; count tells what was written before
 * Any number of ops of a file may be under way at once, in no order. A request to cancel is honoured before the start, while the op waits
 * for a thread, and with WEFT_IO_ALL between two calls of the system, a megabyte each; then count tells what was moved. Through io_uring, and overlapped, it
 * also ends a call that waits in the system, as for a terminal. Stop does the same for every op that is under way.
 * Buffers, and the path, belong to the op from its start until its result.
 */
#ifndef WEFT_C_FILE_H
#define WEFT_C_FILE_H

#include <stddef.h>

#include "blocking.h"
#include "io.h"

/** Handle of a file; {0} is none. */
typedef struct weft_file {
    uint64_t id;
} weft_file;

/* Flags of open: at least one of the first two. */
#define WEFT_FILE_READ 1u
#define WEFT_FILE_WRITE 2u
#define WEFT_FILE_CREATE 4u     /* make it if it is not there */
#define WEFT_FILE_EXCLUSIVE 8u  /* with CREATE: WEFT_EEXIST if it is there */
#define WEFT_FILE_TRUNCATE 16u  /* with WRITE: make it empty */
#define WEFT_FILE_APPEND 32u    /* with WRITE: every write goes to the end, whatever its offset */

typedef struct weft_file_op {
    weft_op op;            /* caller: run and context */
    int32_t status;        /* result: WEFT_OK or why it failed */
    int32_t os_error;      /* result: the system's error number, or 0 */
    uint64_t count;        /* result: bytes moved, also when status is an error; of weft_file_size the size */
    weft_file opened;      /* result of weft_file_open */
    void *data_;           /* weft's */
    uint64_t length_;      /* weft's */
    uint64_t offset_;      /* weft's */
    void *file_;           /* weft's */
    uint32_t kind_;        /* weft's */
    uint32_t flags_;       /* weft's */
    weft_blocking call_;   /* weft's */
    uint64_t flight_;      /* weft's */
    uint64_t spare_[1];    /* weft's */
} weft_file_op;

#ifdef __cplusplus
extern "C" {
#endif

/** Opens a file. It is not inherited by programs that are executed.
 *  Params:   runtime  whose pool makes the calls of this file's ops, and whose workers run them
 *            op       not NULL, idle
 *            path     not NULL, NUL-terminated
 *            flags    a sum of WEFT_FILE_...
 *            mode     permissions of a file that is made, less the umask; else not looked at
 *  Returns:  WEFT_OK; 1; WEFT_EINVAL; WEFT_EBADHANDLE; WEFT_EBUSY (the op is under way); WEFT_ESTOPPED; WEFT_EFORKED; WEFT_ELIMIT (no thread).
 *  Results:  WEFT_OK, op->opened is the file, the caller's to close; WEFT_ENOENT; WEFT_EEXIST; WEFT_EACCES; WEFT_ENOTSUP;
 *            WEFT_ELIMIT (no free descriptor); WEFT_ENOSPC; WEFT_ENOMEM; WEFT_ECANCELED; WEFT_ESYSTEM.
 *  Threads:  any; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_file_open(weft_runtime runtime, weft_file_op *op, const char *path, uint32_t flags,
                            uint32_t mode) WEFT_NOEXCEPT;

/** Reads from an offset. To read a whole file: weft_file_size, and this with WEFT_IO_ALL.
 *  Params:   op      not NULL, idle
 *            file    open for reading
 *            data    not NULL unless length is 0
 *            length  bytes
 *            offset  bytes from the beginning, at most INT64_MAX
 *            flags   0 or WEFT_IO_ALL
 *  Returns:  as weft_file_open.
 *  Results:  WEFT_OK, op->count bytes; WEFT_EOF; WEFT_ECANCELED; WEFT_EBADHANDLE (not open for reading); WEFT_ESYSTEM.
 *  Threads:  any; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_file_read(weft_file_op *op, weft_file file, void *data, size_t length, uint64_t offset,
                            uint32_t flags) WEFT_NOEXCEPT;

/** Writes at an offset. A write beyond the end leaves a gap of zeros.
 *  Params:   as weft_file_read; file is open for writing
 *  Returns:  as weft_file_open.
 *  Results:  WEFT_OK, op->count bytes; WEFT_ENOSPC; WEFT_ECANCELED; WEFT_EBADHANDLE (not open for writing); WEFT_ESYSTEM.
 *  Threads:  any; never calls back; raises no signal.
 *  Since:    0.1 */
WEFT_API int weft_file_write(weft_file_op *op, weft_file file, const void *data, size_t length, uint64_t offset,
                             uint32_t flags) WEFT_NOEXCEPT;

/** Asks how many bytes a file has: op->count. 0 for a character device.
 *  Params:   op    not NULL, idle
 *            file  open
 *  Returns:  as weft_file_open.
 *  Results:  WEFT_OK; WEFT_ECANCELED; WEFT_ESYSTEM.
 *  Threads:  any; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_file_size(weft_file_op *op, weft_file file) WEFT_NOEXCEPT;

/** Waits until what was written is on the device (fsync).
 *  Params, Returns:  as weft_file_size.
 *  Results:  WEFT_OK (also for what cannot be synced); WEFT_ENOSPC; WEFT_ECANCELED; WEFT_ESYSTEM.
 *  Threads:  any; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_file_sync(weft_file_op *op, weft_file file) WEFT_NOEXCEPT;

/** Closes a file and tells whether that went well. The handle is stale from WEFT_OK on, whatever the result is. It cannot be cancelled.
 *  Params:   as weft_file_size
 *  Returns:  as weft_file_open; WEFT_EBUSY also while another op of the file is under way.
 *  Results:  WEFT_OK; WEFT_ENOSPC; WEFT_ESYSTEM (a failure of an earlier write, on some file systems).
 *  Threads:  any; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_file_close(weft_file_op *op, weft_file file) WEFT_NOEXCEPT;

/** Gives a file up at once: the handle is stale, and the system's descriptor is closed here, or by the last op that is under
 *  way. What the close said is lost.
 *  Params:   file  {0} is allowed and does nothing
 *  Returns:  WEFT_OK; WEFT_EBADHANDLE; WEFT_EFORKED.
 *  Threads:  any; may block as long as the system's close does, on most file systems not at all.
 *  Since:    0.1 */
WEFT_API int weft_file_abandon(weft_file file) WEFT_NOEXCEPT;

/** Asks an op to end early: see the head of this file. The op still completes exactly once.
 *  Params:   op  not NULL
 *  Returns:  as weft_blocking_cancel.
 *  Threads:  any, as long as the caller knows that the memory is still there; never calls back.
 *  Since:    0.1 */
WEFT_API int weft_file_cancel(weft_file_op *op) WEFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
