/* SPDX-License-Identifier: MIT */
/* check: expect: pass */
/* check: -DLOOKUP expect: pass */
/* check: -DMUTANT_RELEASE_FIRST expect: fail */
/* check: -DMUTANT_NOT_COUNTED expect: fail */
/* check: -DMUTANT_STOP_HOLDS_NOTHING expect: fail */
/* check: -DLOOKUP -DMUTANT_HOLD_BLIND expect: fail */
/* check: -DVISIT expect: pass */
/* check: -DVISIT -DMUTANT_CANCEL_NOT_COUNTED expect: fail */
/* check: -DVISIT -DMUTANT_START_NOT_COUNTED expect: fail */
/* check: -DVISIT -DMUTANT_HOLD_BLIND expect: fail */
/*
 * stop.pml: the end of a runtime against ops that threads hand back which are no workers: two blocking calls, of which one continues
 * with the other, submitted while stop begins; one thread in the pool.
 *
 * Code:  core/stop.go (Stop, drained); capi/blocking.c (accept_op, run_call, blocking_close); capi/end.h (lane_hold_end, lane_release_end, lane_visit_begin);
 *        capi/io.c (io_start, weft_io_cancel), capi/timer.c (weft_timer_cancel), capi/socket.c (weft_descriptor_close).
 * Words: injected and closed are lane_runtime.inject, pending is lane_runtime.pending, accepting is blocking_pool.id != 0. Each atomic block is
 *        one atomic instruction, or a section under the pool's mutex or the runtime's.
 *
 * With LOOKUP the submitter has no pool to lock, and takes part with lane_hold_end.
 *
 * With VISIT an I/O op, or a timer, that another thread starts waits in its slot, or wheel, until an event, a canceller, or Stop takes it out; how it comes
 * there and goes is op.pml's business. Whoever is no worker is counted while he has it in his hands.
 *
 * Properties: every accepted op runs exactly once, and on a worker; the workers end; and with VISIT, nobody else is at it when they have.
 */
#define OPS 2

byte injected;      /* bit per op: handed back, not yet run */
bit closed;         /* nothing more can be handed back */
byte pending = 1;   /* Stop's own reference */
bit accepting = 1;
bit stopping;
byte waiting;       /* bit per op: waits for the thread */
byte accepted, ran;
byte outside;       /* ops that found no worker */

inline submit(op) {
#ifdef LOOKUP
    atomic {
        if
#ifndef MUTANT_HOLD_BLIND
        :: pending == 0 -> skip
#endif
        :: else -> pending++; accepted = accepted | (1 << op); waiting = waiting | (1 << op)
        fi
    }
#else
    atomic {
        if
        :: accepting ->
#ifndef MUTANT_NOT_COUNTED
            pending++;
#endif
            accepted = accepted | (1 << op);
            waiting = waiting | (1 << op)
        :: else
        fi
    }
#endif
}

inline hand_back(op) {
#if defined(MUTANT_RELEASE_FIRST) && !defined(MUTANT_NOT_COUNTED)
    pending--;
#endif
    atomic {
        if
        :: closed -> outside++
        :: else -> injected = injected | (1 << op)
        fi
    }
#if !defined(MUTANT_RELEASE_FIRST) && !defined(MUTANT_NOT_COUNTED)
    pending--
#endif
}

#ifdef VISIT
bit armed;          /* the first op waits */
byte inside;        /* threads in a call that has found the runtime alive */

inline visit_begin(counted, late) {
    atomic {
        if
#ifndef MUTANT_HOLD_BLIND
        :: counted && pending == 0 -> late = 1
#endif
        :: counted && pending != 0 -> pending++; inside++
#ifdef MUTANT_HOLD_BLIND
        :: counted && pending == 0 -> pending++; inside++
#endif
        :: !counted -> inside++
        fi
    }
}

inline visit_end(counted) {
    atomic {
        inside--;
        if
        :: counted -> pending--
        :: else
        fi
    }
}

/* io_start: it is refused once it sees that the runtime stops; also between its claim and its arming, where Stop's nudge makes it look again. */
active proctype starter() {
    bit counted = 1, late;
#ifdef MUTANT_START_NOT_COUNTED
    counted = 0;
#endif
    visit_begin(counted, late);
    if
    :: !late ->
        atomic {
            if
            :: !stopping -> armed = 1; accepted = accepted | 1
            :: else
            fi
        }
        visit_end(counted)
    :: else
    fi
}

active proctype canceller() {
    bit counted = 1, late, won;
#ifdef MUTANT_CANCEL_NOT_COUNTED
    counted = 0;
#endif
end_refused: accepted & 1;
    visit_begin(counted, late);
    if
    :: !late ->
        atomic { won = armed; armed = 0 };
        if
        :: won ->
            atomic {
                if
                :: closed -> outside++
                :: else -> injected = injected | 1
                fi
            }
        :: else
        fi;
        visit_end(counted)
    :: else
    fi
}
#endif

#ifndef VISIT
/* The pool's thread, or a lookup. */
active proctype thread() {
    byte op;
end:
    do
    :: atomic { waiting & 1 -> waiting = waiting & ~1; op = 0 }; hand_back(op)
    :: atomic { waiting & 2 -> waiting = waiting & ~2; op = 1 }; hand_back(op)
    od
}

/* Submits the first op at any time. */
active proctype submitter() { submit(0) }
#endif

active proctype stop() {
    byte cancelled;
#ifdef MUTANT_STOP_HOLDS_NOTHING
    pending--;
#endif
    stopping = 1;
#ifdef VISIT
    atomic { cancelled = armed; armed = 0 };
#else
    atomic { accepting = 0; cancelled = waiting; waiting = 0 };
#endif
    if
#ifdef VISIT
    :: cancelled & 1 -> injected = injected | 1
#else
    :: cancelled & 1 -> hand_back(0)
#endif
    :: else
    fi;
    if
    :: cancelled & 2 -> hand_back(1)
    :: else
    fi;
#ifndef MUTANT_STOP_HOLDS_NOTHING
    pending--
#endif
}

/* One worker: the queue section and the others are other models' business. The first op, once it runs, submits the second. */
active proctype worker() {
    do
#ifdef VISIT
    :: atomic { injected & 1 -> injected = injected & ~1 }; ran = ran + 1
    :: atomic { armed -> armed = 0; injected = injected | 1 } /* an event, or the time */
#else
    :: atomic { injected & 1 -> injected = injected & ~1 }; ran = ran + 1; submit(1)
#endif
    :: atomic { injected & 2 -> injected = injected & ~2 }; ran = ran + 1
    :: stopping && injected == 0 ->
        if
        :: pending == 0 ->
            atomic {
                if
                :: injected == 0 -> closed = 1
                :: else
                fi
            }
            if
            :: closed -> break
            :: else
            fi
        :: else
        fi
    od
#ifdef VISIT
    assert(inside == 0)
#endif
}


/* When everything stands still: what was accepted ran, on the worker, once. */
active proctype check() {
    timeout;
    assert(closed);
    assert(outside == 0);
    assert(ran == (accepted & 1) + (accepted >> 1));
    assert(injected == 0 && waiting == 0)
}
