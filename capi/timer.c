/* SPDX-License-Identifier: MIT
 *
 * timer.c: starting and cancelling timers, O(1) list steps in a worker's wheel under the wheel's lock, from any thread.
 * Advancing the wheel and firing are Go's: core/wheel.go has the structure's invariants.
 */
#include "delay.h"
#include "end.h"
#include "lane_internal.h"

#include "io.h"
#include "tsan.h"

enum { TIMER_IDLE = 0, TIMER_PENDING = 1 };

#define SLOT_NEVER (LANE_WHEEL_LEVELS * LANE_WHEEL_SLOTS)

/* acquire pairs with the release in lane_unlock and in wheel.go's unlock: what the last holder linked is seen. */
static inline bool lane_try_lock(lane_wheel *wheel) {
    return LANE_LIKELY(atomic_exchange_explicit(&wheel->lock, 1, memory_order_acquire) == 0);
}

static inline void lane_lock(lane_wheel *wheel) {
    for (uint32_t spins = 0; !lane_try_lock(wheel); spins++)
        while (atomic_load_explicit(&wheel->lock, memory_order_relaxed) != 0) lane_pause(spins++);
}

static inline void lane_unlock(lane_wheel *wheel) { atomic_store_explicit(&wheel->lock, 0, memory_order_release); }

static inline uint64_t *lane_slot(lane_wheel *wheel, uint32_t slot) {
    return slot == SLOT_NEVER ? &wheel->never : &wheel->slots[slot];
}

/* Tick at which a deadline is due: rounded up, so that no timer is early. */
static inline int64_t lane_tick(int64_t deadline_ns) {
    const int64_t tick = INT64_C(1) << LANE_WHEEL_TICK_SHIFT;
    return (int64_t)(((uint64_t)deadline_ns + (uint64_t)(tick - 1)) >> LANE_WHEEL_TICK_SHIFT);
}

/* Level of the highest digit in which tick differs from elapsed, and its slot there; tick > elapsed. Twin: wheel.go's slotOf. */
static inline uint32_t lane_slot_of(int64_t tick, int64_t elapsed) {
    uint32_t level = (uint32_t)(63 - __builtin_clzll((uint64_t)(tick ^ elapsed))) / 6;
    return level * LANE_WHEEL_SLOTS + ((uint64_t)tick >> (level * 6) & (LANE_WHEEL_SLOTS - 1));
}

/* Links a timer. Under the lock. Returns whether it is the wheel's earliest now. */
static inline __attribute__((always_inline)) bool lane_link(lane_wheel *wheel, weft_timer *timer, int64_t tick) {
    uint32_t slot = SLOT_NEVER;
    bool earliest = false;
    if (tick != INT64_MAX) {
        slot = lane_slot_of(tick, wheel->elapsed);
        uint64_t bit = UINT64_C(1) << (slot % LANE_WHEEL_SLOTS);
        uint64_t *occupied = &wheel->occupied[slot / LANE_WHEEL_SLOTS];
        if ((*occupied & bit) == 0 || tick < wheel->minimum[slot]) wheel->minimum[slot] = tick;
        *occupied |= bit;
        int64_t at = tick << LANE_WHEEL_TICK_SHIFT;
        earliest = at < atomic_load_explicit(&wheel->earliest, memory_order_relaxed);
        /* seq_cst: the publication that comes before the look at sleep_until; partner: lane_keep. */
        if (earliest) atomic_store_explicit(&wheel->earliest, at, memory_order_seq_cst);
    }
    uint64_t *head = lane_slot(wheel, slot);
    weft_timer *first = (weft_timer *)(uintptr_t)*head;
    timer->link_[0] = first;
    timer->link_[1] = NULL;
    if (first != NULL) first->link_[1] = timer;
    *head = (uint64_t)(uintptr_t)timer;
    timer->slot_ = slot;
    wheel->pending++;
    return earliest;
}

