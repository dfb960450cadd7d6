/* SPDX-License-Identifier: MIT */
/* check: -O2 -DSAFETY expect: pass */
/* check: -O2 -DSAFETY -DTWO expect: pass */
/* check: -DTWO -DMUTANT_GIVE_BLIND expect: fail */
/* check: -DTWO -DMUTANT_LEAVE_FULL expect: fail */
/* check: -DMUTANT_CLOSE_BLIND expect: fail */
/* check: -DMUTANT_CACHED_FORGOTTEN expect: fail */
/* check: -DMUTANT_DISMISS_EARLY expect: fail */
/* check: -DMUTANT_STOP_TAKES_NOBODY expect: fail */
/* check: -DMUTANT_ENLIST_BLIND expect: fail */
/* check: -DMUTANT_COUNTED_LATE expect: fail */
/* check: -DMUTANT_REFUSED_COUNTS expect: fail */
/* check: -DMUTANT_WANTED_BLIND expect: fail */
/* check: -DMUTANT_ABSENT_FIRST expect: fail */
/* check: -DMUTANT_EXPIRE_BLIND expect: fail */
/* check: -DMUTANT_NOT_ROUSED expect: fail */
/*
 * takeover.pml: replacements for workers that ops hold up: a base of one worker, a place for a replacement, four ops, the monitor, and a stop at any
 * time. The first op waits until the second has run, which is queued behind it; the third, queued by the second, may wait for the fourth, which
 * comes from outside. The system may refuse a thread once. With TWO there are two places, and nothing comes from outside.
 *
 * Code:  core/takeover.go (replace, enlist, begins, retire, leave, giveAway, dismiss), core/worker.go (RunWorker), core/stop.go (Stop, drained, workerEnds);
 *        capi/watch.c (watch_judge, watch_wants_more, watch_ask_to_leave), capi/threads.c (lane_rest, lane_thread_leaves); core/purelane/watch.go.
 * Words: life is lane_worker.life; queue is a worker's three rings and next, injected is lane_runtime.inject; live, resting, closed and stopping are
 *        Runtime's. Each atomic block is one atomic instruction, or a section: under Runtime.mu, or a worker's queue section. in_op is what the
 *        monitor learns from ticks and running: whom it finds in an op it may take for held up, however short the op is.
 * Not here: sleeping and waking (park.pml: a worker that has nothing waits here until it has), the queue section itself (queue.pml), Pending
 *        (stop.pml), and time: what the monitor may do once enough has passed, it may do at once.
 *
 * Properties: every op that was accepted runs once, before the end; no place has two threads; all threads end, and the runtime once.
 */
#ifdef TWO
#define PLACES 3
#else
#define PLACES 2
#endif
#define BASE 1

#define ABSENT 0
#define STARTING 1
#define RUNS 2
#define ASKED 3
#define CACHED 4
#define DISMISSED 5
#define LEAVING 6

byte life[PLACES];
byte queue[PLACES];     /* bit per op */
bit in_op[PLACES];
bit threads[PLACES];    /* a thread serves the place */
bit asleep[PLACES];     /* in the futex of lane_rest */
byte injected;
byte accepted = 3, ran; /* bit per op */
byte live = BASE, resting;
bit closed, stopping, stopped, refused;
byte ended;             /* threads that have ended, */
byte begun;             /* and that were begun */

#ifdef TWO
#define WAITS ((in_op[0] && queue[0]) || (in_op[1] && queue[1]) || (in_op[2] && queue[2]) || injected)
#define QUEUED (queue[0] | queue[1] | queue[2])
#else
#define WAITS ((in_op[0] && queue[0]) || (in_op[1] && queue[1]) || injected)
#define QUEUED (queue[0] | queue[1])
#endif
#define MAY_BEGIN(i) (life[i] == ASKED || life[i] == CACHED || life[i] == ABSENT)
#define MAY_LEAVE(i) (life[i] == RUNS && !in_op[i])
#define STAYS(i) (life[i] == STARTING || life[i] == RUNS)

/* Who progresses: those that neither leave nor are in an op. */
#ifdef TWO
#define FREE ((STAYS(0) && !in_op[0]) + (STAYS(1) && !in_op[1]) + (STAYS(2) && !in_op[2]))
#define ONE_MAY_BEGIN (MAY_BEGIN(1) || MAY_BEGIN(2))
#define ONE_MAY_LEAVE (MAY_LEAVE(1) || MAY_LEAVE(2))
#else
#define FREE ((STAYS(0) && !in_op[0]) + (STAYS(1) && !in_op[1]))
#define ONE_MAY_BEGIN MAY_BEGIN(1)
#define ONE_MAY_LEAVE MAY_LEAVE(1)
#endif

