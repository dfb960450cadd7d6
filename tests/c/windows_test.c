/* SPDX-License-Identifier: MIT
 *
 * windows_test.c: what is Windows' own in files, pipes and sockets, and where the tests of the same on Linux ask Linux' questions. Built
 * for Windows only.
 */
#include "fixture.h"

#include <stdbool.h>
#include <stdio.h>

/* Files. */

typedef struct job {
    weft_file_op op;
    atomic_long runs;
} job;

static void job_run(weft_op *op) { atomic_fetch_add(&((job *)op)->runs, 1); }

static weft_file_op *fresh_file(job *j)
{
    memset(j, 0, sizeof *j);
    j->op.op.run = job_run;
    return &j->op;
}

static int result(job *j, int rc)
{
    assert_true(rc == WEFT_OK || rc == 1);
    if (rc == WEFT_OK) wait_for(&j->runs, 1);
    return j->op.status;
}

static char path[MAX_PATH + 32];

static const char *named(const char *name)
{
    DWORD length = GetTempPathA(MAX_PATH, path);
    assert_true(length != 0);
    snprintf(path + length, sizeof path - length, "weft_%lu_%s", GetCurrentProcessId(), name);
    return path;
}

static int try_open(job *j, const char *name, uint32_t flags) { return result(j, weft_file_open(runtime, fresh_file(j), name, flags, 0600)); }

static weft_file opened(const char *name, uint32_t flags)
{
    job j;
    assert_int_equal(try_open(&j, name, flags), WEFT_OK);
    return j.op.opened;
}

static void file_closes(weft_file file)
{
    job j;
    assert_int_equal(result(&j, weft_file_close(fresh_file(&j), file)), WEFT_OK);
}

static void file_writes(weft_file file, const char *text, uint64_t offset)
{
    job j;
    assert_int_equal(result(&j, weft_file_write(fresh_file(&j), file, text, strlen(text), offset, WEFT_IO_ALL)), WEFT_OK);
    assert_int_equal(j.op.count, strlen(text));
}

static void file_has(weft_file file, const char *text)
{
    char got[64];
    job j;
    assert_int_equal(result(&j, weft_file_read(fresh_file(&j), file, got, sizeof got, 0, WEFT_IO_ALL)), WEFT_EOF);
    assert_int_equal(j.op.count, strlen(text));
    assert_memory_equal(got, text, strlen(text));
    assert_int_equal(result(&j, weft_file_size(fresh_file(&j), file)), WEFT_OK);
    assert_int_equal(j.op.count, strlen(text));
}

#define RW (WEFT_FILE_READ | WEFT_FILE_WRITE)

static void files_read_and_write_at_offsets(void **state)
{
    (void)state;
    weft_file file = opened(named("offsets"), RW | WEFT_FILE_CREATE | WEFT_FILE_EXCLUSIVE);
    file_writes(file, "world", 6);
    file_writes(file, "hello ", 0);
    file_has(file, "hello world");
    job j;
    char got[4];
    assert_int_equal(result(&j, weft_file_read(fresh_file(&j), file, got, 4, 11, 0)), WEFT_OK); /* at its end */
    assert_int_equal(j.op.count, 0);
    assert_int_equal(result(&j, weft_file_read(fresh_file(&j), file, got, 4, UINT64_C(5) << 32, 0)), WEFT_OK); /* and beyond */
    assert_int_equal(j.op.count, 0);
    assert_int_equal(result(&j, weft_file_sync(fresh_file(&j), file)), WEFT_OK);
    file_closes(file);
    assert_int_equal(weft_file_size(fresh_file(&j), file), WEFT_EBADHANDLE);
    file = opened(named("offsets"), WEFT_FILE_READ);
    assert_int_equal(result(&j, weft_file_sync(fresh_file(&j), file)), WEFT_OK);
    assert_int_equal(result(&j, weft_file_write(fresh_file(&j), file, "x", 1, 0, 0)), WEFT_EBADHANDLE);
    assert_int_equal(j.op.os_error, ERROR_ACCESS_DENIED);
    file_closes(file);
    assert_true(DeleteFileA(named("offsets")));
}

