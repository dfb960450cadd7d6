/* SPDX-License-Identifier: MIT
 *
 * watch.c: the monitor's eyes. One thread per runtime looks at the workers every 20 us to 1 ms while any of them runs, and sleeps for good
 * while all are parked. What it finds it hands to an idle worker. When there is none and a worker is held up in an op, it goes to Go for a
 * replacement (core/takeover.go), and for timers and descriptors that nobody minds meanwhile. It makes it safe that lane_push wakes nobody for
 * a lone op, and that ops block. docs/decisions/takeover.md has the reasons for what is told apart here.
 */
#include "watch.h"

#include <string.h>

#include "flight.h"

enum {
    PERIOD_MIN_NS = 20000,
    PERIOD_NEWS_NS = 100000, /* after something was queued where nothing was: if it is still behind the same op then, that one is stalled */
    PERIOD_ALERT_NS = 30000, /* for a while after a stall of who has blocked, and will block again. A busy one is known only after BUSY_NS, however often we look */
    PERIOD_AGAIN_NS = 10000, /* the same, then */
    PERIOD_BUSY_NS = 100000, /* the same, while none is asleep and some begin ops: a look costs what it takes to wake a thread, and they need the CPU */
    PERIOD_MAX_NS = 1000000, /* the first stall after a quiet time is seen within about two of these */
    ALERT_NS = 20000000,
    QUIET_NS = 50000000,     /* all parked for so long: sleep. Long enough that steady traffic never pays for waking us */
    OVERDUE_NS = 200000,     /* timers this late, and nobody asleep who would see to them */
    UNPOLLED_NS = 1000000,
    SUSPECT_NS = 30000,      /* in one op for so long: worth asking the system whether the thread is blocked */
    ASK_AGAIN_NS = 200000,   /* and again, when it was not; or, */
    ASK_HELD_NS = 10000000,  /* when it was, whether it still is: less often with time, since many may be blocked for long */
    BUSY_NS = 10000000,      /* an op that has computed for so long holds its worker up as well; Go's own patience, too */
    SURPLUS_NS = 5000000,    /* a worker too many for so long: one is asked to leave */
    REFUSED_NS = 100000000,  /* after a refused thread */
    EARLY_NS = 1000000000,   /* a stall is reported when it is over, and once before if it lasts this long */
};

/* What the monitor remembers of a worker. */
typedef struct watch_view {
    uint64_t ticks;
    int64_t since;     /* when a look first saw them */
    uint64_t function; /* of the op */
    bool queued;       /* one op or more, */
    bool backlog;      /* two ops or more were queued */
    bool in_op;        /* at the last look, in the same op as at the look before */
    bool waited;       /* something waited meanwhile */
    bool sleeps;       /* the thread waited in the system when last asked, */
    bool asleep;       /* and when asked before that */
    bool counted;      /* as a stall, */
    bool told;         /* early, */
    bool dismissed;    /* or as none */
    enum { FREE, BLOCKED, BUSY } held;
    int64_t ask_at;    /* not before */
    int64_t cpu_first; /* CPU time of the thread when first asked in this op; -1: not yet */
    int64_t cpu;       /* when last asked, */
    int64_t asked_at;  /* which was then */
} watch_view;

typedef struct watch {
    int64_t period;
    int64_t quiet;         /* all parked for how long */
    int64_t alert_until;
    int64_t surplus_since; /* 0: there is no surplus */
    bool injected;         /* something was injected and not drained, at the last look */
    watch_report report;
    watch_view views[LANE_WORKERS_MAX];
} watch;

/* Owner: the runtime's monitor, but for watch_begin, which comes before it. */
static watch watches[LANE_RUNTIMES_MAX];

void watch_begin(uint32_t slot, const watch_report *report) {
    memset(&watches[slot], 0, sizeof watches[slot]);
    watches[slot].period = PERIOD_MIN_NS;
    watches[slot].report = *report;
}

static bool worker_lives(const lane_worker *worker) {
    uint32_t life = atomic_load_explicit(&worker->life, memory_order_acquire);
    return life == LANE_STARTING || life == LANE_RUNS || life == LANE_ASKED;
}

static bool worker_is_idle(const lane_runtime *runtime, uint32_t i) {
    return (atomic_load_explicit(&runtime->idle[i / 64], memory_order_seq_cst) >> (i & 63) & 1) != 0;
}