/* Takes one op out of a set. */
inline take(set, op) {
    if
    :: set & 1 -> set = set & ~1; op = 1
    :: set & 2 -> set = set & ~2; op = 2
    :: set & 4 -> set = set & ~4; op = 4
    :: set & 8 -> set = set & ~8; op = 8
    :: else -> op = 0
    fi
}

inline run_op(me, op) {
    atomic {
        assert(!closed);
        assert(!(ran & op));
        in_op[me] = 1
    }
    if
    :: op == 1 -> (ran & 2)            /* waits for the one behind it */
    :: op == 2 ->
        atomic {
            if
            :: true -> accepted = accepted | 4; queue[me] = queue[me] | 4
            :: stopping                /* refused */
            fi
        }
    :: op == 4 ->
#ifndef TWO
        if
        :: (ran & 8) || (stopping && !(accepted & 8))
        :: true
        fi
#else
        skip
#endif
    :: else
    fi;
    atomic { ran = ran | op; in_op[me] = 0; op = 0 }
}

inline dismiss(i) {
    if
#ifndef MUTANT_CACHED_FORGOTTEN
    :: life[i] == CACHED -> life[i] = DISMISSED; asleep[i] = 0
#endif
    :: else
    fi
}

/* giveAway: to another that runs. Accept looks at life inside the other's section. */
inline give(me, other) {
    if
#ifdef MUTANT_GIVE_BLIND
    :: loot && life[other] == RUNS && !in_op[other] -> queue[other] = queue[other] | loot; loot = 0
#else
    :: atomic { loot && life[other] == RUNS && !in_op[other] -> queue[other] = queue[other] | loot; loot = 0 }
#endif
    :: true
    fi
}

proctype worker(byte me) {
    byte op, loot;
    bit end;
begins:
    atomic {
        if
        :: life[me] == STARTING -> life[me] = RUNS
#ifdef MUTANT_COUNTED_LATE
            ; live = live + (me >= BASE)
#endif
        :: else
        fi
    }
    do
    :: queue[me] -> atomic { take(queue[me], op) }; if :: op -> run_op(me, op) :: else fi
    :: injected -> atomic { queue[me] = queue[me] | injected; injected = 0 }
    /* steal: from one in an op, whose last may be taken, too */
    :: in_op[(me + 1) % PLACES] && queue[(me + 1) % PLACES] -> atomic { loot = queue[(me + 1) % PLACES]; queue[(me + 1) % PLACES] = 0; queue[me] = queue[me] | loot; loot = 0 }
#ifdef TWO
    :: in_op[(me + 2) % PLACES] && queue[(me + 2) % PLACES] -> atomic { loot = queue[(me + 2) % PLACES]; queue[(me + 2) % PLACES] = 0; queue[me] = queue[me] | loot; loot = 0 }
#endif
    :: life[me] == ASKED -> /* retire */
        atomic { loot = queue[me]; queue[me] = 0 };
        if
        :: loot ->
            give(me, (me + 1) % PLACES);
#ifdef TWO
            give(me, (me + 2) % PLACES);
#endif
            atomic { queue[me] = queue[me] | loot; loot = 0 }
        :: else
        fi;
        end = 0;
        atomic { /* leave */
            if
#ifdef MUTANT_LEAVE_FULL
            :: life[me] == ASKED -> life[me] = CACHED; live--; end = 1
#else
            :: life[me] == ASKED && queue[me] == 0 -> life[me] = CACHED; live--; end = 1
#endif
            :: else
            fi
        };
        if
        :: end -> goto rests
        :: else
        fi
    :: stopping && queue[me] == 0 && injected == 0 -> /* drained */
        atomic {
            resting++;
            if
#ifdef MUTANT_CLOSE_BLIND
            :: !closed && resting == live && injected == 0 -> closed = 1
#else
            :: !closed && resting == live && injected == 0 && !QUEUED -> closed = 1
#endif
            :: else
            fi;
            if
            :: closed ->
                dismiss(1);
#ifdef TWO
                dismiss(2)
#endif
            :: else
            fi
        };
        atomic { /* the pause, which ends when there is something to find */
            closed || injected || queue[me] || WAITS || (resting == live && !QUEUED) ->
            if
            :: closed -> end = 1
            :: !closed && !injected && !queue[me] && !WAITS -> /* still resting: it looks once more, and is the last */
                closed = 1;
                dismiss(1);
#ifdef TWO
                dismiss(2);
#endif
                end = 1
            :: else -> resting--; end = 0
            fi
        };
        if
        :: end -> break
        :: else
        fi
    od;
    atomic { /* workerEnds */
        if
        :: me >= BASE -> life[me] = DISMISSED
        :: else
        fi;
        live--;
        if
        :: live == 0 -> assert(!stopped); stopped = 1
        :: else
        fi;
        threads[me] = 0;
        ended++
    };
    goto over;
rests:
    do
    :: life[me] == STARTING -> goto begins
    :: life[me] != STARTING && life[me] != CACHED -> atomic { threads[me] = 0; ended++ }; break
    /* futex_wait: unless the word has changed */
    :: atomic { life[me] == CACHED -> asleep[me] = 1 }; !asleep[me]
    /* not wanted for long */
#ifdef MUTANT_EXPIRE_BLIND
    :: life[me] == CACHED -> life[me] = LEAVING;
#else
    :: atomic { life[me] == CACHED -> life[me] = LEAVING };
#endif
#ifdef MUTANT_ABSENT_FIRST
        life[me] = ABSENT; atomic { threads[me] = 0; ended++ };
#else
        atomic { life[me] = ABSENT; threads[me] = 0; ended++ };
#endif
        break
    od;
over:
}

