/* SPDX-License-Identifier: MIT
 *
 * watch.c: the monitor's eyes. One thread per runtime looks at the workers every 20 us to 5 ms while any of them runs, and sleeps for good
 * while all are parked. What it finds it hands to an idle worker; when there is none it goes to Go (core/monitor.go), which fires timers and
 * polls in the workers' stead. It is what makes it safe that lane_push wakes nobody for a lone op.
 */
#include "delay.h"
#include "lane_internal.h"

enum {
    PERIOD_MIN_NS = 20000,
    PERIOD_NEWS_NS = 100000, /* after something was queued where nothing was: if it is still behind the same op then, that one is stalled */
    PERIOD_MAX_NS = 1000000, /* an op behind a stalled one starts elsewhere within about this, */
    PERIOD_BUSY_NS = 5000000, /* but while nobody is idle nobody could take it: only timers and descriptors might need us */
    QUIET_NS = 50000000,     /* all parked for so long: sleep. Long enough that steady traffic never pays for waking us */
    OVERDUE_NS = 200000,     /* timers this late, and nobody asleep who would see to them */
    UNPOLLED_NS = 1000000,
};

static bool lane_all_idle(const lane_runtime *runtime) {
    uint32_t idle = 0;
    for (int word = 0; word < LANE_WORKERS_MAX / 64; word++)
        idle += (uint32_t)__builtin_popcountll(atomic_load_explicit(&runtime->idle[word], memory_order_seq_cst));
    return idle == runtime->worker_count;
}

typedef struct lane_look {
    uint64_t ticks;
    bool queued;
    bool backlog;
} lane_look;

/* Compares each worker with the last look. A worker in the same op with something queued is stalled; two ops or more queued at two
 * looks are a backlog. Returns whether an idle worker has something to do; *news tells whether one may have soon. */
static bool lane_look_at_workers(lane_runtime *runtime, lane_look *last, bool *news) {
    bool found = false;
    for (uint32_t i = 0; i < runtime->worker_count; i++) {
        lane_worker *worker = lane_worker_at(runtime, i);
        uint64_t ticks = atomic_load_explicit(&worker->ticks, memory_order_relaxed);
        int64_t length = lane_length(worker);
        if (length > 0 && ticks == last[i].ticks) {
            atomic_store_explicit(&worker->stalled, ticks, memory_order_relaxed);
            found = true;
        }
        found = found || (length >= 2 && last[i].backlog);
        *news = *news || (length > 0 && !last[i].queued);
        last[i].ticks = ticks;
        last[i].queued = length > 0;
        last[i].backlog = length >= 2;
    }
    return found;
}

/* Timers or descriptors that nobody minds. */
static uint32_t lane_unminded(const lane_runtime *runtime) {
    if (atomic_load_explicit(&runtime->keeper, memory_order_relaxed) != 0) return 0;
    int64_t now = lane_now();
    for (uint32_t i = 0; i < runtime->worker_count; i++) {
        int64_t earliest = atomic_load_explicit(&lane_worker_at(runtime, i)->wheel.earliest, memory_order_relaxed);
        if (earliest != INT64_MAX && earliest < now - OVERDUE_NS) return LANE_TIMERS;
    }
    if (atomic_load_explicit(&runtime->descriptors, memory_order_relaxed) != 0 &&
        now - atomic_load_explicit(&runtime->polled_at, memory_order_relaxed) > UNPOLLED_NS)
        return LANE_POLL;
    return 0;
}

uint32_t lane_watch(lane_runtime *runtime) {
    lane_look last[LANE_WORKERS_MAX] = {{0}};
    int64_t period = PERIOD_MIN_NS;
    int64_t quiet = 0;
    for (;;) {
        if (lane_all_idle(runtime)) {
            quiet += period;
            period = PERIOD_MAX_NS;
        } else {
            quiet = 0;
        }
        uint32_t awake = LANE_MONITOR_AWAKE;
        if (quiet > QUIET_NS && atomic_compare_exchange_strong_explicit(&runtime->monitor, &awake, LANE_MONITOR_ASLEEP,
                                                                        memory_order_seq_cst, memory_order_seq_cst)) {
            WEFT_TEST_DELAY(lane_watch_announced);
            /* Announce, look again, sleep: against lane_wake_monitor, which comes after an idle bit was taken. */
            while (atomic_load_explicit(&runtime->monitor, memory_order_seq_cst) == LANE_MONITOR_ASLEEP && lane_all_idle(runtime))
                lane_futex_wait(&runtime->monitor, LANE_MONITOR_ASLEEP, INT64_MAX);
            uint32_t asleep = LANE_MONITOR_ASLEEP;
            atomic_compare_exchange_strong_explicit(&runtime->monitor, &asleep, LANE_MONITOR_AWAKE, memory_order_seq_cst,
                                                    memory_order_seq_cst);
            quiet = 0;
            period = PERIOD_MIN_NS;
        }
        if (atomic_load_explicit(&runtime->monitor, memory_order_seq_cst) == LANE_MONITOR_ENDS) return LANE_STOP;
        lane_futex_wait(&runtime->monitor, LANE_MONITOR_AWAKE, lane_now() + period);
        if (atomic_load_explicit(&runtime->state, memory_order_relaxed) != LANE_RUNNING) continue;
        bool news = false;
        bool found = lane_look_at_workers(runtime, last, &news);
        uint32_t unminded = lane_unminded(runtime);
        bool idle = lane_any_idle(runtime);
        if (unminded != 0 && !idle) return unminded;
        if (idle && (found || unminded != 0)) {
            lane_wake_one(runtime);
            period = PERIOD_MIN_NS;
        } else {
            int64_t longest = !idle ? PERIOD_BUSY_NS : news ? PERIOD_NEWS_NS : PERIOD_MAX_NS;
            period = period * 2 < longest ? period * 2 : longest;
        }
    }
}
