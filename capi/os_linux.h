/* SPDX-License-Identifier: MIT
 *
 * os_linux.h: the types of os.h on Linux.
 */
#ifndef WEFT_OS_LINUX_H
#define WEFT_OS_LINUX_H

#include <pthread.h>
#include <stdint.h>
#include <sys/prctl.h>

typedef pthread_mutex_t lane_mutex;
typedef pthread_cond_t lane_condition;
typedef pthread_t lane_thread;
typedef void *lane_thread_result; /* 0 */

#define LANE_LOCAL_ _Thread_local __attribute__((tls_model("initial-exec")))
#define LANE_LOCAL(type, name) extern LANE_LOCAL_ type name
#define LANE_LOCAL_IS(type, name) LANE_LOCAL_ type name

enum { LANE_CPU_LAG_NS = 0 };

/* Linux lets a sleep end late by up to the thread's slack, 50 us unless somebody has changed it, or earlier within that when the CPU is up anyway. One
 * that is asked for so much shorter ends in time, or a little too early: its caller looks at the clock and sleeps again. The slack itself stays as it
 * is, for the threads and processes that ops start would inherit it. What to ask for, at least 1, to sleep span_ns in a call that has slack_ns of
 * its own. */
static inline int64_t lane_ask_for(int64_t span_ns, int64_t slack_ns) {
    int64_t own = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); /* where there is none, an error, which is less */
    if (slack_ns < own) slack_ns = own;
    return span_ns > slack_ns ? span_ns - slack_ns : 1;
}

#endif
