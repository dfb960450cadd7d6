/* SPDX-License-Identifier: MIT
 *
 * file_windows.c: the system's calls for files. A handle is opened for overlapped calls, so that ops may fly; a thread that may wait waits for the event of
 * its call then. An offset with each call makes it one at that place.
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdlib.h>

#include "file.h"
#include "flight.h"

#ifndef ERROR_DIRECTORY_NOT_SUPPORTED
#define ERROR_DIRECTORY_NOT_SUPPORTED 336 /* not in all headers */
#endif

enum { CALL_MAX = 0x7ffff000 }; /* bytes in one call: a length is 32 bits */

int file_system_code(int os_error, bool opening) {
    switch (os_error) {
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
    case ERROR_DIRECTORY: /* something in the path is none */
    case ERROR_BAD_NETPATH: return WEFT_ENOENT;
    case ERROR_DIRECTORY_NOT_SUPPORTED: return WEFT_ENOTSUP;
    case ERROR_INVALID_HANDLE: return WEFT_EBADHANDLE;
    case ERROR_ACCESS_DENIED: return opening ? WEFT_EACCES : WEFT_EBADHANDLE; /* not opened for that */
    case ERROR_USER_MAPPED_FILE: return WEFT_EACCES;
    default: return weft_error_from_os(os_error);
    }
}

static int last_error(void) { return (int)GetLastError(); }
static HANDLE handle_of(intptr_t system) { return (HANDLE)system; }

static HANDLE open_wide(const WCHAR *path, DWORD access, DWORD disposition, uint32_t mode) {
    DWORD attributes = mode & 0222 ? FILE_ATTRIBUTE_NORMAL : FILE_ATTRIBUTE_READONLY; /* of one that is made */
    if (flight_allowed()) attributes |= FILE_FLAG_OVERLAPPED;
    return CreateFileW(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, disposition, attributes, NULL);
}

/* Truncation is a step of its own: the system's way to open and truncate would also reset attributes, and ask for more rights than to append. */
static int truncate(const WCHAR *path, HANDLE opened, uint32_t flags) {
    HANDLE handle = opened;
    if (flags & WEFT_FILE_APPEND) handle = open_wide(path, GENERIC_WRITE, OPEN_EXISTING, 0);
    if (handle == INVALID_HANDLE_VALUE) return last_error();
    FILE_END_OF_FILE_INFO end = {.EndOfFile.QuadPart = 0};
    int error = SetFileInformationByHandle(handle, FileEndOfFileInfo, &end, sizeof end) ? 0 : last_error();
    if (handle != opened) CloseHandle(handle);
    return error;
}

/* What is opened but cannot be a file: an error, else 0. */
static int check_kind(HANDLE handle) {
    DWORD kind = GetFileType(handle);
    return kind == FILE_TYPE_DISK || kind == FILE_TYPE_CHAR ? 0 : ERROR_NOT_SUPPORTED;
}

static int open_file(const WCHAR *path, uint32_t flags, uint32_t mode, intptr_t *system) {
    DWORD access = flags & WEFT_FILE_READ ? GENERIC_READ : 0;
    /* Without the right to write elsewhere each write appends, whatever its offset. */
    if (flags & WEFT_FILE_APPEND)
        access |= FILE_GENERIC_WRITE & ~(DWORD)FILE_WRITE_DATA;
    else if (flags & WEFT_FILE_WRITE)
        access |= GENERIC_WRITE;
    DWORD disposition = !(flags & WEFT_FILE_CREATE) ? OPEN_EXISTING : flags & WEFT_FILE_EXCLUSIVE ? CREATE_NEW : OPEN_ALWAYS;
    HANDLE opened = open_wide(path, access, disposition, mode);
    if (opened == INVALID_HANDLE_VALUE) {
        int error = last_error();
        DWORD attributes = error == ERROR_ACCESS_DENIED ? GetFileAttributesW(path) : INVALID_FILE_ATTRIBUTES;
        bool directory = attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
        return directory ? ERROR_DIRECTORY_NOT_SUPPORTED : error;
    }
    int error = check_kind(opened);
    if (error == 0 && (flags & WEFT_FILE_TRUNCATE) && GetFileType(opened) == FILE_TYPE_DISK) error = truncate(path, opened, flags);
    if (error != 0) CloseHandle(opened);
    *system = (intptr_t)opened;
    return error;
}

