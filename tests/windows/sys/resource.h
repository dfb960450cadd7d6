/* SPDX-License-Identifier: MIT
 *
 * resource.h: see posix.h.
 */
#ifndef WEFT_TESTS_WINDOWS_SYS_RESOURCE_H
#define WEFT_TESTS_WINDOWS_SYS_RESOURCE_H

#include "../posix.h"

/* Handles are limited by memory alone. */
#define RLIMIT_NOFILE 7
struct rlimit {
    unsigned long rlim_cur;
};
#define getrlimit(resource, limit) ((limit)->rlim_cur = 1 << 24, (resource) == RLIMIT_NOFILE ? 0 : -1)

#define RUSAGE_SELF 0
struct rusage {
    struct timeval ru_utime, ru_stime;
};
static inline struct timeval posix_time_of(FILETIME time)
{
    uint64_t us = ((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) / 10;
    return (struct timeval){(long)(us / 1000000), (long)(us % 1000000)};
}
static inline int getrusage(int who, struct rusage *usage)
{
    FILETIME made, ended, kernel = {0}, user = {0};
    (void)who;
    GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user);
    *usage = (struct rusage){posix_time_of(user), posix_time_of(kernel)};
    return 0;
}

#endif
