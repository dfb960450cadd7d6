/* SPDX-License-Identifier: MIT
 *
 * crossing_linux.c: a thread's way into Go and back. crossing.h says what it keeps apart.
 */
#include "crossing.h"

#include <errno.h>
#include <pthread.h>

LANE_LOCAL_IS(uint64_t, lane_ops_floating);

static LANE_LOCAL_IS(lane_crossing *, innermost); /* of a thread of the host's that is in Go */

void lane_block_signals(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

void lane_cross(lane_crossing *crossing) {
    crossing->error = errno;
    crossing->floating = lane_take_floating();
    crossing->outer = innermost;
    if (lane_self != NULL) return;
    lane_block_signals(&crossing->signals);
    innermost = crossing;
}

void lane_crossed(const lane_crossing *crossing) {
    if (innermost == crossing) {
        innermost = crossing->outer;
        pthread_sigmask(SIG_SETMASK, &crossing->signals, NULL);
    }
    lane_set_floating(crossing->floating);
    errno = crossing->error;
}

void lane_cross_for_life(void) { lane_ops_floating = lane_take_floating(); }

void lane_threads_enter(void) { lane_block_signals(NULL); }

void lane_wait_begins(void) {
    if (innermost != NULL) pthread_sigmask(SIG_SETMASK, &innermost->signals, NULL);
}

void lane_wait_ends(void) {
    if (innermost != NULL) lane_block_signals(NULL);
}
