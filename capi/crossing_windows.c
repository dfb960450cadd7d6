/* SPDX-License-Identifier: MIT
 *
 * crossing_windows.c: a thread's way into Go and back. crossing.h says what it keeps apart.
 */
#include <errno.h>
#include <windows.h>

#include "crossing.h"

LANE_LOCAL_IS(uint64_t, lane_ops_floating);

void lane_cross(lane_crossing *crossing) {
    crossing->last_error = GetLastError();
    crossing->error = errno;
    crossing->floating = lane_take_floating();
}

void lane_crossed(const lane_crossing *crossing) {
    lane_set_floating(crossing->floating);
    errno = crossing->error;
    SetLastError(crossing->last_error);
}

void lane_cross_for_life(void) { lane_ops_floating = lane_take_floating(); }
void lane_threads_enter(void) {}
void lane_wait_begins(void) {}
void lane_wait_ends(void) {}
