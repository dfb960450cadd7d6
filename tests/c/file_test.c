/* SPDX-License-Identifier: MIT
 *
 * file_test.c: opening what is a file and what is none, reading and writing at offsets, the ends, cancelling, closing, stopping. It runs once for each
 * way that files may take: as they are; by flights or the pool alone (WEFT_FILES); and where Linux refuses the ring (argument "refused"). Devices:
 * file_device_test.c, windows_test.c.
 */
#include "file_support.h"

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
    assert_int_equal(job.op.os_error, NOT_FOUND);
    assert_int_equal(try_open(&job, folder, WEFT_FILE_READ), WEFT_ENOTSUP);
    assert_int_equal(job.op.os_error, IS_FOLDER);
    assert_int_equal(try_open(&job, folder, WEFT_FILE_WRITE), WEFT_ENOTSUP);
    assert_int_equal(job.op.os_error, IS_FOLDER);
    close_file(open_file(path_of("made"), NEW));
    assert_int_equal(try_open(&job, path_of("made/below"), WEFT_FILE_READ), WEFT_ENOENT);
    assert_int_equal(try_open(&job, "\xff/nowhere", WEFT_FILE_READ), WEFT_ENOENT);
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
    assert_int_equal(job.op.os_error, NOT_ALLOWED);
    close_file(file);
}

/* A file of nothing but zeros. */
static weft_file open_zeros(uint64_t bytes)
{
    file_job job = new_job();
    weft_file file = open_file(path_of("zeros"), NEW);
    assert_int_equal(result(&job, weft_file_write(&job.op, file, "", 1, bytes - 1, WEFT_IO_ALL)), WEFT_OK);
    return file;
}

static void cancel_early_and_between_pieces(void **state)
{
    (void)state;
    file_job job = new_job();
    enum { HUGE_BYTES = 1 << 29 }; /* never all touched: the cancel comes first, or the read has been faster */
    weft_file zero = open_zeros(HUGE_BYTES);
    char byte;
    assert_int_equal(weft_file_cancel(&job.op), WEFT_OK);
    assert_int_equal(weft_file_read(&job.op, zero, &byte, 1, 0, 0), 1);
    assert_int_equal(job.op.status, WEFT_ECANCELED);
    assert_int_equal(atomic_load(&job.done), 0);

    char *huge = malloc(HUGE_BYTES);
    assert_non_null(huge);
    assert_int_equal(weft_file_read(&job.op, zero, huge, HUGE_BYTES, 0, WEFT_IO_ALL), WEFT_OK);
    assert_int_equal(weft_file_read(&job.op, zero, &byte, 1, 0, 0), WEFT_EBUSY);
    weft_file_cancel(&job.op);
    wait_for(&job.done, 1);
    /* The ring may be interrupted within a megabyte. */
    assert_true(job.op.status == WEFT_ECANCELED ? job.op.count < HUGE_BYTES && (has_flights() || job.op.count % (1 << 20) == 0)
                                                : job.op.status == WEFT_OK && job.op.count == HUGE_BYTES);
    free(huge);
    close_file(zero);
}

/* The counters tell which way an op has gone. On Windows a sync is always made by the pool, and so is what is long, but for WEFT_FILES=ring. */
static void the_way_in_use(void **state)
{
    (void)state;
#if defined(_WIN32)
    const uint64_t feature = WEFT_FEATURE_OVERLAPPED;
    const int flown = goes("ring") ? 3 : 0, called = goes("ring") ? 1 : 2;
    const bool memory = false;
#else
    const uint64_t feature = WEFT_FEATURE_URING;
    const int flown = has_flights() ? 4 : 0, called = has_flights() ? 0 : 2;
    const bool memory = !goes("pool") && !goes("ring");
#endif
    assert_int_equal((weft_features() & feature) != 0, has_flights());
    file_job job = new_job();
    weft_file file = open_file(path_of("ways"), NEW);
    enum { LARGE_BYTES = 3 << 20 };
    char *large = malloc(LARGE_BYTES);
    memset(large, 'x', LARGE_BYTES);
    weft_stats before = stats_of(runtime);
    assert_int_equal(before.descriptors, 0); /* what waits for flights is none */
    assert_int_equal(result(&job, weft_file_write(&job.op, file, large, LARGE_BYTES, 0, WEFT_IO_ALL)), WEFT_OK);
    assert_int_equal(result(&job, weft_file_sync(&job.op, file)), WEFT_OK);
    weft_stats between = stats_of(runtime);
    assert_int_equal(between.file_ring - before.file_ring, flown); /* a megabyte each */
    assert_int_equal(between.blocking_calls - before.blocking_calls, called);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(result(&job, weft_file_read(&job.op, file, large, 4096, (uint64_t)i * 4096, 0)), WEFT_OK);
        assert_int_equal(job.op.count, 4096);
    }
    weft_stats after = stats_of(runtime);
    assert_int_equal(after.file_immediate - between.file_immediate, memory ? 10 : 0); /* just written */
    assert_int_equal(after.file_ring - between.file_ring, has_flights() && !memory ? 10 : 0);
    assert_int_equal(after.blocking_calls - between.blocking_calls, has_flights() || memory ? 0 : 10);
    free(large);
    close_file(file);
}

/* A close is refused while the file is in use; abandoning it waits for the last op. */
static void close_while_in_use(void **state)
{
    (void)state;
    file_job job = new_job(), other = new_job();
    enum { LARGE_BYTES = 64 << 20 };
    char *large = malloc(LARGE_BYTES);
    weft_file zero = open_zeros(LARGE_BYTES);
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

static void handles_are_not_used_again(void **state)
{
    (void)state;
    close_file(open_file(path_of("again"), NEW));
    weft_file last = {0};
    for (int i = 0; i < 100; i++) {
        weft_file file = open_file(path_of("again"), WEFT_FILE_WRITE);
        assert_int_not_equal(file.id, last.id);
        assert_int_equal(weft_file_abandon(last), last.id == 0 ? WEFT_OK : WEFT_EBADHANDLE);
        last = file;
        if (i == 0) assert_true(is_open(path_of("again")));
        if (i % 2 == 0)
            close_file(file);
        else
            assert_int_equal(weft_file_abandon(file), WEFT_OK);
    }
    assert_false(is_open(path_of("again")));
}

static void stop_and_destroy(void **state)
{
    (void)state;
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
    weft_file next = open_file(path_of("stopped"), WEFT_FILE_READ);
    assert_int_equal(weft_file_abandon(file), WEFT_EBADHANDLE);
    assert_int_equal(weft_file_abandon(next), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    runtime = kept;
    assert_false(is_open(path_of("stopped")));
}

int main(int argc, char **argv)
{
    refused = argc == 2 && strcmp(argv[1], "refused") == 0;
    if (refused && !refuse_ring()) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(what_cannot_be_opened),
        cmocka_unit_test(offsets_and_ends),
        cmocka_unit_test(cancel_early_and_between_pieces),
        cmocka_unit_test(the_way_in_use),
        cmocka_unit_test(close_while_in_use),
        cmocka_unit_test(handles_are_not_used_again),
        cmocka_unit_test(stop_and_destroy),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