/* Whether every worker sleeps, and none is left that should not be. */
static bool lane_all_idle(const lane_runtime *runtime) {
    uint32_t live = 0;
    for (uint32_t i = 0; i < lane_active(runtime); i++) {
        if (!worker_lives(lane_worker_at(runtime, i))) continue;
        if (!worker_is_idle(runtime, i)) return false;
        live++;
    }
    return live == runtime->worker_count;
}

static void view_end(watch *w, watch_view *view, lane_runtime *runtime, uint32_t index, int64_t now) {
    int64_t lasted = now - view->since;
    if (view->counted) {
        if (lasted > atomic_load_explicit(&runtime->stalled_longest, memory_order_relaxed))
            atomic_store_explicit(&runtime->stalled_longest, lasted, memory_order_relaxed);
        if (view->held != BUSY) w->alert_until = now + ALERT_NS;
        watch_tell(&w->report, lane_worker_at(runtime, index), view->function, lasted, view->held == BUSY, true);
    }
}

/* Asks the system what the thread of a worker does that has been in one op for long. What it uses of its CPU tells a busy one; one whose clock
 * stands still is blocked, unless it is ready to run and has only lost its CPU. Asked twice, for a thread may wait in the system for a moment in any
 * op, as at a page that is not there. Where the clock lags, it must have stood still for longer than that, which is no moment. */
static void view_ask(watch_view *view, lane_runtime *runtime, const lane_worker *worker, int64_t now) {
    uint32_t thread = atomic_load_explicit(&worker->thread, memory_order_relaxed);
    int64_t cpu = lane_thread_cpu(thread);
    bool first = view->cpu_first < 0;
    if (first) view->cpu_first = cpu;
    int64_t used = first ? 0 : cpu - view->cpu;
    bool computes = !first && used > (now - view->asked_at) / 2;
    bool slept = view->sleeps;
    bool stands = LANE_CPU_LAG_NS == 0 || (!first && used == 0 && now - view->asked_at >= LANE_CPU_LAG_NS);
    view->sleeps = !computes && stands && lane_thread_sleeps(thread);
    view->asleep = view->sleeps && (slept || LANE_CPU_LAG_NS != 0);
    view->held = view->asleep ? BLOCKED : cpu - view->cpu_first >= BUSY_NS ? BUSY : FREE;
    if (!first && view->held == FREE && !computes && !view->sleeps && !view->dismissed) {
        view->dismissed = true;
        lane_count(&runtime->dismissed, 1);
    }
    view->cpu = cpu;
    view->asked_at = now;
    int64_t patience = now - view->since > 2 * ASK_HELD_NS ? (now - view->since) / 2 : ASK_HELD_NS;
    view->ask_at = now + LANE_CPU_LAG_NS + (view->held != FREE ? patience : view->sleeps ? PERIOD_MIN_NS : ASK_AGAIN_NS);
}

typedef struct watch_count {
    uint32_t live; /* workers that are not about to leave */
    uint32_t held; /* of these, held up, */
    uint32_t busy; /* by computing */
    bool found;    /* an idle worker has something to do */
    bool waits;    /* there is something to do that is not being done */
    bool news;     /* an idle worker may have soon */
    bool unsure;   /* some worker may turn out to be held up soon */
    bool progress; /* some worker has begun an op since the last look */
    int64_t since; /* when the longest stall was first seen */
} watch_count;

/* Compares each worker with the last look. One in the same op with something queued is stalled: its last op may be taken, too. Two ops or more
 * queued at two looks are a backlog. */
static watch_count watch_look(watch *w, lane_runtime *runtime, int64_t now) {
    watch_count count = {.since = now};
    /* What was injected without a wake, by a worker that has been held up since, before it came to drain it. */
    bool injected = atomic_load_explicit(&runtime->inject, memory_order_relaxed) > LANE_INJECT_CLOSED;
    count.waits = injected;
    count.found = injected && w->injected;
    w->injected = injected;
    for (uint32_t i = 0; i < lane_active(runtime); i++) {
        lane_worker *worker = lane_worker_at(runtime, i);
        watch_view *view = &w->views[i];
        uint64_t ticks = atomic_load_explicit(&worker->ticks, memory_order_relaxed);
        int64_t length = lane_length(worker);
        if (length > 0 && ticks == view->ticks) {
            atomic_store_explicit(&worker->stalled, ticks, memory_order_relaxed);
            count.found = true;
            view->waited = true;
        }
        if (length >= 2 && view->backlog) count.found = true;
        uint64_t function = atomic_load_explicit(&worker->running, memory_order_relaxed);
        count.progress = count.progress || ticks != view->ticks;
        if (ticks != view->ticks || function == 0) {
            view_end(w, view, runtime, i, now);
            *view = (watch_view){.ticks = ticks, .since = now, .queued = view->queued, .cpu_first = -1};
        } else {
            view->in_op = true;
            view->function = function;
        }
        count.news = count.news || (length > 0 && !view->queued);
        view->queued = length > 0;
        view->backlog = length >= 2;
    }
    count.waits = count.waits || count.found;
    return count;
}

