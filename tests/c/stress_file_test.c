/* SPDX-License-Identifier: MIT
 *
 * stress_file_test.c: reads, writes and syncs of one file from all sides, of all lengths, beyond its end, while others cancel them at random
 * moments and a stop comes in the middle. Each op completes once and tells the truth; no buffer is written to afterwards. It runs once
 * for each way that files may take: WEFT_FILES.
 */
#include <errno.h>

#include "stress_support.h"

enum {
    FILE_BYTES = 1 << 20,
    JOBS = 48,
    SHORT_BYTES = 5000,
    LONG_BYTES = 200000, /* beyond what a worker copies itself */
};

/* What the file has at each offset, before and after all that is written. */
static char byte_at(uint64_t offset) { return (char)(offset * UINT64_C(0x9e3779b97f4a7c15) >> 56); }

enum kind { READ, WRITE, SYNC };

typedef struct job {
    weft_file_op op;
    struct storm *storm;
    uint64_t random;
    enum kind kind;
    uint32_t flags;
    uint64_t offset, length;
    char *data; /* LONG_BYTES, of which all but what the op moved is 0x5a after it */
    long left;  /* starts */
    atomic_int under_way;
} job;

typedef struct storm {
    weft_file file;
    job jobs[JOBS];
    atomic_long over;
    atomic_long cancelled, completed;
    atomic_bool ends;
} storm;

static void bad(const job *j, const char *what)
{
    fprintf(stderr, "%s: kind %d flags %u, %llu bytes at %llu: status %d, %d of the system, count %llu\n", what, (int)j->kind, j->flags,
            (unsigned long long)j->length, (unsigned long long)j->offset, j->op.status, j->op.os_error, (unsigned long long)j->op.count);
    abort();
}

static void check(job *j)
{
    uint64_t there = j->offset >= FILE_BYTES ? 0 : FILE_BYTES - j->offset < j->length ? FILE_BYTES - j->offset : j->length;
    bool all = (j->flags & WEFT_IO_ALL) != 0;
    if (j->kind == SYNC) there = 0;
    switch (j->op.status) {
    case WEFT_OK:
        /* What the system gives of a local file is short only at its end, or if the rest was cancelled. */
        if (all ? j->op.count != j->length : j->op.count > there) bad(j, "a wrong count");
        if (!all && j->op.count == 0 && there != 0) bad(j, "nothing");
        break;
    case WEFT_EOF:
        if (!all || j->kind != READ || j->op.count != there || there == j->length) bad(j, "no end");
        break;
    case WEFT_ECANCELED:
        if (all ? j->op.count > there : j->op.count != 0) bad(j, "a wrong count of what was cancelled");
        atomic_fetch_add(&j->storm->cancelled, 1);
        break;
    default: bad(j, "failed");
    }
    if (j->kind == READ)
        for (uint64_t i = 0; i < j->op.count; i++)
            if (j->data[i] != byte_at(j->offset + i)) bad(j, "wrong bytes");
}

static void prepare(job *j)
{
    uint64_t *random = &j->random;
    uint64_t dice = stress_below(random, 64);
    j->kind = dice == 0 ? SYNC : dice < 12 ? WRITE : READ;
    j->flags = j->kind != SYNC && stress_below(random, 2) ? WEFT_IO_ALL : 0;
    j->length = j->kind == SYNC ? 0 : 1 + stress_below(random, dice % 8 == 1 ? LONG_BYTES : SHORT_BYTES);
    j->offset = stress_below(random, FILE_BYTES - (j->kind == WRITE ? j->length : 0));
    if (j->kind == WRITE)
        for (uint64_t i = 0; i < j->length; i++) j->data[i] = byte_at(j->offset + i);
}

static void done(weft_op *op);

/* Starts the next op of a job, until it has had enough or the runtime stops. */
static void go_on(job *j)
{
    for (;;) {
        if (j->left-- == 0) break;
        for (int i = 0; i < LONG_BYTES; i += 509)
            if (j->data[i] != 0x5a) bad(j, "a byte came after the end");
        prepare(j);
        memset(&j->op.status, 0x77, sizeof j->op.status);
        if (atomic_exchange(&j->under_way, 1) != 0) bad(j, "twice");
        weft_file file = j->storm->file;
        int rc = j->kind == SYNC    ? weft_file_sync(&j->op, file)
                 : j->kind == WRITE ? weft_file_write(&j->op, file, j->data, j->length, j->offset, j->flags)
                                    : weft_file_read(&j->op, file, j->data, j->length, j->offset, j->flags);
        if (rc == WEFT_OK) return; /* it may be over, and have been started again */
        atomic_store(&j->under_way, 0);
        memset(j->data, 0x5a, j->length);
        if (rc == WEFT_ESTOPPED || rc == WEFT_EBADHANDLE) break;
        if (rc != 1 || j->op.status != WEFT_ECANCELED) {
            fprintf(stderr, "start: %d\n", rc);
            abort();
        }
    }
    atomic_fetch_add(&j->storm->over, 1);
}

