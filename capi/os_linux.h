/* SPDX-License-Identifier: MIT
 *
 * os_linux.h: the types of os.h on Linux.
 */
#ifndef WEFT_OS_LINUX_H
#define WEFT_OS_LINUX_H

#include <pthread.h>
#include <stdint.h>

typedef pthread_mutex_t lane_mutex;
typedef pthread_cond_t lane_condition;
typedef pthread_t lane_thread;
typedef void *lane_thread_result; /* 0 */

#define LANE_LOCAL_ _Thread_local __attribute__((tls_model("initial-exec")))
#define LANE_LOCAL(type, name) extern LANE_LOCAL_ type name
#define LANE_LOCAL_IS(type, name) LANE_LOCAL_ type name

enum { LANE_CPU_LAG_NS = 0 };

#endif
