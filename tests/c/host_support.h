/* SPDX-License-Identifier: MIT
 *
 * host_support.h: what the tests of life inside a host program share: scenarios that run in a process of their own, and the
 * signal masks of all threads.
 */
#ifndef WEFT_TESTS_C_HOST_SUPPORT_H
#define WEFT_TESTS_C_HOST_SUPPORT_H

#include "again.h"
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void also(const char *variable, const char *options)
{
    char all[512];
    const char *before = getenv(variable);
    snprintf(all, sizeof all, "%s:%s", before != NULL ? before : "", options);
    setenv(variable, all, 1);
}

/* Runs this program again with a scenario's name, by exec, so that it is a process of its own from the first instruction on;
 * returns its wait status. The sanitizers leave faults alone there. */
static inline pid_t begin_scenario(const char *name)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        also("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0");
        also("TSAN_OPTIONS", "handle_segv=0:atexit_sleep_ms=0");
        exec_again(name, NULL);
    }
    return child;
}

static inline int run_scenario(const char *name)
{
    int status;
    pid_t child = begin_scenario(name);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static inline void exits_with(const char *name, int code)
{
    int status = run_scenario(name);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code) fail_msg("%s: wait status %#x, not exit code %d", name, status, code);
}

static inline void dies_of(const char *name, int signal)
{
    int status = run_scenario(name);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal) fail_msg("%s: wait status %#x, not signal %d", name, status, signal);
}

/* Threads that are not the host's, and would take one of these signals if it was sent to the process. The host's threads say
 * who they are. */
static _Thread_local bool host_thread;

static inline int threads_that_take(const int *signals, size_t count, const pid_t *own, size_t own_count)
{
    int takers = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        pid_t id = (pid_t)atoi(entry->d_name);
        bool skip = id == 0;
        for (size_t i = 0; i < own_count; i++) skip = skip || id == own[i];
        if (skip) continue;
        char path[64], line[256];
        unsigned long long blocked = ~0ULL;
        snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)id);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue; /* it has ended */
        while (fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1) break;
        fclose(file);
        for (size_t i = 0; i < count; i++)
            if ((blocked >> (signals[i] - 1) & 1) == 0) {
                fprintf(stderr, "thread %d takes signal %d (blocks %llx)\n", (int)id, signals[i], blocked);
                takers++;
            }
    }
    closedir(tasks);
    return takers;
}

/* Ends a scenario that has gone wrong, with a line that says where. */
#define MUST(condition)                                                          \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #condition); \
            _exit(121);                                                          \
        }                                                                        \
    } while (0)

#endif