static void done(weft_op *op)
{
    job *j = (job *)op;
    if (atomic_exchange(&j->under_way, 0) != 1) bad(j, "completed twice");
    stress_progress();
    atomic_fetch_add_explicit(&j->storm->completed, 1, memory_order_relaxed);
    check(j);
    memset(j->data, 0x5a, j->length);
    go_on(j);
}

static void *cancels(void *argument)
{
    storm *s = argument;
    uint64_t random = stress.seed | 1;
    while (!atomic_load(&s->ends)) {
        weft_file_cancel(&s->jobs[stress_below(&random, JOBS)].op);
        stress_wait(&random, 30000);
    }
    return NULL;
}

typedef struct opening {
    weft_file_op op;
    atomic_long done;
} opening;

static void opened(weft_op *op) { atomic_fetch_add(&((opening *)op)->done, 1); }

static const char *path;

static weft_file open_in(weft_runtime runtime)
{
    opening o = {.op.op.run = opened};
    int rc;
    do {
        rc = weft_file_open(runtime, &o.op, path, WEFT_FILE_READ | WEFT_FILE_WRITE, 0);
    } while (rc == WEFT_ELIMIT); /* a thread was refused, and there is no other */
    assert_int_equal(rc, WEFT_OK);
    wait_until(&o.done, 1);
    assert_int_equal(o.op.status, WEFT_OK);
    return o.op.opened;
}

static storm *begin(weft_runtime runtime, uint64_t *random, long starts)
{
    storm *s = calloc(1, sizeof *s);
    s->file = open_in(runtime);
    for (int i = 0; i < JOBS; i++) {
        s->jobs[i] = (job){.op.op.run = done, .storm = s, .random = stress_random(random), .data = malloc(LONG_BYTES), .left = starts};
        memset(s->jobs[i].data, 0x5a, LONG_BYTES);
    }
    return s;
}

static void end(storm *s)
{
    for (int i = 0; i < JOBS; i++) free(s->jobs[i].data);
    free(s);
}

/* Which way files go is told by the counters; a kernel that refuses the ring is no excuse where the ring is asked for. */
static void have_gone_the_right_way(weft_runtime runtime)
{
    const char *files = getenv("WEFT_FILES");
    bool pool = files != NULL && strcmp(files, "pool") == 0, ring = files != NULL && strcmp(files, "ring") == 0;
    weft_stats stats = stats_of(runtime);
    assert_int_equal(stats.file_ring > 0, !pool);
#if defined(_WIN32)
    assert_int_equal(stats.file_immediate, 0);
    (void)ring;
#else
    assert_int_equal(stats.file_immediate > 0, !pool && !ring);
#endif
}

static void storms(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    storm *s = begin(runtime, random, 100 * stress_scale());
    pthread_t canceller;
    assert_int_equal(pthread_create(&canceller, NULL, cancels, s), 0);
    for (int i = 0; i < JOBS; i++) go_on(&s->jobs[i]);
    wait_until(&s->over, JOBS);
    atomic_store(&s->ends, true);
    pthread_join(canceller, NULL);
    printf("    %ld ops, %ld cancelled\n", atomic_load(&s->completed), atomic_load(&s->cancelled));
    assert_int_equal(weft_file_abandon(s->file), WEFT_OK);
    have_gone_the_right_way(runtime);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    end(s);
}

static void stops(uint32_t workers, uint64_t *random)
{
    for (long round = 0; round < 15 * stress_scale(); round++) {
        weft_runtime runtime = stressed(workers);
        storm *s = begin(runtime, random, INT32_MAX);
        pthread_t canceller;
        assert_int_equal(pthread_create(&canceller, NULL, cancels, s), 0);
        for (int i = 0; i < JOBS; i++) go_on(&s->jobs[i]);
        stress_wait(random, 3000000);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        assert_int_equal(atomic_load(&s->over), JOBS);
        atomic_store(&s->ends, true);
        pthread_join(canceller, NULL);
        end(s);
        stress_progress();
    }
}

STRESS(storms)
STRESS(stops)

int main(void)
{
    char folder[300], name[310];
    const char *temporary = getenv("TEMP");
    snprintf(folder, sizeof folder, "%s/weft-stress-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL) return 2;
    snprintf(name, sizeof name, "%s/bytes", folder);
    path = name;
    char *bytes = malloc(FILE_BYTES);
    for (uint64_t i = 0; i < FILE_BYTES; i++) bytes[i] = byte_at(i);
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(bytes, 1, FILE_BYTES, file) != FILE_BYTES || fclose(file) != 0) return 2;
    free(bytes);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storms_everywhere),
        cmocka_unit_test(stops_everywhere),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || remove(name) != 0 || rmdir(folder) != 0;
}