/* Counts who makes progress; asks about those who may not. */
static void watch_judge(watch *w, lane_runtime *runtime, int64_t now, bool idle, watch_count *count) {
    for (uint32_t i = 0; i < lane_active(runtime); i++) {
        lane_worker *worker = lane_worker_at(runtime, i);
        watch_view *view = &w->views[i];
        if (!worker_lives(worker)) continue;
        bool stays = atomic_load_explicit(&worker->life, memory_order_relaxed) != LANE_ASKED;
        count->live += stays;
        if (!view->in_op) continue;
        view->waited = view->waited || (count->waits && !idle);
        int64_t lasted = now - view->since;
        if (view->waited && now >= view->ask_at && lasted >= SUSPECT_NS) view_ask(view, runtime, worker, now);
        if (view->held == FREE) {
            count->unsure = count->unsure || lasted < SUSPECT_NS || view->sleeps;
            continue;
        }
        count->held += stays;
        count->busy += stays && view->held == BUSY;
        if (view->since < count->since) count->since = view->since;
        if (!view->counted) {
            view->counted = true;
            lane_count(&runtime->stalls, 1);
            if (view->held != BUSY) w->alert_until = now + ALERT_NS;
        }
        if (!view->told && lasted >= EARLY_NS) {
            view->told = true;
            watch_tell(&w->report, worker, view->function, lasted, view->held == BUSY, false);
        }
    }
}

/* Whether one more worker may run: the base makes no full use of what it may have, and there is room. Of those that compute there may be one
 * more than there are CPUs, or than the base if that is more; the blocked ones are in nobody's way. */
static bool watch_wants_more(const lane_runtime *runtime, const watch_count *count, int64_t now) {
    uint32_t free = count->live - count->held;
    uint32_t room = runtime->worker_count > runtime->cpus ? runtime->worker_count : runtime->cpus;
    int64_t refused_at = atomic_load_explicit(&runtime->refused_at, memory_order_relaxed);
    return count->waits && free < runtime->worker_count && count->live < runtime->worker_max && free + count->busy <= room &&
           (refused_at == 0 || now - refused_at > REFUSED_NS);
}

/* Asks a replacement to leave once there has been a worker too many for a while: one that is not held up, since that one could not. */
static void watch_ask_to_leave(watch *w, lane_runtime *runtime, const watch_count *count, int64_t now) {
    if (count->live - count->held <= runtime->worker_count) {
        w->surplus_since = 0;
        return;
    }
    if (w->surplus_since == 0) w->surplus_since = now;
    if (now - w->surplus_since < SURPLUS_NS) return;
    for (uint32_t i = lane_active(runtime); i-- > runtime->worker_count;) {
        lane_worker *worker = lane_worker_at(runtime, i);
        uint32_t runs = LANE_RUNS;
        if (w->views[i].held == FREE && atomic_compare_exchange_strong_explicit(&worker->life, &runs, LANE_ASKED, memory_order_seq_cst,
                                                                                memory_order_seq_cst)) {
            lane_wake(runtime, worker);
            return;
        }
    }
}

/* Lets go of places at the end that hold nothing: no worker, no op, no timer that is due one day. Only this thread lets workers begin. */
static void watch_shrink(lane_runtime *runtime) {
    uint32_t active = lane_active(runtime);
    while (active > runtime->worker_count) {
        const lane_worker *last = lane_worker_at(runtime, active - 1);
        uint32_t life = atomic_load_explicit(&last->life, memory_order_acquire);
        if ((life != LANE_ABSENT && life != LANE_CACHED) || lane_length(last) != 0 ||
            atomic_load_explicit(&last->wheel.earliest, memory_order_relaxed) != INT64_MAX)
            break;
        active--;
    }
    atomic_store_explicit(&runtime->active, active, memory_order_seq_cst);
}

