/* SPDX-License-Identifier: MIT
 *
 * file_device_test.c: files that are Linux's: what is full, what has no end, FIFOs, and terminals, which answer when somebody types. It runs once for each
 * way that files may take, but for "refused".
 */
#include "file_support.h"

#include <termios.h>

static void fifos_are_no_files(void **state)
{
    (void)state;
    file_job job = new_job();
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    assert_int_equal(try_open(&job, path_of("fifo"), WEFT_FILE_READ), WEFT_ENOTSUP);
    assert_int_equal(try_open(&job, path_of("fifo"), WEFT_FILE_WRITE), WEFT_ENOTSUP);
    assert_int_equal(try_open(&job, path_of("fifo"), WEFT_FILE_READ | WEFT_FILE_WRITE), WEFT_ENOTSUP);
    assert_int_equal(try_open(&job, "/dev/null/below", WEFT_FILE_READ), WEFT_ENOENT);
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
        if (!has_flights() && !typed) assert_int_equal(write(typist, "ab", 2), 2); /* nothing else ends a call */
        wait_for(&job.done, 1);
        atomic_store(&job.done, 0);
        if (job.op.status == WEFT_ECANCELED) {
            assert_int_equal(job.op.count, 0);
            if (!has_flights() || typed) assert_int_equal(result(&job, weft_file_read(&job.op, terminal, got, 4, 7, 0)), WEFT_OK);
        } else {
            assert_true(!has_flights() || typed);
        }
        if (!has_flights() || typed) {
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
        if (!has_flights()) assert_int_equal(write(typist, "abc", 3), 3);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(atomic_load(&jobs[k].done), 1);
            assert_true(jobs[k].op.status == WEFT_ECANCELED ? jobs[k].op.count == 0 : jobs[k].op.status == WEFT_OK && !has_flights());
        }
        close(typist);
    }
    runtime = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifos_are_no_files),
        cmocka_unit_test(devices),
        cmocka_unit_test(cancel_what_waits_in_the_system),
        cmocka_unit_test(stop_what_waits_in_the_system),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