static void files_are_opened_as_asked(void **state)
{
    (void)state;
    job j;
    const char *name = named("flags_\xc3\xa4"); /* UTF-8 */
    assert_int_equal(try_open(&j, name, RW), WEFT_ENOENT);
    assert_int_equal(j.op.os_error, ERROR_FILE_NOT_FOUND);
    file_closes(opened(name, RW | WEFT_FILE_CREATE));
    assert_int_equal(try_open(&j, name, RW | WEFT_FILE_CREATE | WEFT_FILE_EXCLUSIVE), WEFT_EEXIST);
    weft_file file = opened(name, RW | WEFT_FILE_CREATE);
    file_writes(file, "old contents", 0);
    file_closes(file);
    file = opened(name, RW | WEFT_FILE_TRUNCATE);
    file_has(file, "");
    file_writes(file, "new", 0);
    file_closes(file);
    file = opened(name, RW | WEFT_FILE_APPEND);
    file_writes(file, "er", 0); /* at the end all the same */
    file_writes(file, "!", 1);
    file_has(file, "newer!");
    file_closes(file);
    file = opened(name, RW | WEFT_FILE_APPEND | WEFT_FILE_TRUNCATE);
    file_writes(file, "a", 7);
    file_has(file, "a");
    file_closes(file);
    WCHAR wide[MAX_PATH + 32];
    assert_true(MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, sizeof wide / sizeof *wide) > 0);
    assert_true(DeleteFileW(wide));
}

static void what_is_no_file(void **state)
{
    (void)state;
    job j;
    char folder[MAX_PATH];
    GetTempPathA(sizeof folder, folder);
    assert_int_equal(try_open(&j, folder, WEFT_FILE_READ), WEFT_ENOTSUP);
    assert_int_equal(try_open(&j, "no/such/folder/file", WEFT_FILE_READ), WEFT_ENOENT);
    assert_int_equal(try_open(&j, "\xff", WEFT_FILE_READ), WEFT_ENOENT);
    weft_file null = opened("NUL", RW);
    file_writes(null, "gone", 0);
    file_closes(null);
}

/* Many ops of one file at once, each at its own place. */
static void files_many_at_once(void **state)
{
    (void)state;
    enum { MANY = 64, BYTES = 4096 };
    static char written[MANY][BYTES], got[MANY][BYTES];
    static job jobs[MANY];
    weft_file file = opened(named("many"), RW | WEFT_FILE_CREATE | WEFT_FILE_TRUNCATE);
    for (int i = 0; i < MANY; i++) {
        memset(written[i], i, BYTES);
        assert_int_equal(weft_file_write(fresh_file(&jobs[i]), file, written[i], BYTES, (uint64_t)i * BYTES, WEFT_IO_ALL), WEFT_OK);
    }
    for (int i = 0; i < MANY; i++) assert_int_equal(result(&jobs[i], WEFT_OK), WEFT_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(weft_file_read(fresh_file(&jobs[i]), file, got[i], BYTES, (uint64_t)i * BYTES, WEFT_IO_ALL), WEFT_OK);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(result(&jobs[i], WEFT_OK), WEFT_OK);
        assert_int_equal(jobs[i].op.count, BYTES);
        assert_memory_equal(got[i], written[i], BYTES);
    }
    file_closes(file);
    assert_true(DeleteFileA(named("many")));
}

/* Handles. */

typedef struct call {
    weft_io io;
    atomic_long runs;
} call;

static void call_run(weft_op *op) { atomic_fetch_add(&((call *)op)->runs, 1); }

static weft_io *fresh(call *c)
{
    memset(c, 0, sizeof *c);
    c->io.op.run = call_run;
    return &c->io;
}

static int status_of(call *c, int rc)
{
    assert_true(rc == WEFT_OK || rc == 1);
    if (rc == WEFT_OK) wait_for(&c->runs, 1);
    return c->io.status;
}

/* Both ends of a named pipe. */
static void pipe_ends(DWORD mode, weft_descriptor ends[2])
{
    static int number;
    char name[64];
    snprintf(name, sizeof name, "\\\\.\\pipe\\weft_test_%lu_%d", GetCurrentProcessId(), number++);
    HANDLE server = CreateNamedPipeA(name, PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED, mode, 1, 4096, 4096, 0, NULL);
    HANDLE client = CreateFileA(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, FILE_FLAG_OVERLAPPED, NULL);
    assert_true(server != INVALID_HANDLE_VALUE && client != INVALID_HANDLE_VALUE);
    assert_int_equal(weft_descriptor_open(runtime, (intptr_t)server, &ends[0]), WEFT_OK);
    assert_int_equal(weft_descriptor_open(runtime, (intptr_t)client, &ends[1]), WEFT_OK);
}