/* Timers or descriptors that nobody minds. */
static uint32_t lane_unminded(const lane_runtime *runtime, int64_t now) {
    if (atomic_load_explicit(&runtime->keeper, memory_order_relaxed) != 0) return 0;
    for (uint32_t i = 0; i < lane_active(runtime); i++) {
        int64_t earliest = atomic_load_explicit(&lane_worker_at(runtime, i)->wheel.earliest, memory_order_relaxed);
        if (earliest != INT64_MAX && earliest < now - OVERDUE_NS) return LANE_TIMERS;
    }
    if (atomic_load_explicit(&runtime->descriptors, memory_order_relaxed) != 0 &&
        now - atomic_load_explicit(&runtime->polled_at, memory_order_relaxed) > UNPOLLED_NS)
        return LANE_POLL;
    return 0;
}

/* Sleeps until the next look; for good while all workers are parked. */
static void watch_sleep(watch *w, lane_runtime *runtime) {
    bool all_idle = lane_all_idle(runtime);
    w->quiet = all_idle ? w->quiet + w->period : 0;
    uint32_t awake = LANE_MONITOR_AWAKE;
    if (w->quiet > QUIET_NS) WEFT_TEST_DELAY(lane_watch_quiet);
    if (w->quiet > QUIET_NS && atomic_compare_exchange_strong_explicit(&runtime->monitor, &awake, LANE_MONITOR_ASLEEP,
                                                                       memory_order_seq_cst, memory_order_seq_cst)) {
        WEFT_TEST_DELAY(lane_watch_announced);
        /* Announce, look again, sleep: against lane_wake_monitor, which comes after an idle bit was taken. */
        while (atomic_load_explicit(&runtime->monitor, memory_order_seq_cst) == LANE_MONITOR_ASLEEP && lane_all_idle(runtime))
            lane_futex_wait(&runtime->monitor, LANE_MONITOR_ASLEEP, INT64_MAX);
        uint32_t asleep = LANE_MONITOR_ASLEEP;
        atomic_compare_exchange_strong_explicit(&runtime->monitor, &asleep, LANE_MONITOR_AWAKE, memory_order_seq_cst,
                                                memory_order_seq_cst);
        w->quiet = 0;
        w->period = PERIOD_MIN_NS;
    }
    lane_futex_wait(&runtime->monitor, LANE_MONITOR_AWAKE, lane_now() + w->period);
}

uint32_t lane_watch(lane_runtime *runtime) {
    watch *w = &watches[runtime - lane_table];
    for (;;) {
        watch_sleep(w, runtime);
        WEFT_TEST_DELAY(lane_watch_looks);
        int64_t now = lane_now();
        bool idle = lane_any_idle(runtime);
        watch_count count = watch_look(w, runtime, now);
        /* After the look: every stall that was counted is told of when it is over. */
        if (atomic_load_explicit(&runtime->monitor, memory_order_seq_cst) == LANE_MONITOR_ENDS) return LANE_STOP;
        WEFT_TEST_DELAY(lane_watch_looked);
        /* Before the judging, which asks the system and takes longer than all the rest. */
        if (idle && count.found) lane_wake_one(runtime);
        watch_judge(w, runtime, now, idle, &count);
        watch_shrink(runtime);
        if (!idle && watch_wants_more(runtime, &count, now)) {
            atomic_store_explicit(&runtime->replace_since, count.since, memory_order_relaxed);
            w->period = PERIOD_MIN_NS;
            return LANE_REPLACE;
        }
        uint32_t unminded = 0;
        if (atomic_load_explicit(&runtime->state, memory_order_relaxed) == LANE_RUNNING) {
            watch_ask_to_leave(w, runtime, &count, now);
            unminded = lane_unminded(runtime, now);
            if (unminded == LANE_POLL && !idle) flight_collect(runtime, false); /* Go cannot */
            if (unminded != 0 && !idle) {
                w->period = unminded == LANE_TIMERS ? PERIOD_MIN_NS : UNPOLLED_NS / 4;
                return unminded;
            }
        }
        if (idle && (count.found || unminded != 0)) {
            if (!count.found) lane_wake_one(runtime);
            w->period = PERIOD_MIN_NS;
        } else if (!idle && count.waits && count.unsure && !count.progress) {
            w->period = PERIOD_MIN_NS;
        } else {
            bool alert = now < w->alert_until, news = idle && count.news;
            int64_t longest = PERIOD_MAX_NS;
            if (alert)
                longest = idle || !count.progress ? PERIOD_ALERT_NS : PERIOD_BUSY_NS;
            else if (news)
                longest = PERIOD_NEWS_NS;
            w->period = alert && news ? PERIOD_AGAIN_NS : w->period * 2 < longest ? w->period * 2 : longest;
        }
    }
}
