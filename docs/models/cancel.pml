/* SPDX-License-Identifier: MIT */
/* check: expect: pass */
/* check: -DMUTANT_NO_WAIT expect: fail */
/* check: -DMUTANT_WAIT_FOR_SELF expect: fail */
/* check: -DMUTANT_TOUCH_AFTER expect: fail */
/* check: -DMUTANT_ADDRESS_ONLY expect: fail */
/* check: -DMUTANT_CHECK_BEFORE_LOCK expect: fail */
/* check: -DMUTANT_TWO_HOLDS expect: fail */
/*
 * cancel.pml: cancellation, one source. The inlines lock, unlock, begin, end, deregister, register and request are the
 * functions of these names in cancel/lock.go, request.go and register.go, and with the prefix cancel_ or weft_cancel_ in capi/cancel.c.
 *
 * Threads: a requester; a remover, which deregisters; a latecomer, which registers while the request may be under way.
 * Registrations: A and B are there from the start, L is the latecomer's, in new memory or in memory that A or B left.
 * Callbacks of B and L may deregister themselves or others. Each registration is deregistered by one of those who may.
 *
 * Checked: a callback runs at most once, and not after, nor at the end of, its deregistration by another thread; no
 * callback is lost; nobody touches a freed registration or a freed source (rule 3 of include/weft/c/cancel.h); no deadlock.
 * Lists are sets here, so "newest first" is not modelled; a step sees all earlier ones, so neither is weak memory: the comments at
 * cancel_lock and cancel_unlock argue that acquire and release are enough.
 */

#define CELLS 3     /* pieces of memory */
#define NAMES 3     /* registrations */
#define A 0
#define B 1
#define L 2
#define REQUESTER 0
#define REMOVER 1
#define LATECOMER 2

mtype = { idle, waiting, running, called };

/* The source. */
bool locked, requested;

/* Registrations in memory: RegistrationMemory.State and Thread, and which list has them. */
mtype state[CELLS] = idle;
byte thread[CELLS];
bool newest[CELLS], runs[CELLS];

/* What the program knows, to judge. */
bool freed[CELLS], source_freed;
byte who[CELLS], cell[NAMES];      /* which registration lives where */
bool live[NAMES], claimed[NAMES];  /* registered; somebody has undertaken to deregister it */
bool inside[NAMES], gone[NAMES];   /* callback runs; deregister has returned */
byte calls[NAMES], runner[NAMES];
byte latest[3];                    /* registration whose callback a thread began last */
bool owes[3];                      /* thread may still touch the source, by rule 3 */
byte done;

inline touch(c) { assert(!freed[c]) }

inline lock() { atomic { !locked -> assert(!source_freed); locked = true } }

inline unlock() { atomic { assert(!source_freed); locked = false } }

inline begin(me, c) {
    touch(c);
    state[c] = running;
    thread[c] = me;
    runs[c] = true;
    atomic { owes[me] = true; latest[me] = who[c] }
}

inline end(me, c) {
#ifdef MUTANT_TOUCH_AFTER
    touch(c);
    runs[c] = false;
    state[c] = called
#else
    if
#ifdef MUTANT_ADDRESS_ONLY
    :: runs[c] ->
#else
    :: runs[c] && thread[c] == me ->
#endif
        touch(c);
        runs[c] = false;
        state[c] = called
    :: else
    fi
#endif
}

#ifdef MUTANT_WAIT_FOR_SELF
#define RUNS_ELSEWHERE(c, me) (state[c] == running)
#else
#define RUNS_ELSEWHERE(c, me) (state[c] == running && thread[c] != me)
#endif

inline deregister(me, c) {
    touch(c);
    lock();
#ifndef MUTANT_NO_WAIT
    do
    :: RUNS_ELSEWHERE(c, me) ->
        unlock();
        !RUNS_ELSEWHERE(c, me); /* RegistrationMemory.await looks again and again; so a wait without end shows as a deadlock */
        lock()
    :: else -> break
    od;
#endif
    newest[c] = false;
    runs[c] = false;
    state[c] = idle;
    unlock()
}

