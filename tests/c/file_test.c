/* SPDX-License-Identifier: MIT
 *
 * file_test.c: opening what is a file and what is none, reading and writing at offsets, the ends, cancelling, closing, stopping. It runs once for each
 * way that files may take: as they are; by the ring or the pool alone (WEFT_FILES); and where the kernel refuses the ring (argument "refused").
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

typedef struct file_job {
    weft_file_op op;
    atomic_long done;
} file_job;

static void count_done(weft_op *op) { atomic_fetch_add(&((file_job *)op)->done, 1); }

static file_job new_job(void) { return (file_job){.op = {.op = {.run = count_done}}}; }

static bool refused; /* the kernel has no ring for us */

static bool goes(const char *way)
{
    const char *files = getenv("WEFT_FILES");
    return files != NULL && strcmp(files, way) == 0;
}

/* A kernel without io_uring is no excuse: where it may be missing, the tests are to be told. */
static bool has_ring(void) { return !refused && !goes("pool"); }

static char folder[] = "/tmp/weft-file-XXXXXX";
static weft_runtime runtime;

static int make_folder(void **state)
{
    (void)state;
    runtime = start_runtime(1);
    return mkdtemp(folder) == NULL;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static int remove_folder(void **state)
{
    (void)state;
    return weft_runtime_destroy(runtime) != WEFT_OK || nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0;
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Waits for a start and returns the op's status. */
static int result(file_job *job, int started)
{
    assert_int_equal(started, WEFT_OK);
    wait_for(&job->done, 1);
    atomic_store(&job->done, 0);
    return job->op.status;
}

static int try_open(file_job *job, const char *path, uint32_t flags)
{
    return result(job, weft_file_open(runtime, &job->op, path, flags, 0600));
}

static weft_file open_file(const char *path, uint32_t flags)
{
    file_job job = new_job();
    assert_int_equal(try_open(&job, path, flags), WEFT_OK);
    assert_true(job.op.opened.id != 0);
    return job.op.opened;
}

static void close_file(weft_file file)
{
    file_job job = new_job();
    assert_int_equal(result(&job, weft_file_close(&job.op, file)), WEFT_OK);
}

#define NEW (WEFT_FILE_READ | WEFT_FILE_WRITE | WEFT_FILE_CREATE | WEFT_FILE_TRUNCATE)

static void bad_arguments(void **state)
{
    (void)state;
    file_job job = new_job();
    char byte = 0;
    assert_int_equal(weft_file_open(runtime, NULL, "x", WEFT_FILE_READ, 0), WEFT_EINVAL);
    assert_int_equal(weft_file_open(runtime, &job.op, NULL, WEFT_FILE_READ, 0), WEFT_EINVAL);
    assert_int_equal(weft_file_open(runtime, &job.op, "x", 0, 0), WEFT_EINVAL);
    assert_int_equal(weft_file_open(runtime, &job.op, "x", 64 | WEFT_FILE_READ, 0), WEFT_EINVAL);
    assert_int_equal(weft_file_open(runtime, &job.op, "x", WEFT_FILE_READ | WEFT_FILE_TRUNCATE, 0), WEFT_EINVAL);
    assert_int_equal(weft_file_open(runtime, &job.op, "x", WEFT_FILE_READ | WEFT_FILE_EXCLUSIVE, 0), WEFT_EINVAL);
    assert_int_equal(weft_file_open((weft_runtime){0}, &job.op, "x", WEFT_FILE_READ, 0), WEFT_EBADHANDLE);
    assert_int_equal(weft_file_size(&job.op, (weft_file){0}), WEFT_EBADHANDLE);
    assert_int_equal(weft_file_size(&job.op, (weft_file){UINT64_MAX}), WEFT_EBADHANDLE);
    assert_int_equal(weft_file_abandon((weft_file){0}), WEFT_OK);
    assert_int_equal(weft_file_abandon((weft_file){12345}), WEFT_EBADHANDLE);
    assert_int_equal(weft_file_cancel(NULL), WEFT_EINVAL);
    weft_file file = open_file(path_of("bad"), NEW);
    assert_int_equal(weft_file_read(&job.op, file, NULL, 1, 0, 0), WEFT_EINVAL);
    assert_int_equal(weft_file_read(&job.op, file, &byte, 1, 0, 2), WEFT_EINVAL);
    assert_int_equal(weft_file_read(&job.op, file, &byte, 1, INT64_MAX, 0), WEFT_EINVAL);
    close_file(file);
    assert_int_equal(weft_file_size(&job.op, file), WEFT_EBADHANDLE);
    assert_int_equal(atomic_load(&job.done), 0);
}

static void what_cannot_be_opened(void **state)
{
    (void)state;
    file_job job = new_job();
    assert_int_equal(try_open(&job, path_of("nothing"), WEFT_FILE_READ), WEFT_ENOENT);
    assert_int_equal(job.op.os_error, ENOENT);
    assert_int_equal(try_open(&job, "/dev/null/below", WEFT_FILE_READ), WEFT_ENOENT);
    assert_int_equal(try_open(&job, folder, WEFT_FILE_READ), WEFT_ENOTSUP);
    assert_int_equal(job.op.os_error, EISDIR);
    assert_int_equal(try_open(&job, folder, WEFT_FILE_WRITE), WEFT_ENOTSUP);
    assert_int_equal(job.op.os_error, EISDIR);
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    assert_int_equal(try_open(&job, path_of("fifo"), WEFT_FILE_READ), WEFT_ENOTSUP);
    assert_int_equal(try_open(&job, path_of("fifo"), WEFT_FILE_WRITE), WEFT_ENOTSUP);
    assert_int_equal(try_open(&job, path_of("fifo"), WEFT_FILE_READ | WEFT_FILE_WRITE), WEFT_ENOTSUP);
    close_file(open_file(path_of("made"), NEW));
    assert_int_equal(try_open(&job, path_of("made"), WEFT_FILE_WRITE | WEFT_FILE_CREATE | WEFT_FILE_EXCLUSIVE), WEFT_EEXIST);
    assert_int_equal(job.op.opened.id, 0);
}

static void offsets_and_ends(void **state)
{
    (void)state;
    file_job job = new_job();
    char text[16] = "";
    weft_file file = open_file(path_of("offsets"), NEW);
    assert_int_equal(result(&job, weft_file_read(&job.op, file, text, 4, 0, 0)), WEFT_OK);
    assert_int_equal(job.op.count, 0); /* empty */
    assert_int_equal(result(&job, weft_file_write(&job.op, file, "world", 5, 6, WEFT_IO_ALL)), WEFT_OK);
    assert_int_equal(job.op.count, 5);
    assert_int_equal(result(&job, weft_file_write(&job.op, file, "hello", 5, 0, 0)), WEFT_OK);
    assert_int_equal(result(&job, weft_file_size(&job.op, file)), WEFT_OK);
    assert_int_equal(job.op.count, 11);
    assert_int_equal(result(&job, weft_file_read(&job.op, file, text, 11, 0, WEFT_IO_ALL)), WEFT_OK);
    assert_memory_equal(text, "hello\0world", 11);
    assert_int_equal(result(&job, weft_file_read(&job.op, file, text, sizeof text, 8, 0)), WEFT_OK);
    assert_int_equal(job.op.count, 3);
    assert_memory_equal(text, "rld", 3);
    assert_int_equal(result(&job, weft_file_read(&job.op, file, text, sizeof text, 8, WEFT_IO_ALL)), WEFT_EOF);
    assert_int_equal(job.op.count, 3);
    assert_int_equal(result(&job, weft_file_read(&job.op, file, text, 1, 1000, 0)), WEFT_OK);
    assert_int_equal(job.op.count, 0);
    assert_int_equal(result(&job, weft_file_read(&job.op, file, NULL, 0, 0, WEFT_IO_ALL)), WEFT_OK);
    assert_int_equal(result(&job, weft_file_sync(&job.op, file)), WEFT_OK);
    close_file(file);

    file = open_file(path_of("offsets"), WEFT_FILE_WRITE | WEFT_FILE_APPEND);
    assert_int_equal(result(&job, weft_file_write(&job.op, file, "!", 1, 0, 0)), WEFT_OK);
    assert_int_equal(result(&job, weft_file_size(&job.op, file)), WEFT_OK);
    assert_int_equal(job.op.count, 12);
    assert_int_equal(result(&job, weft_file_read(&job.op, file, text, 1, 0, 0)), WEFT_EBADHANDLE); /* not for reading */
    assert_int_equal(job.op.os_error, EBADF);
    close_file(file);
}

static void devices(void **state)
{
    (void)state;
    file_job job = new_job();
    char bytes[8] = "abcdefg";
    weft_file full = open_file("/dev/full", WEFT_FILE_WRITE);
    assert_int_equal(result(&job, weft_file_write(&job.op, full, bytes, 8, 0, WEFT_IO_ALL)), WEFT_ENOSPC);
    assert_int_equal(job.op.os_error, ENOSPC);
    assert_int_equal(job.op.count, 0);
    assert_int_equal(result(&job, weft_file_sync(&job.op, full)), WEFT_OK);
    close_file(full);
    weft_file zero = open_file("/dev/zero", WEFT_FILE_READ);
    assert_int_equal(result(&job, weft_file_read(&job.op, zero, bytes, 8, 5, WEFT_IO_ALL)), WEFT_OK);
    assert_memory_equal(bytes, "\0\0\0\0\0\0\0", 8);
    assert_int_equal(result(&job, weft_file_size(&job.op, zero)), WEFT_OK);
    assert_int_equal(job.op.count, 0);
    close_file(zero);
}

static void cancel_early_and_between_pieces(void **state)
{
    (void)state;
    file_job job = new_job();
    weft_file zero = open_file("/dev/zero", WEFT_FILE_READ);
    char byte;
    assert_int_equal(weft_file_cancel(&job.op), WEFT_OK);
    assert_int_equal(weft_file_read(&job.op, zero, &byte, 1, 0, 0), 1);
    assert_int_equal(job.op.status, WEFT_ECANCELED);
    assert_int_equal(atomic_load(&job.done), 0);

    enum { HUGE_BYTES = 1 << 30 }; /* never all touched: the cancel comes first, or the read has been faster */
    char *huge = malloc(HUGE_BYTES);
    assert_non_null(huge);
    assert_int_equal(weft_file_read(&job.op, zero, huge, HUGE_BYTES, 0, WEFT_IO_ALL), WEFT_OK);
    assert_int_equal(weft_file_read(&job.op, zero, &byte, 1, 0, 0), WEFT_EBUSY);
    weft_file_cancel(&job.op);
    wait_for(&job.done, 1);
    /* The ring may be interrupted within a megabyte. */
    assert_true(job.op.status == WEFT_ECANCELED ? job.op.count < HUGE_BYTES && (has_ring() || job.op.count % (1 << 20) == 0)
                                                : job.op.status == WEFT_OK && job.op.count == HUGE_BYTES);
    free(huge);
    close_file(zero);
}

/* The counters tell which way an op has gone. */
static void the_way_in_use(void **state)
{
    (void)state;
    assert_int_equal((weft_features() & WEFT_FEATURE_URING) != 0, has_ring());
    file_job job = new_job();
    weft_file file = open_file(path_of("ways"), NEW);
    enum { LARGE_BYTES = 3 << 20 };
    char *large = malloc(LARGE_BYTES);
    memset(large, 'x', LARGE_BYTES);
    weft_stats before = stats_of(runtime);
    assert_int_equal(before.descriptors, 0); /* the ring is none */
    assert_int_equal(result(&job, weft_file_write(&job.op, file, large, LARGE_BYTES, 0, WEFT_IO_ALL)), WEFT_OK);
    assert_int_equal(result(&job, weft_file_sync(&job.op, file)), WEFT_OK);
    weft_stats between = stats_of(runtime);
    assert_int_equal(between.file_ring - before.file_ring, has_ring() ? 4 : 0); /* a megabyte each */
    assert_int_equal(between.blocking_calls - before.blocking_calls, has_ring() ? 0 : 2);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(result(&job, weft_file_read(&job.op, file, large, 4096, (uint64_t)i * 4096, 0)), WEFT_OK);
        assert_int_equal(job.op.count, 4096);
    }
    weft_stats after = stats_of(runtime);
    bool memory = !goes("pool") && !goes("ring");
    assert_int_equal(after.file_immediate - between.file_immediate, memory ? 10 : 0); /* just written */
    assert_int_equal(after.file_ring - between.file_ring, goes("ring") ? 10 : 0);
    assert_int_equal(after.blocking_calls - between.blocking_calls, goes("pool") ? 10 : 0);
    free(large);
    close_file(file);
}

/* A terminal: a read waits until somebody types. */
static weft_file open_terminal(int *typist)
{
    *typist = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(*typist >= 0 && grantpt(*typist) == 0 && unlockpt(*typist) == 0);
    const char *name = ptsname(*typist);
    int system = open(name, O_RDWR | O_NOCTTY);
    struct termios raw;
    assert_int_equal(tcgetattr(system, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(system, TCSANOW, &raw), 0);
    weft_file terminal = open_file(name, WEFT_FILE_READ);
    close(system);
    return terminal;
}

static void cancel_what_waits_in_the_system(void **state)
{
    (void)state;
    int typist;
    weft_file terminal = open_terminal(&typist);
    file_job job = new_job();
    char got[4] = "zzz";
    for (int i = 0; i < 40; i++) {
        assert_int_equal(weft_file_read(&job.op, terminal, got, 4, 7, 0), WEFT_OK);
        sleep_ms(i % 4); /* on its way, or there */
        bool typed = i % 8 == 7;
        if (typed) assert_int_equal(write(typist, "ab", 2), 2); /* it succeeds, or is cancelled and takes nothing */
        if (typed) sleep_ms(i % 3);
        int rc = weft_file_cancel(&job.op);
        assert_true(rc == 1 || rc == WEFT_OK); /* OK: it had waited for a thread */
        if (!has_ring() && !typed) assert_int_equal(write(typist, "ab", 2), 2); /* nothing else ends a call */
        wait_for(&job.done, 1);
        atomic_store(&job.done, 0);
        if (job.op.status == WEFT_ECANCELED) {
            assert_int_equal(job.op.count, 0);
            if (!has_ring() || typed) assert_int_equal(result(&job, weft_file_read(&job.op, terminal, got, 4, 7, 0)), WEFT_OK);
        } else {
            assert_true(!has_ring() || typed);
        }
        if (!has_ring() || typed) {
            assert_int_equal(job.op.status, WEFT_OK);
            assert_int_equal(job.op.count, 2);
            assert_memory_equal(got, "abz", 3);
            memcpy(got, "zzz", 3);
        }
    }
    close_file(terminal);
    close(typist);
}

static void stop_what_waits_in_the_system(void **state)
{
    (void)state;
    weft_runtime kept = runtime;
    for (int i = 0; i < 20; i++) {
        runtime = start_runtime(1 + i % 3);
        int typist;
        weft_file terminal = open_terminal(&typist);
        file_job jobs[3];
        char got[3];
        for (int k = 0; k < 3; k++) {
            jobs[k] = new_job();
            assert_int_equal(weft_file_read(&jobs[k].op, terminal, got + k, 1, 0, 0), WEFT_OK);
        }
        sleep_ms(i % 4);
        if (!has_ring()) assert_int_equal(write(typist, "abc", 3), 3);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(atomic_load(&jobs[k].done), 1);
            assert_true(jobs[k].op.status == WEFT_ECANCELED ? jobs[k].op.count == 0 : jobs[k].op.status == WEFT_OK && !has_ring());
        }
        close(typist);
    }
    runtime = kept;
}

/* A close is refused while the file is in use; abandoning it waits for the last op. */
static void close_while_in_use(void **state)
{
    (void)state;
    file_job job = new_job(), other = new_job();
    enum { LARGE_BYTES = 64 << 20 };
    char *large = malloc(LARGE_BYTES);
    weft_file zero = open_file("/dev/zero", WEFT_FILE_READ);
    assert_int_equal(weft_file_read(&job.op, zero, large, LARGE_BYTES, 0, WEFT_IO_ALL), WEFT_OK);
    int closed = weft_file_close(&other.op, zero);
    assert_true(closed == WEFT_EBUSY || closed == WEFT_OK); /* OK: the read was over already */
    if (closed == WEFT_OK) assert_int_equal(result(&other, closed), WEFT_OK);
    assert_int_equal(weft_file_abandon(zero), closed == WEFT_OK ? WEFT_EBADHANDLE : WEFT_OK);
    assert_int_equal(weft_file_abandon(zero), WEFT_EBADHANDLE);
    wait_for(&job.done, 1);
    assert_int_equal(job.op.status, WEFT_OK);
    assert_int_equal(job.op.count, LARGE_BYTES);
    free(large);
}

static long descriptors_of_process(void)
{
    long count = 0;
    for (int system = 0; system < 1024; system++) count += lseek(system, 0, SEEK_CUR) >= 0 || errno != EBADF;
    return count;
}

static void handles_are_not_used_again(void **state)
{
    (void)state;
    long before = descriptors_of_process();
    weft_file last = {0};
    for (int i = 0; i < 100; i++) {
        weft_file file = open_file("/dev/null", WEFT_FILE_WRITE);
        assert_int_not_equal(file.id, last.id);
        assert_int_equal(weft_file_abandon(last), last.id == 0 ? WEFT_OK : WEFT_EBADHANDLE);
        last = file;
        if (i % 2 == 0)
            close_file(file);
        else
            assert_int_equal(weft_file_abandon(file), WEFT_OK);
    }
    assert_int_equal(descriptors_of_process(), before);
}

static void stop_and_destroy(void **state)
{
    (void)state;
    long before = descriptors_of_process();
    weft_runtime kept = runtime;
    runtime = start_runtime(1);
    file_job job = new_job();
    weft_file file = open_file(path_of("stopped"), NEW);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(weft_file_size(&job.op, file), WEFT_ESTOPPED);
    assert_int_equal(weft_file_close(&job.op, file), WEFT_ESTOPPED);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK); /* closes it */
    assert_int_equal(weft_file_abandon(file), WEFT_EBADHANDLE);
    assert_int_equal(weft_file_size(&job.op, file), WEFT_EBADHANDLE);
    runtime = start_runtime(1); /* in the same slot */
    weft_file next = open_file("/dev/null", WEFT_FILE_READ);
    assert_int_equal(weft_file_abandon(file), WEFT_EBADHANDLE);
    assert_int_equal(weft_file_abandon(next), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    runtime = kept;
    assert_int_equal(descriptors_of_process(), before);
}

/* io_uring_setup is not for this process. */
static bool refuse_ring(void)
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

int main(int argc, char **argv)
{
    refused = argc == 2 && strcmp(argv[1], "refused") == 0;
    if (refused && !refuse_ring()) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(what_cannot_be_opened),
        cmocka_unit_test(offsets_and_ends),
        cmocka_unit_test(devices),
        cmocka_unit_test(cancel_early_and_between_pieces),
        cmocka_unit_test(the_way_in_use),
        cmocka_unit_test(cancel_what_waits_in_the_system),
        cmocka_unit_test(stop_what_waits_in_the_system),
        cmocka_unit_test(close_while_in_use),
        cmocka_unit_test(handles_are_not_used_again),
        cmocka_unit_test(stop_and_destroy),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
