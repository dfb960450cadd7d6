/* SPDX-License-Identifier: MIT
 *
 * faults_file_test.c: files under a system that refuses (faults.h): the ring, entries of the ring, reads of what is in memory, whole transfers. What was
 * written is read, whichever way each piece has gone.
 */
#include "io_support.h"

#include <semaphore.h>
#include <sys/uio.h>

#include "faults_support.h"

typedef struct filing {
    weft_file_op op;
    sem_t done;
} filing;

static void filed(weft_op *op) { sem_post(&((filing *)op)->done); }

static int filing_result(filing *f, int rc)
{
    if (rc != WEFT_OK) return -1001;
    while (sem_wait(&f->done) != 0) {
    }
    return f->op.status;
}

typedef struct clerk {
    pthread_t thread;
    weft_file file;
    uint64_t seed, place;
    bool good;
} clerk;

/* Writes and reads a part of the file that nobody else does. */
static void *files_away(void *argument)
{
    clerk *self = argument;
    enum { PART = 200000 };
    char *there = calloc(1, PART), *got = malloc(PART);
    filing f = {.op.op.run = filed};
    sem_init(&f.done, 0, 0);
    self->good = filing_result(&f, weft_file_write(&f.op, self->file, there, PART, self->place * PART, WEFT_IO_ALL)) == WEFT_OK;
    for (int round = 0; round < 60 && self->good; round++) {
        self->seed = self->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t at = (self->seed >> 20) % PART, length = 1 + (self->seed >> 40) % (round % 8 == 0 ? PART : 5000);
        if (length > PART - at) length = PART - at;
        if (round % 3 == 0) {
            memset(there + at, (int)(self->seed >> 56), length);
            self->good = filing_result(&f, weft_file_write(&f.op, self->file, there + at, length, self->place * PART + at, WEFT_IO_ALL)) == WEFT_OK &&
                         f.op.count == length;
        } else if (round % 10 == 5) {
            self->good = filing_result(&f, weft_file_sync(&f.op, self->file)) == WEFT_OK;
        } else {
            bool all = round % 2 == 0;
            self->good = filing_result(&f, weft_file_read(&f.op, self->file, got, length, self->place * PART + at, all ? WEFT_IO_ALL : 0)) == WEFT_OK &&
                         (all ? f.op.count == length : f.op.count > 0) && memcmp(got, there + at, f.op.count) == 0;
        }
    }
    if (!self->good) fprintf(stderr, "clerk: status %d, %d of the system\n", f.op.status, f.op.os_error);
    free(there);
    free(got);
    return NULL;
}

static void files(void **state)
{
    (void)state;
    static const fault kinds[] = {FAULT_interrupted, FAULT_not_cached, FAULT_short_move, FAULT_no_ring, FAULT_no_flight};
    enum { CLERKS = 4, KINDS = sizeof kinds / sizeof *kinds };
    char name[] = "/tmp/weft-faults-XXXXXX";
    int made = mkstemp(name);
    assert_true(made >= 0);
    weft_features(); /* so that it is the runtime's ring that is refused, not all */
    uint64_t with_ring = 0, without = 0;
    for (long again = 0; again < scaled(20); again++) {
        for (int k = 0; k < KINDS; k++) atomic_store(&fault_one_in[kinds[k]], 3);
        weft_runtime some = start_runtime(2);
        filing f = {.op.op.run = filed};
        sem_init(&f.done, 0, 0);
        assert_int_equal(filing_result(&f, weft_file_open(some, &f.op, name, WEFT_FILE_READ | WEFT_FILE_WRITE, 0)), WEFT_OK);
        clerk clerks[CLERKS];
        for (int i = 0; i < CLERKS; i++) {
            clerks[i] = (clerk){.file = f.op.opened, .seed = fault_seed + (uint64_t)i, .place = (uint64_t)i};
            assert_int_equal(pthread_create(&clerks[i].thread, NULL, files_away, &clerks[i]), 0);
        }
        for (int i = 0; i < CLERKS; i++) pthread_join(clerks[i].thread, NULL);
        for (int i = 0; i < CLERKS; i++) assert_true(clerks[i].good);
        if (stats_of(some).file_ring != 0) with_ring++;
        else without++;
        assert_int_equal(weft_runtime_destroy(some), WEFT_OK);
    }
    assert_true(with_ring > 0 && without > 0);
    unlink(name);
    close(made);
    have_struck(kinds, KINDS);
}

int main(void)
{
    faults_know((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "weft_now_ns"));
    faults_seed();
    if (library_begin == 0) return 2;
    const struct CMUnitTest tests[] = {
        IO_TEST(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
