/* SPDX-License-Identifier: MIT
 *
 * os_windows.c: os.h on Windows 10 and later.
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winternl.h>

#include "delay.h"
#include "lane_internal.h"

#include <errno.h>
#include <malloc.h>
#include <process.h>
#include <stdio.h>
#include <string.h>

WINBASEAPI HRESULT WINAPI SetThreadDescription(HANDLE thread, PCWSTR description); /* not in all headers */


static int64_t ticks_per_second, ns_per_tick; /* of the performance counter; the second is 0 when it is no whole number */

/* What a call may change that an op might look at. */
typedef struct caller_errors {
    DWORD last;
    int c;
} caller_errors;

static caller_errors errors_keep(void) { return (caller_errors){GetLastError(), errno}; }

static void errors_restore(caller_errors errors) {
    SetLastError(errors.last);
    errno = errors.c;
}

__attribute__((constructor)) static void lane_load(void) {
    LARGE_INTEGER frequency;
    QueryPerformanceFrequency(&frequency);
    ticks_per_second = frequency.QuadPart;
    ns_per_tick = 1000000000 % ticks_per_second == 0 ? 1000000000 / ticks_per_second : 0;
    /* Wine 8 has FlushProcessWriteBuffers, but it does nothing there. */
    lane_asymmetric = GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version") == NULL;
}

/* The counter begins with the system and is one for all CPUs. Neither product below overflows: the first for 292 years. */
int64_t lane_now(void) {
    LARGE_INTEGER now;
    QueryPerformanceCounter(&now);
    if (LANE_LIKELY(ns_per_tick != 0)) return now.QuadPart * ns_per_tick;
    return now.QuadPart / ticks_per_second * 1000000000 + now.QuadPart % ticks_per_second * 1000000000 / ticks_per_second;
}

int64_t weft_now_ns(void) { return lane_now(); }

void lane_barrier_of_all(void) { FlushProcessWriteBuffers(); }

void lane_yield(void) { SwitchToThread(); }

/* Sleep counts in whole ticks of the system's. */
void lane_nap(int64_t ns) {
    (void)ns;
    Sleep(1);
}

/* Milliseconds until a deadline: up, so that no sleep is early. */
static DWORD ms_until(int64_t deadline_ns) {
    if (deadline_ns == INT64_MAX) return INFINITE;
    int64_t left = deadline_ns - lane_now();
    if (left <= 0) return 0;
    int64_t ms = left / 1000000 + (left % 1000000 != 0);
    return ms < INFINITE ? (DWORD)ms : INFINITE - 1;
}

void lane_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns) {
    caller_errors errors = errors_keep();
    WaitOnAddress((volatile void *)word, &expected, sizeof expected, ms_until(deadline_ns));
    errors_restore(errors);
}

/* One thread waits at a word at the most. */
void lane_futex_wake(_Atomic uint32_t *word) {
    caller_errors errors = errors_keep();
    WakeByAddressSingle((void *)word);
    errors_restore(errors);
}

void lane_sleep_sharply(void) {}

/* Locks. */

_Static_assert(sizeof(lane_mutex) == sizeof(SRWLOCK) && sizeof(lane_condition) == sizeof(CONDITION_VARIABLE), "os_windows.h");

void lane_mutex_begin(lane_mutex *mutex) { InitializeSRWLock((SRWLOCK *)mutex); }
void lane_mutex_end(lane_mutex *mutex) { (void)mutex; }
void lane_mutex_lock(lane_mutex *mutex) { AcquireSRWLockExclusive((SRWLOCK *)mutex); }
void lane_mutex_unlock(lane_mutex *mutex) { ReleaseSRWLockExclusive((SRWLOCK *)mutex); }
void lane_condition_begin(lane_condition *condition) { InitializeConditionVariable((CONDITION_VARIABLE *)condition); }
void lane_condition_end(lane_condition *condition) { (void)condition; }

void lane_condition_wait(lane_condition *condition, lane_mutex *mutex, int64_t deadline_ns) {
    caller_errors errors = errors_keep();
    SleepConditionVariableSRW((CONDITION_VARIABLE *)condition, (SRWLOCK *)mutex, ms_until(deadline_ns), 0);
    errors_restore(errors);
}

void lane_condition_wake_one(lane_condition *condition) { WakeConditionVariable((CONDITION_VARIABLE *)condition); }
void lane_condition_wake_all(lane_condition *condition) { WakeAllConditionVariable((CONDITION_VARIABLE *)condition); }

/* Threads. */

