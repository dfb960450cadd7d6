/* SPDX-License-Identifier: MIT
 *
 * file_support.h: what the tests of files share: an op that is waited for, a folder for the length of the program, and the ways that files may take.
 */
#ifndef WEFT_TESTS_C_FILE_SUPPORT_H
#define WEFT_TESTS_C_FILE_SUPPORT_H

#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

typedef struct file_job {
    weft_file_op op;
    atomic_long done;
} file_job;

static inline void count_done(weft_op *op) { atomic_fetch_add(&((file_job *)op)->done, 1); }

static inline file_job new_job(void) { return (file_job){.op = {.op = {.run = count_done}}}; }

static bool refused; /* the kernel has no ring for us */

static inline bool goes(const char *way)
{
    const char *files = getenv("WEFT_FILES");
    return files != NULL && strcmp(files, way) == 0;
}

/* A kernel without io_uring is no excuse: where it may be missing, the tests are to be told. */
static inline bool has_flights(void) { return !refused && !goes("pool"); }

static char folder[300];
static weft_runtime runtime;

static inline int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TEMP");
    runtime = start_runtime(1);
    snprintf(folder, sizeof folder, "%s/weft-file-XXXXXX", temporary != NULL ? temporary : "/tmp");
    return mkdtemp(folder) == NULL;
}

static inline const char *path_of(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline int remove_folder(void **state)
{
    (void)state;
    int rc = weft_runtime_destroy(runtime);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] != '.') rc |= remove(path_of(entry->d_name));
    closedir(entries);
    return rc | rmdir(folder);
}

/* Waits for a start and returns the op's status. */
static inline int result(file_job *job, int started)
{
    assert_int_equal(started, WEFT_OK);
    wait_for(&job->done, 1);
    atomic_store(&job->done, 0);
    return job->op.status;
}

static inline int try_open(file_job *job, const char *path, uint32_t flags)
{
    return result(job, weft_file_open(runtime, &job->op, path, flags, 0600));
}

static inline weft_file open_file(const char *path, uint32_t flags)
{
    file_job job = new_job();
    assert_int_equal(try_open(&job, path, flags), WEFT_OK);
    assert_true(job.op.opened.id != 0);
    return job.op.opened;
}

static inline void close_file(weft_file file)
{
    file_job job = new_job();
    assert_int_equal(result(&job, weft_file_close(&job.op, file)), WEFT_OK);
}

#define NEW (WEFT_FILE_READ | WEFT_FILE_WRITE | WEFT_FILE_CREATE | WEFT_FILE_TRUNCATE)

#if defined(_WIN32)

enum { NOT_FOUND = ERROR_FILE_NOT_FOUND, IS_FOLDER = 336 /* ERROR_DIRECTORY_NOT_SUPPORTED */, NOT_ALLOWED = ERROR_ACCESS_DENIED };

static inline bool refuse_ring(void) { return false; }

/* Nobody else may have it for this. */
static inline bool is_open(const char *path)
{
    HANDLE mine = CreateFileA(path, GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    assert_true(mine != INVALID_HANDLE_VALUE || GetLastError() == ERROR_SHARING_VIOLATION);
    return mine == INVALID_HANDLE_VALUE || !CloseHandle(mine);
}

#else

enum { NOT_FOUND = ENOENT, IS_FOLDER = EISDIR, NOT_ALLOWED = EBADF };

/* io_uring_setup is not for this process. */
static inline bool refuse_ring(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static inline bool is_open(const char *path)
{
    struct stat wanted, there;
    bool found = false;
    assert_int_equal(stat(path, &wanted), 0);
    for (int system = 0; system < 1024; system++)
        found = found || (fstat(system, &there) == 0 && there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino);
    return found;
}

#endif
#endif