/* Unlinks a timer. Under the lock. earliest stays as it is: a wheel that is advanced too soon only recomputes it. */
static inline __attribute__((always_inline)) void lane_unlink(lane_wheel *wheel, weft_timer *timer) {
    uint32_t slot = timer->slot_;
    weft_timer *next = timer->link_[0];
    weft_timer *previous = timer->link_[1];
    if (next != NULL) next->link_[1] = previous;
    if (previous != NULL) {
        previous->link_[0] = next;
    } else {
        *lane_slot(wheel, slot) = (uint64_t)(uintptr_t)next;
        if (next == NULL && slot != SLOT_NEVER)
            wheel->occupied[slot / LANE_WHEEL_SLOTS] &= ~(UINT64_C(1) << (slot % LANE_WHEEL_SLOTS));
    }
    wheel->pending--;
}

/* Wakes the keeper if it sleeps past the new earliest deadline. A keeper that is awake looks at the wheels before it sleeps. WEFT_OK. */
static LANE_COLD int lane_hurry(lane_runtime *runtime, int64_t at) {
    if (atomic_load_explicit(&runtime->sleep_until, memory_order_seq_cst) <= at) return WEFT_OK;
    WEFT_TEST_DELAY(lane_hurry_looked);
    uint32_t keeper = atomic_load_explicit(&runtime->keeper, memory_order_seq_cst);
    if (keeper != 0) lane_wake(runtime, lane_worker_at(runtime, keeper - 1));
    return WEFT_OK;
}

/* The wheel that a thread uses: a worker its own, another thread any, always the same one. */
static lane_worker *lane_home(lane_runtime *runtime) {
    lane_worker *worker = lane_self;
    if (worker != NULL && lane_runtime_at(worker) == runtime) return worker;
    return lane_worker_at(runtime, (uint32_t)((uintptr_t)&lane_self >> 12) % runtime->worker_count);
}

/* Starts a timer. Under the lock, which it gives back. */
static inline __attribute__((always_inline)) int lane_start_locked(lane_worker *worker, weft_timer *timer, int64_t deadline_ns) {
    lane_runtime *runtime = lane_runtime_at(worker);
    lane_wheel *wheel = &worker->wheel;
    /* A deadline in the clock's last tick, three centuries away, would not survive the rounding: it is never, too. */
    int64_t tick = deadline_ns > WEFT_NEVER - (1 << LANE_WHEEL_TICK_SHIFT) ? INT64_MAX
                   : deadline_ns <= 0                                     ? 0
                                                                          : lane_tick(deadline_ns);
    if (LANE_UNLIKELY(wheel->closed || timer->state_ == TIMER_PENDING)) {
        int rc = wheel->closed ? WEFT_ESTOPPED : WEFT_EBUSY;
        lane_unlock(wheel);
        return rc;
    }
    wheel->started++;
    timer->deadline_ = deadline_ns;
    timer->status = WEFT_OK;
    __atomic_store_n(&timer->worker_, (uint64_t)(uintptr_t)worker, __ATOMIC_RELAXED);
    if (tick <= wheel->elapsed) {
        wheel->fired++;
        lane_unlock(wheel);
        return lane_complete(runtime, &timer->op);
    }
    __atomic_store_n(&timer->state_, TIMER_PENDING, __ATOMIC_RELEASE); /* pairs with lane_worker_of: who sees it sees where */
    bool earliest = lane_link(wheel, timer, tick);
    lane_unlock(wheel);
    WEFT_TEST_DELAY(lane_timer_published);
    return LANE_LIKELY(!earliest) ? WEFT_OK : lane_hurry(runtime, tick << LANE_WHEEL_TICK_SHIFT);
}

/* The rare halves of start and take-out are functions of their own, called last, so that the common half saves no registers. */
static LANE_COLD int lane_start_contended(lane_worker *worker, weft_timer *timer, int64_t deadline_ns) {
    lane_lock(&worker->wheel);
    return lane_start_locked(worker, timer, deadline_ns);
}

int weft_schedule_at(weft_runtime handle, weft_timer *timer, int64_t deadline_ns) {
    if (timer == NULL || timer->op.run == NULL) return WEFT_EINVAL;
    if (atomic_load_explicit(&lane_forked, memory_order_relaxed) != 0) return WEFT_EFORKED;
    lane_runtime *runtime = lane_runtime_of(handle.id);
    if (runtime == NULL) return WEFT_EBADHANDLE;
    if (atomic_load_explicit(&runtime->state, memory_order_relaxed) != LANE_RUNNING) return WEFT_ESTOPPED;
    lane_worker *worker = lane_home(runtime);
    WEFT_TEST_DELAY(lane_timer_accepted);
    tsan_release(timer);
    if (!lane_try_lock(&worker->wheel)) return lane_start_contended(worker, timer, deadline_ns);
    return lane_start_locked(worker, timer, deadline_ns);
}