/* Deregisters n and frees its memory, if n is there and nobody else does. */
inline drop(me, n) {
    if
    :: atomic { live[n] && !claimed[n] -> claimed[n] = true };
        deregister(me, cell[n]);
        atomic {
            assert(!inside[n] || runner[n] == me);
            gone[n] = true;
            live[n] = false;
            freed[cell[n]] = true;
            if
            :: calls[n] == 1 && runner[n] != me && latest[runner[n]] == n -> owes[runner[n]] = false
            :: else
            fi
        }
    :: else
    fi
}

inline callback(me, n) {
    atomic {
        assert(!gone[n] && calls[n] == 0);
        calls[n] = 1;
        inside[n] = true;
        runner[n] = me;
        live[n] = true
    }
    if
    :: true
    :: n == B -> drop(me, B)
    :: n == B -> drop(me, A)
    :: n == L -> drop(me, L)
    :: n == L -> drop(me, A)
    :: n == L -> drop(me, B)
    fi;
    inside[n] = false
}

proctype requester() {
    byte c, n;
    lock();
    requested = true;
    do
    :: newest[0] || newest[1] || newest[2] ->
        if
        :: newest[0] -> c = 0
        :: newest[1] -> c = 1
        :: newest[2] -> c = 2
        fi;
        newest[c] = false;
        begin(REQUESTER, c);
        n = who[c];
        unlock();
        callback(REQUESTER, n);
        lock();
        end(REQUESTER, c);
#ifdef MUTANT_TWO_HOLDS
        unlock();
        lock()
#endif
    :: else -> break
    od;
    unlock();
    atomic { owes[REQUESTER] = false; done++ }
}

proctype remover() {
    if
    :: drop(REMOVER, A)
    :: true
    fi;
    if
    :: drop(REMOVER, B)
    :: true
    fi;
    if
    :: drop(REMOVER, L)
    :: true
    fi;
    atomic {
        if
        :: !live[A] && !live[B] && !live[L] && !owes[REQUESTER] && !owes[LATECOMER] -> source_freed = true
        :: else
        fi;
        done++
    }
}

proctype latecomer() {
    byte c;
    if
    :: c = 2
    :: atomic { freed[0] -> freed[0] = false; c = 0 }
    :: atomic { freed[1] -> freed[1] = false; c = 1 }
    :: goto out /* does not come at all */
    fi;
    atomic { who[c] = L; cell[L] = c }
#ifdef MUTANT_CHECK_BEFORE_LOCK
    bool late = requested;
    lock();
    if
    :: !late ->
#else
    lock();
    if
    :: !requested ->
#endif
        state[c] = waiting;
        newest[c] = true;
        live[L] = true;
        unlock()
    :: else ->
        unlock(); /* as Register in Go, which asks for its thread here; C keeps the lock */
        lock();
        begin(LATECOMER, c);
        unlock();
        callback(LATECOMER, L);
        lock();
        end(LATECOMER, c);
        unlock()
    fi;
    if
    :: drop(LATECOMER, L)
    :: true
    fi;
out:
    atomic { owes[LATECOMER] = false; done++ }
}

init {
    atomic {
        who[0] = A; cell[A] = 0; state[0] = waiting; newest[0] = true; live[A] = true;
        who[1] = B; cell[B] = 1; state[1] = waiting; newest[1] = true; live[B] = true;
        owes[REQUESTER] = true;
        owes[LATECOMER] = true;
        latest[REQUESTER] = NAMES; latest[LATECOMER] = NAMES;
        run requester();
        run remover();
        run latecomer()
    }
    done == 3;
    assert(!locked && !newest[0] && !newest[1] && !newest[2]); /* no callback is lost */
    assert(!runs[0] && !runs[1] && !runs[2])
}
