/* SPDX-License-Identifier: MIT */
/* check: -DSAFETY expect: pass */
/* check: -DSAFETY -DMUTANT_NO_BARRIER expect: fail */
/* check: -DSAFETY -DMUTANT_OWNER_IGNORES_THIEF expect: fail */
/* check: -DSAFETY -DMUTANT_THIEF_IGNORES_TURN expect: fail */
/* check: -DSAFETY -DMUTANT_THIEVES_SHARE expect: fail */
/*
 * queue.pml: the queue section: one owner in C, two thieves, growth included.
 *
 * Code:  capi/lane_internal.h (lane_enter, lane_leave), capi/lane.c (lane_enter_contended, lane_ring_put, lane_grow);
 *        capi/ring.h, capi/steal.c (lane_seize, lane_release, lane_rob); core/queue.go (seize, release, StealHalf, Accept).
 * Words: turn and thief are lane_worker.turn and .thief. The owner's stores go through a store buffer, as on real machines: others see them when
 *        the buffer drains, at any later time, in order; the process-wide barrier (membarrier) drains it. A thief takes thief by
 *        a locked instruction, in C and in Go; its other stores become visible in order, and the last of them gives the queue back, so that
 *        a buffer of its own would only make its section longer.
 *
 * Properties
 *  1. owner and thieves are never inside together, nor two thieves;
 *  2. every runnable that is put in is taken exactly once;
 *  3. nobody reads a ring that growth has given back;
 *  4. nobody hangs (invalid end states).
 */
#define RUNNABLES 3
#define ROUNDS 2

bit turn;                        /* as the thieves see it */
bit thief;
chan buffered = [6] of { bit };  /* the owner's stores to turn, on their way */
byte inside;                     /* who is in the queue section, for property 1 */

/* The ring: two words of room, then four. */
byte head, tail, room = 2;
byte words = 0;                  /* which memory: 0 the first, 1 the grown */
byte slots[12];                  /* 2 x (up to 4), flat: words * 4 + index */
bit freed[2];
byte taken[RUNNABLES + 1];
byte done;

#define DRAIN do :: buffered ? turn :: empty(buffered) -> break od

inline enter() {
    buffered ! 1;
    do
    :: thief == 0 -> break
#ifdef MUTANT_OWNER_IGNORES_THIEF
    :: thief == 1 -> break
#else
    :: thief == 1 ->
       buffered ! 0;
       (thief == 0);             /* lane_pause until it is */
       buffered ! 1;
#endif
    od;
    inside++;
    assert(inside == 1);
}

inline leave() {
    inside--;
    buffered ! 0;
}

inline read_slot(which, i, v) {
    assert(!freed[which]);
    v = slots[which * 4 + (i % room)];
}

active proctype drain() {
end: do
     :: atomic { buffered ? turn }
     od
}

active proctype owner() {
    byte next = 1, round = 0, v, i;
    do
    :: next <= RUNNABLES ->      /* put */
       enter();
       if
       :: tail - head == room && room == 2 ->   /* lane_grow: copy, give the old words back */
          i = head;
          do
          :: i < tail -> slots[4 + (i % 4)] = slots[i % 2]; i++
          :: else -> break
          od;
          i = 0;
          words = 1; room = 4; freed[0] = 1
       :: else
       fi;
       slots[words * 4 + (tail % room)] = next;
       tail++;
       leave();
       next++
    :: round < ROUNDS ->         /* take the newest */
       enter();
       v = 0;
       if
       :: tail != head -> tail--; read_slot(words, tail, v)
       :: else
       fi;
       leave();
       if
       :: v != 0 -> taken[v]++; v = 0
       :: else
       fi;
       round++
    :: next > RUNNABLES && round == ROUNDS -> break
    od;
    done++
}

proctype robber() {
    byte v, n, half;
    bit which;
    byte tries = 0;
    do
    :: tries < 2 ->
       tries++;
       atomic {                  /* the compare-and-swap */
           if
           :: thief == 0 -> thief = 1
#ifdef MUTANT_THIEVES_SHARE
           :: thief == 1
#else
           :: thief == 1 -> goto again
#endif
           fi
       };
#ifndef MUTANT_NO_BARRIER
       atomic { DRAIN };
#endif
       if
       :: turn == 0
#ifdef MUTANT_THIEF_IGNORES_TURN
       :: turn == 1
#else
       :: turn == 1 -> thief = 0; goto again     /* gives up; waiting is the same without a bound */
#endif
       fi;
       inside++;
       assert(inside == 1);
       which = words;
       half = (tail - head + 1) / 2;
       n = 0;
       do
       :: n < half ->
          read_slot(which, head, v);
          head++;
          assert(v != 0);
          taken[v]++;
          n++
       :: else -> break
       od;
       v = 0; n = 0; half = 0; which = 0;
       inside--;
       thief = 0;
again:
       skip
    :: tries == 2 -> break
    od;
    done++
}

init {
    atomic { run robber(); run robber() };
    (done == 3);
    /* What is left was never taken; what was taken was taken once. */
    byte k = head;
    do
    :: k < tail -> taken[slots[words * 4 + (k % room)]]++; k++
    :: else -> break
    od;
    k = 1;
    do
    :: k <= RUNNABLES -> assert(taken[k] == 1); k++
    :: else -> break
    od
}