int weft_schedule_after(weft_runtime runtime, weft_timer *timer, int64_t timeout_ns) {
    if (timeout_ns <= 0) return weft_schedule_at(runtime, timer, 0);
    int64_t deadline_ns;
    if (__builtin_add_overflow(lane_now(), timeout_ns, &deadline_ns)) deadline_ns = WEFT_NEVER;
    return weft_schedule_at(runtime, timer, deadline_ns);
}

/* The worker in whose wheel a pending timer is; NULL when it is not pending. One word, so that it is never the runtime of one start with the place of
 * another. */
static inline lane_worker *lane_worker_of(const weft_timer *timer) {
    if (__atomic_load_n(&timer->state_, __ATOMIC_ACQUIRE) != TIMER_PENDING) return NULL;
    return (lane_worker *)(uintptr_t)__atomic_load_n(&timer->worker_, __ATOMIC_RELAXED);
}

/* Takes a pending timer out of the wheel that the caller has locked, and gives the lock back. The runtime, or NULL when it is not there: it may
 * have fired before we had the lock, and have been started again in another wheel, under that one's lock; then we may see that (state_ was
 * published after worker_). Nobody starts it in this wheel meanwhile. Who will finish it puts the runtime's end off (visit not NULL), in time: as long as the
 * timer is there, Stop has not closed the wheel, and the end has not come. */
static inline __attribute__((always_inline)) lane_runtime *lane_take_out_locked(lane_worker *worker, weft_timer *timer, lane_visit *visit) {
    lane_wheel *wheel = &worker->wheel;
    lane_runtime *runtime = NULL;
    if (LANE_LIKELY(lane_worker_of(timer) == worker)) {
        lane_unlink(wheel, timer);
        __atomic_store_n(&timer->state_, TIMER_IDLE, __ATOMIC_RELAXED);
        timer->status = WEFT_ECANCELED;
        wheel->cancelled++;
        runtime = lane_runtime_at(worker); /* before the lock is given back: what we do not hold pending may end */
        if (visit != NULL) *visit = lane_visit_begin(runtime);
    }
    lane_unlock(wheel);
    return runtime;
}

/* Waits for the lock, and follows a timer that is started elsewhere meanwhile. */
static LANE_COLD lane_runtime *lane_take_out_contended(weft_timer *timer, lane_visit *visit) {
    lane_runtime *runtime = NULL;
    for (lane_worker *worker; runtime == NULL && (worker = lane_worker_of(timer)) != NULL;) {
        WEFT_TEST_DELAY(lane_timer_followed);
        lane_lock(&worker->wheel);
        runtime = lane_take_out_locked(worker, timer, visit);
    }
    return runtime;
}

/* Takes a pending timer out of its wheel; NULL when it is not pending, else its runtime. One that is not pending is seen without a lock: its
 * runtime, and the wheel with it, may be gone. */
static inline __attribute__((always_inline)) lane_runtime *lane_take_out(weft_timer *timer, lane_visit *visit) {
    lane_worker *worker = lane_worker_of(timer);
    if (worker == NULL) return NULL;
    WEFT_TEST_DELAY(lane_timer_found);
    if (!lane_try_lock(&worker->wheel)) return lane_take_out_contended(timer, visit);
    lane_runtime *runtime = lane_take_out_locked(worker, timer, visit);
    return LANE_LIKELY(runtime != NULL) ? runtime : lane_take_out_contended(timer, visit);
}

int weft_timer_cancel(weft_timer *timer) {
    if (timer == NULL) return WEFT_EINVAL;
    tsan_release(timer);
    lane_visit visit = LANE_VISIT_HOME;
    lane_runtime *runtime = lane_take_out(timer, &visit);
    if (runtime == NULL) return 1;
    WEFT_TEST_DELAY(lane_timer_taken_out);
    lane_finish(runtime, &timer->op);
    lane_visit_end(runtime, visit);
    return WEFT_OK;
}

int weft_timer_remove(weft_timer *timer) {
    if (timer == NULL) return WEFT_EINVAL;
    return lane_take_out(timer, NULL) != NULL ? WEFT_OK : 1;
}