static void pipes_move_bytes(void **state)
{
    (void)state;
    weft_descriptor ends[2];
    pipe_ends(PIPE_TYPE_BYTE, ends);
    call receives, sends;
    char got[16];
    for (int round = 0; round < 50; round++) {
        int rc = weft_recv(fresh(&receives), ends[0], got, 10, WEFT_IO_ALL);
        assert_int_equal(status_of(&sends, weft_send(fresh(&sends), ends[1], "01234", 5, 0)), WEFT_OK);
        const weft_buffer pieces[2] = {{(void *)"56", 2}, {(void *)"789", 3}};
        assert_int_equal(status_of(&sends, weft_send_buffers(fresh(&sends), ends[1], pieces, 2, WEFT_IO_ALL)), WEFT_OK);
        assert_int_equal(status_of(&receives, rc), WEFT_OK);
        assert_memory_equal(got, "0123456789", 10);
    }
    int rc = weft_recv(fresh(&receives), ends[0], got, 10, 0);
    assert_int_equal(weft_io_cancel(&receives.io), WEFT_OK);
    assert_int_equal(status_of(&receives, rc), WEFT_ECANCELED);
    rc = weft_recv(fresh(&receives), ends[0], got, 10, 0);
    assert_int_equal(weft_descriptor_close(ends[1]), WEFT_OK);
    assert_int_equal(status_of(&receives, rc), WEFT_OK);
    assert_int_equal(receives.io.count, 0); /* the end of the stream */
    assert_int_equal(status_of(&sends, weft_send(fresh(&sends), ends[0], "x", 1, 0)), WEFT_EPIPE);
    rc = weft_recv(fresh(&receives), ends[0], got, 10, WEFT_IO_ALL);
    assert_int_equal(status_of(&receives, rc), WEFT_EOF);
    assert_int_equal(weft_descriptor_close(ends[0]), WEFT_OK);
}

static void handles_that_are_refused(void **state)
{
    (void)state;
    weft_descriptor descriptor;
    HANDLE file = CreateFileA(named("refused"), GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, FILE_FLAG_OVERLAPPED | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    HANDLE reads, writes;
    assert_true(CreatePipe(&reads, &writes, NULL, 0));
    assert_int_equal(weft_descriptor_open(runtime, (intptr_t)file, &descriptor), WEFT_ENOTSUP);
    assert_int_equal(weft_descriptor_open(runtime, (intptr_t)reads, &descriptor), WEFT_ENOTSUP); /* its calls block */
    CloseHandle(writes);
    CloseHandle(reads);
    CloseHandle(file);
    assert_int_equal(weft_descriptor_open(runtime, (intptr_t)writes, &descriptor), WEFT_EINVAL);
    assert_int_equal(weft_descriptor_open(runtime, -1, &descriptor), WEFT_EINVAL);
}

/* A socket of the host's, once more in another runtime. */
static void sockets_have_one_runtime(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(0, SOCK_STREAM, 0, ends), 0);
    weft_descriptor descriptor, again;
    assert_int_equal(weft_descriptor_open(runtime, ends[0], &descriptor), WEFT_OK);
    weft_runtime other = start_runtime(1);
    assert_int_equal(weft_descriptor_open(other, ends[0], &again), WEFT_EEXIST);
    assert_int_equal(weft_runtime_destroy(other), WEFT_OK);
    assert_int_equal(weft_descriptor_close(descriptor), WEFT_OK);
    closesocket((SOCKET)ends[1]);
}

/* Receives that wait when their runtime stops, and when their descriptors are closed. Each has its result once. */
static void ends_of_receives(void **state)
{
    (void)state;
    enum { MANY = 50 };
    static call calls[MANY];
    for (int stops = 0; stops < 2; stops++) {
        weft_runtime short_lived = start_runtime(2);
        int ends[MANY][2], rc[MANY];
        weft_descriptor descriptors[MANY];
        static char got[MANY];
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(socketpair(0, SOCK_STREAM, 0, ends[i]), 0);
            assert_int_equal(weft_descriptor_open(short_lived, ends[i][0], &descriptors[i]), WEFT_OK);
            rc[i] = weft_recv(fresh(&calls[i]), descriptors[i], &got[i], 1, 0);
        }
        if (stops) {
            assert_int_equal(weft_runtime_stop(short_lived), WEFT_OK);
        } else {
            for (int i = 0; i < MANY; i++) assert_int_equal(weft_descriptor_close(descriptors[i]), WEFT_OK);
        }
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(rc[i], WEFT_OK);
            assert_int_equal(status_of(&calls[i], rc[i]), stops ? WEFT_ECANCELED : WEFT_ECLOSED);
        }
        assert_int_equal(weft_runtime_destroy(short_lived), WEFT_OK);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(atomic_load(&calls[i].runs), 1);
            closesocket((SOCKET)ends[i][1]);
        }
    }
}

