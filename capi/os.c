/* SPDX-License-Identifier: MIT
 *
 * os.c: what os.h offers that is the same on all systems.
 */
#include "delay.h"
#include "lane_internal.h"

bool lane_asymmetric;

/* A full barrier in every running thread of the process. Partner: lane_enter. */
void lane_barrier(void) {
    if (lane_asymmetric)
        lane_barrier_of_all();
    else
        atomic_thread_fence(memory_order_seq_cst);
    WEFT_TEST_DELAY(lane_barrier_passed);
}

/* Waits for another thread's short section: first by the CPU's pause, then by giving the CPU away, since on a crowded machine that thread
 * may have lost it, and at last by sleeping, since it may be one of lower priority. */
void lane_pause(uint32_t spins) {
    if (spins < 64)
        lane_relax();
    else if (spins < 1024)
        lane_yield();
    else
        lane_nap(INT64_C(50000) * (spins / 1024 < 40 ? spins / 1024 : 40));
}