bool lane_thread_make(lane_thread *thread, uint64_t stack_bytes, lane_thread_result (*main)(void *), void *argument) {
    caller_errors errors = errors_keep();
    unsigned stack = stack_bytes < UINT_MAX - 65535 ? ((unsigned)stack_bytes + 65535) & ~65535u : UINT_MAX & ~65535u;
    *thread = (lane_thread)_beginthreadex(NULL, stack, main, argument, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    errors_restore(errors);
    return *thread != NULL;
}

void lane_thread_join(lane_thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

void lane_thread_detach(lane_thread thread) { CloseHandle(thread); }

void lane_thread_name(const char *name) {
    WCHAR wide[16];
    if (MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, sizeof wide / sizeof *wide) > 0) SetThreadDescription(GetCurrentThread(), wide);
}

uint32_t lane_thread_number(void) { return GetCurrentThreadId(); }

size_t lane_thread_stack_left(void) {
    ULONG_PTR lowest, highest;
    GetCurrentThreadStackLimits(&lowest, &highest);
    return (uintptr_t)__builtin_frame_address(0) - lowest;
}

static int64_t ns_of(FILETIME time) { return (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) * 100; }

int64_t lane_thread_cpu(uint32_t number) {
    HANDLE thread = OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, number);
    if (thread == NULL) return 0;
    FILETIME made, ended, kernel, user;
    bool known = GetThreadTimes(thread, &made, &ended, &kernel, &user);
    CloseHandle(thread);
    return known ? ns_of(kernel) + ns_of(user) : 0;
}

/* SYSTEM_THREAD_INFORMATION.ThreadState */
enum { STATE_READY = 1, STATE_RUNNING = 2, STATE_STANDBY = 3, STATE_DEFERRED_READY = 7 };

/* The state of one thread can only be had with those of all threads of all processes: some milliseconds, for which a thread must have computed
 * nothing for LANE_CPU_LAG_NS. Where it is not told, such a one is taken for a sleeping one. */
static bool thread_may_sleep(const unsigned char *all, DWORD process, uint32_t number) {
    for (;;) {
        const SYSTEM_PROCESS_INFORMATION *one = (const SYSTEM_PROCESS_INFORMATION *)all;
        if ((DWORD)(uintptr_t)one->UniqueProcessId == process) {
            const SYSTEM_THREAD_INFORMATION *threads = (const SYSTEM_THREAD_INFORMATION *)(one + 1);
            for (ULONG i = 0; i < one->NumberOfThreads; i++) {
                if ((DWORD)(uintptr_t)threads[i].ClientId.UniqueThread != number) continue;
                ULONG state = threads[i].ThreadState;
                return state != STATE_READY && state != STATE_RUNNING && state != STATE_STANDBY && state != STATE_DEFERRED_READY;
            }
            return true;
        }
        if (one->NextEntryOffset == 0) return true;
        all += one->NextEntryOffset;
    }
}

bool lane_thread_sleeps(uint32_t number) {
    ULONG size = 1 << 18;
    for (;;) {
        unsigned char *all = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
        if (all == NULL) return true;
        ULONG needed = 0;
        NTSTATUS status = NtQuerySystemInformation(SystemProcessInformation, all, size, &needed);
        bool sleeps = status < 0 || thread_may_sleep(all, GetCurrentProcessId(), number);
        VirtualFree(all, 0, MEM_RELEASE);
        if (status != (NTSTATUS)0xC0000004 /* STATUS_INFO_LENGTH_MISMATCH */ || size >= 1 << 26) return sleeps;
        size = needed > size ? needed + needed / 4 : size * 2;
    }
}

/* Memory. */

void *lane_allocate(size_t bytes) { return _aligned_malloc(bytes, 128); }
void *lane_allocate_words(size_t count) { return lane_allocate(count * sizeof(uint64_t)); }
void lane_free(void *memory) { _aligned_free(memory); }
void *lane_map(size_t bytes) { return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }
void lane_map_clear(void *memory, size_t bytes) { memset(memory, 0, bytes); }

/* Names of functions are not kept in a program, but for exported ones. */
void lane_locate(uint64_t function, lane_place *place) {
    place->name = NULL;
    place->module = NULL;
    place->offset = 0;
    HMODULE module;
    if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (LPCSTR)(uintptr_t)function, &module))
        return;
    place->offset = function - (uint64_t)(uintptr_t)module;
    DWORD length = GetModuleFileNameA(module, place->space, sizeof place->space);
    if (length > 0 && length < sizeof place->space) place->module = place->space;
}