static DWORD handles(void)
{
    DWORD count = 0;
    assert_true(GetProcessHandleCount(GetCurrentProcess(), &count));
    return count;
}

/* An accept has made its socket before there is a connection: it goes with the accept, however that ends. So does what a refused connect, and a file
 * that was refused, have opened. Not at 127.0.0.1, where the listener's port could be another process's next. */
static void nothing_is_left_open(void **state)
{
    (void)state;
    DWORD before = 0;
    for (int round = 0; round < 60; round++) {
        if (round == 10) before = handles();
        weft_endpoint endpoint;
        weft_descriptor listener, client;
        call accepts, connects;
        job j;
        assert_int_equal(weft_endpoint_parse("127.0.0.2:0", &endpoint), WEFT_OK);
        assert_int_equal(weft_tcp_listen(runtime, &endpoint, 0, &listener), WEFT_OK);
        assert_int_equal(weft_local_endpoint(listener, &endpoint), WEFT_OK);
        int rc = weft_accept(fresh(&accepts), listener);
        assert_int_equal(weft_io_cancel(&accepts.io), WEFT_OK);
        assert_int_equal(status_of(&accepts, rc), WEFT_ECANCELED);
        rc = weft_accept(fresh(&accepts), listener);
        assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &client), WEFT_OK);
        int connect_rc = weft_connect(fresh(&connects), client, &endpoint);
        assert_int_equal(status_of(&connects, connect_rc), WEFT_OK);
        assert_int_equal(status_of(&accepts, rc), WEFT_OK);
        assert_int_equal(weft_descriptor_close(accepts.io.accepted), WEFT_OK);
        assert_int_equal(weft_descriptor_close(client), WEFT_OK);
        rc = weft_accept(fresh(&accepts), listener);
        assert_int_equal(weft_descriptor_close(listener), WEFT_OK);
        assert_int_equal(status_of(&accepts, rc), WEFT_ECLOSED);
        assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &client), WEFT_OK);
        connect_rc = weft_connect(fresh(&connects), client, &endpoint);
        assert_int_equal(status_of(&connects, connect_rc), WEFT_ECONNREFUSED);
        assert_int_equal(connects.io.os_error, WSAECONNREFUSED);
        assert_int_equal(weft_descriptor_close(client), WEFT_OK);
        assert_int_equal(try_open(&j, "\\\\.\\pipe\\weft_none", WEFT_FILE_READ), WEFT_ENOENT);
    }
    assert_in_range(handles(), 0, before + 5); /* of the pool's threads */
}

/* The calls leave the caller's last error, and errno, as they were. */
static void errors_are_kept(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(0, SOCK_STREAM, 0, ends), 0);
    weft_descriptor descriptor;
    call c;
    char byte;
    SetLastError(4711);
    errno = 42;
    int opened = weft_descriptor_open(runtime, ends[0], &descriptor);
    int received = weft_recv(fresh(&c), descriptor, &byte, 1, 0);
    int cancelled = weft_io_cancel(&c.io);
    int closed = weft_descriptor_close(descriptor);
    DWORD last = GetLastError();
    int number = errno;
    assert_int_equal(last, 4711);
    assert_int_equal(number, 42);
    assert_int_equal(opened, WEFT_OK);
    assert_int_equal(cancelled, WEFT_OK);
    assert_int_equal(closed, WEFT_OK);
    status_of(&c, received);
    closesocket((SOCKET)ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IO_TEST(files_read_and_write_at_offsets),
        IO_TEST(files_are_opened_as_asked),
        IO_TEST(what_is_no_file),
        IO_TEST(files_many_at_once),
        IO_TEST(pipes_move_bytes),
        IO_TEST(handles_that_are_refused),
        IO_TEST(sockets_have_one_runtime),
        IO_TEST(ends_of_receives),
        IO_TEST(nothing_is_left_open),
        IO_TEST(errors_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
