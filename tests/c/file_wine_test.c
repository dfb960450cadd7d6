/* SPDX-License-Identifier: MIT
 *
 * file_wine_test.c: overlapped calls that end otherwise than those of Wine's regular files, which are always done when the call returns, and always report it:
 * at once without a packet, with an error, and not before somebody asks. Linux's devices do that, which Wine shows as files. The argument is a terminal.
 */
#include "file_support.h"

static const char *terminal_name;

/* Reads that are done at once, one after the other: a megabyte each, with WEFT_FILES=ring. */
static void done_at_once(void **state)
{
    (void)state;
    enum { BYTES = 3 << 20 };
    file_job job = new_job();
    char *bytes = malloc(BYTES);
    memset(bytes, 1, BYTES);
    weft_file zero = open_file("/dev/zero", WEFT_FILE_READ);
    weft_stats before = stats_of(runtime);
    assert_int_equal(result(&job, weft_file_read(&job.op, zero, bytes, BYTES, 5, WEFT_IO_ALL)), WEFT_OK);
    assert_int_equal(job.op.count, BYTES);
    for (int i = 0; i < BYTES; i++) assert_int_equal(bytes[i], 0);
    assert_int_equal(result(&job, weft_file_read(&job.op, zero, bytes, 10, 0, 0)), WEFT_OK);
    assert_int_equal(job.op.count, 10);
    assert_int_equal(stats_of(runtime).file_ring - before.file_ring, goes("ring") ? 4 : has_flights());
    free(bytes);
    close_file(zero);
}

static void fails_at_once(void **state)
{
    (void)state;
    file_job job = new_job();
    weft_file full = open_file("/dev/full", WEFT_FILE_WRITE);
    assert_int_equal(result(&job, weft_file_write(&job.op, full, "abc", 3, 0, WEFT_IO_ALL)), WEFT_ENOSPC);
    assert_int_equal(job.op.os_error, ERROR_DISK_FULL);
    assert_int_equal(job.op.count, 0);
    close_file(full);
}

static void cancel_what_waits_in_the_system(void **state)
{
    (void)state;
    weft_file terminal = open_file(terminal_name, WEFT_FILE_READ);
    file_job job = new_job();
    char got[4];
    for (int i = 0; i < 200; i++) {
        assert_int_equal(weft_file_read(&job.op, terminal, got, 4, 7, i % 2 ? WEFT_IO_ALL : 0), WEFT_OK);
        if (i % 3 != 0) sleep_ms(i % 3); /* on its way, or there */
        assert_int_equal(weft_file_cancel(&job.op), 1);
        wait_for(&job.done, 1);
        atomic_store(&job.done, 0);
        assert_int_equal(job.op.status, WEFT_ECANCELED);
        assert_int_equal(job.op.count, 0);
    }
    close_file(terminal);
}

/* A stop ends what waits; a file that was given up is closed by its last op. */
static void stop_what_waits_in_the_system(void **state)
{
    (void)state;
    weft_runtime kept = runtime;
    for (int i = 0; i < 40; i++) {
        runtime = start_runtime(1 + (uint32_t)i % 3);
        weft_file terminal = open_file(terminal_name, WEFT_FILE_READ);
        file_job jobs[3], closing = new_job();
        char got[3];
        for (int k = 0; k < 3; k++) {
            jobs[k] = new_job();
            assert_int_equal(weft_file_read(&jobs[k].op, terminal, got + k, 1, 0, 0), WEFT_OK);
        }
        assert_int_equal(weft_file_close(&closing.op, terminal), WEFT_EBUSY);
        if (i % 2) assert_int_equal(weft_file_abandon(terminal), WEFT_OK);
        if (i % 4) sleep_ms(i % 4);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(atomic_load(&jobs[k].done), 1);
            assert_int_equal(jobs[k].op.status, WEFT_ECANCELED);
            assert_int_equal(jobs[k].op.count, 0);
        }
    }
    runtime = kept;
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    terminal_name = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(done_at_once),
        cmocka_unit_test(fails_at_once),
        cmocka_unit_test(cancel_what_waits_in_the_system),
        cmocka_unit_test(stop_what_waits_in_the_system),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