/* Sets done to 1 when a worker was made one of those that live. */
inline enlist(i, from) {
    atomic {
        if
#ifdef MUTANT_ENLIST_BLIND
        :: life[i] == from ->
#else
        :: !closed && life[i] == from ->
#endif
            life[i] = STARTING;
#ifndef MUTANT_COUNTED_LATE
            live++;
#endif
            done = 1
        :: else
        fi
    }
}

inline wanted_again(i) {
    if
#ifdef MUTANT_WANTED_BLIND
    :: !done && life[i] == ASKED -> life[i] = RUNS; done = 1
#else
    :: atomic { !done && life[i] == ASKED -> life[i] = RUNS; done = 1 }
#endif
    :: else
    fi
}

inline rouse_cached(i) {
    if
    :: !done && life[i] == CACHED ->
        enlist(i, CACHED);
#ifndef MUTANT_NOT_ROUSED
        asleep[i] = 0
#endif
    :: else
    fi
}

inline begin_thread(i) {
    if
    :: !done && life[i] == ABSENT ->
        enlist(i, ABSENT);
        if
        :: done ->
            if
            :: atomic { true -> assert(!threads[i]); threads[i] = 1; begun++; run worker(i) }
            :: atomic { !refused -> refused = 1; life[i] = ABSENT;
#ifndef MUTANT_REFUSED_COUNTS
                live--
#endif
               }
            fi
        :: else
        fi
    :: else
    fi
}

proctype monitor() {
    bit done;
    do
    :: stopped -> break
    /* watch_wants_more */
#ifdef MUTANT_STOP_TAKES_NOBODY
    :: !stopped && !stopping && WAITS && FREE < BASE && ONE_MAY_BEGIN ->
#else
    :: !stopped && WAITS && FREE < BASE && ONE_MAY_BEGIN ->
#endif
        done = 0;
        wanted_again(1);
#ifdef TWO
        wanted_again(2);
#endif
        rouse_cached(1);
#ifdef TWO
        rouse_cached(2);
#endif
        begin_thread(1);
#ifdef TWO
        begin_thread(2)
#endif
    /* watch_ask_to_leave */
    :: !stopping && FREE > BASE && ONE_MAY_LEAVE ->
        if
#ifdef TWO
        :: atomic { MAY_LEAVE(2) -> life[2] = ASKED }
#endif
        :: atomic { MAY_LEAVE(1) -> life[1] = ASKED }
        :: else
        fi
    od
}

/* An op from outside. */
proctype outside() {
    atomic {
        if
        :: !stopping -> accepted = accepted | 8; injected = injected | 8
        :: else
        fi
    }
}

proctype stop() {
    atomic {
        stopping = 1;
#ifdef MUTANT_DISMISS_EARLY
        dismiss(1)
#endif
    }
}

init {
    atomic {
        life[0] = RUNS;
        queue[0] = 3;
        threads[0] = 1;
        begun = 1;
        run worker(0);
        run monitor();
#ifndef TWO
        run outside();
#endif
        run stop()
    };
    timeout;
    assert(closed && stopped && live == 0);
    assert(ended == begun);
    assert(ran == accepted);
    assert(!QUEUED && !injected)
}
