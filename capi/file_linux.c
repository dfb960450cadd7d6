/* SPDX-License-Identifier: MIT
 *
 * file_linux.c: the system's calls for files.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CALL_MAX = 0x7ffff000 }; /* bytes that Linux moves in one call */

int file_system_code(int os_error, bool opening) {
    (void)opening;
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

int file_system_open(const char *path, uint32_t flags, uint32_t mode, intptr_t *system) {
    int opened;
    do {
        opened = open(path, open_flags(flags), (mode_t)mode);
    } while (opened < 0 && errno == EINTR);
    int error = opened < 0 ? errno : check_kind(opened);
    if (error != 0 && opened >= 0) close(opened);
    *system = opened;
    return error;
}

/* Not repeated on EINTR: the descriptor is gone. */
int file_system_close(intptr_t system) { return close((int)system) == 0 || errno == EINTR ? 0 : errno; }

static size_t call_length(uint64_t length) { return length < CALL_MAX ? (size_t)length : CALL_MAX; }

/* What has no positions (a terminal) is read and written as it comes. */

int file_system_read(intptr_t system, void *data, uint64_t length, uint64_t offset, uint64_t *moved) {
    ssize_t n;
    do {
        n = pread((int)system, data, call_length(length), (off_t)offset);
        if (n < 0 && errno == ESPIPE) n = read((int)system, data, call_length(length));
    } while (n < 0 && errno == EINTR);
    *moved = n < 0 ? 0 : (uint64_t)n;
    return n < 0 ? errno : 0;
}

int file_system_write(intptr_t system, const void *data, uint64_t length, uint64_t offset, uint64_t *moved) {
    ssize_t n;
    do {
        n = pwrite((int)system, data, call_length(length), (off_t)offset);
        if (n < 0 && errno == ESPIPE) n = write((int)system, data, call_length(length));
    } while (n < 0 && errno == EINTR);
    *moved = n < 0 ? 0 : (uint64_t)n;
    return n < 0 ? errno : 0;
}

file_peeked file_system_peek(intptr_t system, void *data, uint64_t length, uint64_t offset, uint64_t *moved) {
    struct iovec piece = {data, call_length(length)};
    ssize_t n = preadv2((int)system, &piece, 1, (off_t)offset, RWF_NOWAIT);
    *moved = n < 0 ? 0 : (uint64_t)n;
    return n >= 0 ? FILE_PEEKED : errno == EOPNOTSUPP || errno == ENOSYS ? FILE_WAITS_ALWAYS : FILE_WOULD_WAIT;
}

int file_system_size(intptr_t system, uint64_t *bytes) {
    struct stat about;
    if (fstat((int)system, &about) != 0) return errno;
    off_t size = S_ISBLK(about.st_mode) ? lseek((int)system, 0, SEEK_END) : about.st_size;
    if (size < 0) return errno;
    *bytes = (uint64_t)size;
    return 0;
}

int file_system_sync_error(int os_error) { return os_error == EINVAL || os_error == EROFS ? 0 : os_error; }

/* A thread that ends takes along what it has submitted, and a cancellation may be one of an earlier flight. */
bool file_system_refused(int os_error, bool sync) {
    return os_error == ECANCELED || os_error == EINTR || os_error == EAGAIN || os_error == EOPNOTSUPP || (os_error == EINVAL && !sync);
}

int file_system_sync(intptr_t system) {
    int rc;
    do {
        rc = fsync((int)system);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : file_system_sync_error(errno);
}