int file_system_open(const char *path, uint32_t flags, uint32_t mode, intptr_t *system) {
    int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    if (length <= 0) return last_error() == ERROR_NO_UNICODE_TRANSLATION ? ERROR_INVALID_NAME : last_error();
    WCHAR *wide = malloc((size_t)length * sizeof *wide);
    if (wide == NULL) return ERROR_NOT_ENOUGH_MEMORY;
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, length);
    int error = open_file(wide, flags, mode, system);
    free(wide);
    return error;
}

int file_system_close(intptr_t system) { return CloseHandle(handle_of(system)) ? 0 : last_error(); }

static DWORD call_length(uint64_t length) { return length < CALL_MAX ? (DWORD)length : CALL_MAX; }

/* A call of its own event: others may be under way on the handle. The event's low bit keeps the port from getting a packet. */
typedef struct place {
    OVERLAPPED overlapped;
    HANDLE event;
} place;

static bool begin(place *p, uint64_t offset) {
    *p = (place){.overlapped = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)}, .event = CreateEventW(NULL, TRUE, FALSE, NULL)};
    p->overlapped.hEvent = (HANDLE)((uintptr_t)p->event | 1);
    return p->event != NULL;
}

static int end(place *p, intptr_t system, BOOL done, uint64_t *moved) {
    DWORD n = 0;
    int error = done || last_error() == ERROR_IO_PENDING ? 0 : last_error();
    if (error == 0 && !GetOverlappedResult(handle_of(system), &p->overlapped, &n, TRUE)) error = last_error();
    *moved = error == 0 ? n : 0;
    CloseHandle(p->event);
    return error;
}

int file_system_read(intptr_t system, void *data, uint64_t length, uint64_t offset, uint64_t *moved) {
    place p;
    if (!begin(&p, offset)) return last_error();
    int error = end(&p, system, ReadFile(handle_of(system), data, call_length(length), NULL, &p.overlapped), moved);
    return error == ERROR_HANDLE_EOF ? 0 : error;
}

int file_system_write(intptr_t system, const void *data, uint64_t length, uint64_t offset, uint64_t *moved) {
    place p;
    if (!begin(&p, offset)) return last_error();
    return end(&p, system, WriteFile(handle_of(system), data, call_length(length), NULL, &p.overlapped), moved);
}

/* There is no way to ask for what is in memory only. */
file_peeked file_system_peek(intptr_t system, void *data, uint64_t length, uint64_t offset, uint64_t *moved) {
    (void)system, (void)data, (void)length, (void)offset;
    *moved = 0;
    return FILE_WAITS_ALWAYS;
}

int file_system_size(intptr_t system, uint64_t *bytes) {
    LARGE_INTEGER size = {.QuadPart = 0};
    if (GetFileType(handle_of(system)) == FILE_TYPE_DISK && !GetFileSizeEx(handle_of(system), &size)) return last_error();
    *bytes = (uint64_t)size.QuadPart;
    return 0;
}

/* A device, or a file that was not opened to be written. */
int file_system_sync_error(int os_error) {
    return os_error == ERROR_INVALID_FUNCTION || os_error == ERROR_ACCESS_DENIED || os_error == ERROR_INVALID_HANDLE ? 0 : os_error;
}

/* A cancellation may be one of an earlier flight; and there is a limit to what may be under way. */
bool file_system_refused(int os_error, bool sync) {
    (void)sync; /* does not fly */
    return os_error == ERROR_OPERATION_ABORTED || os_error == ERROR_INVALID_USER_BUFFER || os_error == ERROR_NOT_ENOUGH_MEMORY ||
           os_error == ERROR_NOT_ENOUGH_QUOTA || os_error == ERROR_WORKING_SET_QUOTA || os_error == ERROR_NO_SYSTEM_RESOURCES;
}

int file_system_sync(intptr_t system) { return FlushFileBuffers(handle_of(system)) ? 0 : file_system_sync_error(last_error()); }
