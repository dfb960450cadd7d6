/* SPDX-License-Identifier: MIT
 *
 * threads.h: how many threads this program has.
 */
#ifndef WEFT_TESTS_C_THREADS_H
#define WEFT_TESTS_C_THREADS_H

#include "support.h"

#if defined(_WIN32)
#include <tlhelp32.h>
#else
#include <dirent.h>
#endif

static inline long threads_now(void)
{
    long count = 0;
#if defined(_WIN32)
    HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    THREADENTRY32 one = {.dwSize = sizeof one};
    for (BOOL there = Thread32First(all, &one); there; there = Thread32Next(all, &one))
        count += one.th32OwnerProcessID == GetCurrentProcessId();
    CloseHandle(all);
    return count;
#else
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    while (readdir(tasks) != NULL) count++;
    closedir(tasks);
    return count - 2;
#endif
}

#endif
