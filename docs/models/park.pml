/* SPDX-License-Identifier: MIT */
/* check: expect: pass */
/* check: -DPOLLER expect: pass */
/* check: -DPOLLER -DTURN expect: pass */
/* check: -DTIMER expect: pass */
/* check: -DGIVER expect: pass */
/* check: -DPOLLER -DDESTROY expect: pass */
/* check: -DASKER expect: pass */
/* check: -DMUTANT_NO_SECOND_LOOK expect: fail */
/* check: -DMUTANT_LOOK_BEFORE_ANNOUNCING expect: fail */
/* check: -DMUTANT_WAKING_CLEARED_LATE expect: fail */
/* check: -DMUTANT_PUSH_AFTER_LOOK expect: fail */
/* check: -DMUTANT_SLEEP_BLIND expect: fail */
/* check: -DMUTANT_NO_RETRY expect: fail */
/* check: -DTIMER -DMUTANT_NO_SECOND_LOOK_AT_TIMERS expect: fail */
/* check: -DTIMER -DMUTANT_HURRY_BEFORE_PUBLISHING expect: fail */
/* check: -DTIMER -DMUTANT_KEEPER_LEFT_EARLY expect: fail */
/* check: -DMUTANT_STOP_FORGETS_SLEEPERS expect: fail */
/* check: -DGIVER -DMUTANT_GIVEN_UNSEEN expect: fail */
/* check: -DGIVER -DMUTANT_WAKE_BEFORE_GIVING expect: fail */
/* check: -DPOLLER -DTURN -DMUTANT_WAKE_SWALLOWED expect: fail */
/* check: -DPOLLER -DDESTROY -DMUTANT_WAKER_COUNTED_LATE expect: fail */
/* check: -DPOLLER -DDESTROY -DMUTANT_DESTROY_HURRIES expect: fail */
/* check: -DASKER -DMUTANT_ASKED_UNSEEN expect: fail */
/* check: -DASKER -DMUTANT_WAKE_BEFORE_ASKING expect: fail */
/*
 * park.pml: parking and waking: two workers, two producers outside, one of them injecting again, the poller or a timer as what ends the keeper's
 * sleep, somebody who gives the poller a turn meanwhile, a worker that leaves and gives away what it has, the monitor who asks one to leave, and a stop in the middle; and the
 * end of a runtime with one worker, when all that was injected has run, while those who injected it have not returned yet.
 *
 * Code:  capi/park.c (lane_park, lane_keep, lane_unpark, lane_wake_one, lane_claim, lane_notify, lane_spin), capi/poll.c, capi/lane.c (lane_inject,
 *        lane_drain, lane_poll_in_turn), capi/poll_linux.c (lane_poll), capi/timer.c (lane_hurry), capi/watch.c (watch_ask_to_leave); core/runtime.go (pollTurn), core/stop.go (Stop,
 *        drained, Destroy), core/takeover.go (giveAway); core/purelane/park.go (the same in Go).
 * Words: inject, idle, waking, keeper, sleep_until, state are the words of lane_runtime; park[w] is lane_worker.park. All accesses are
 *        sequentially consistent, as in the code.
 *
 * Properties: nobody wakes a poller that is closed. When everything stands still, nothing that was injected is left, no due timer is left, and all workers have ended (stop is always
 * asked for at last). A worker that sleeps for good is an invalid end state.
 */
#define AWAKE 0
#define ANNOUNCED 1
#define PARKED 2
#define IN_POLLER 3
#define NOTIFIED 4

#define PLACES 2
#ifdef DESTROY
#define WORKERS 1
#else
#define WORKERS 2
#endif

byte injected;            /* length of the injection stack */
bit closed;               /* it is closed */
bit idle[PLACES];
byte park[PLACES];
bit waking;
byte keeper;              /* 1 + worker, or 0 */
bit eventfd;              /* the poller has something to report: a wake */
bit stopping;
byte given[PLACES];      /* what stands in a worker's queue that it has not put there */
byte resting;
byte accepted, ran;
byte producing;
byte wakers;
byte ended_workers;
bit poller_closed;
bit event;                /* and of something else: a socket */
bit asked[PLACES];        /* to leave */
byte live = WORKERS;

/* One timer. due: its time has come. earliest: it is in a wheel. The keeper's sleep ends by itself when what it sleeps for is due. */
bit earliest, due, fired, started;
byte sleep_until;         /* 0: there is no keeper; 1: the timer's deadline; 2: never */

inline waker_begins() {
#ifdef DESTROY
    wakers++
#else
    skip
#endif
}

inline waker_ends() {
#ifdef DESTROY
    wakers--
#else
    skip
#endif
}

inline notify(w) {
    atomic { how = park[w]; park[w] = NOTIFIED };
#ifdef MUTANT_WAKER_COUNTED_LATE
    waker_begins();
#endif
    if
    :: how == IN_POLLER ->
#ifdef DESTROY
       assert(!poller_closed);
#endif
       eventfd = 1
    :: else               /* PARKED: the futex wake, which the sleeper's condition stands for */
    fi;
    how = 0
}

inline wake_one() {
    do
    :: idle[0] || idle[1] ->
       atomic {
           if
           :: waking == 0 -> waking = 1
           :: else -> break
           fi
       };
       victim = 2;
#ifndef MUTANT_WAKER_COUNTED_LATE
       waker_begins();
#endif
       /* lane_claim: a sleeper that is not the keeper first */
       atomic { if :: idle[0] && keeper != 1 -> idle[0] = 0; victim = 0 :: else fi };
       if :: victim == 2 -> atomic { if :: idle[1] && keeper != 2 -> idle[1] = 0; victim = 1 :: else fi } :: else fi;
       if :: victim == 2 -> atomic { if :: idle[0] -> idle[0] = 0; victim = 0 :: else fi } :: else fi;
       if :: victim == 2 -> atomic { if :: idle[1] -> idle[1] = 0; victim = 1 :: else fi } :: else fi;
       if
       :: victim == 2 ->
#ifndef MUTANT_WAKER_COUNTED_LATE
          waker_ends();
#endif
          waking = 0;
#ifdef MUTANT_NO_RETRY
          break
#endif
       :: else -> notify(victim); waker_ends(); break
       fi
    :: else -> break
    od;
    victim = 0
}

inline wake(w) {          /* lane_wake */
#ifdef MUTANT_WAKER_COUNTED_LATE
    atomic { go = idle[w]; idle[w] = 0 };
    if :: go -> notify(w); waker_ends() :: else fi;
#else
    waker_begins();
    atomic { go = idle[w]; idle[w] = 0 };
    if :: go -> notify(w) :: else fi;
    waker_ends();
#endif
    go = 0
}

proctype worker(byte w) {
    byte how, victim, until;
    bit go, mine, sleeps;
again:
    do
    :: true ->
       /* lane_drain and run */
       atomic {
           if
           :: given[w] > 0 -> ran = ran + given[w]; given[w] = 0; goto again
           :: else
           fi
       };
       atomic {
           if
           :: injected > 0 -> ran = ran + injected; injected = 0; goto again
           :: else
           fi
       };
       if
       :: stopping ->     /* core: drained */
          atomic {
              resting++;
              if :: resting == live && injected == 0 -> closed = 1 :: else fi
          };
          if
          :: closed -> goto ended
          :: else
          fi;
          atomic {        /* it goes on resting until there is something, or it is the last */
              if
              :: closed -> goto ended
              :: !closed && injected > 0 -> resting--
              :: !closed && injected == 0 && resting == live -> closed = 1; goto ended
              fi
          };
          goto again
       :: else
       fi;
       /* lane_park */
       if :: asked[w] -> live--; goto ended :: else fi;
#ifdef MUTANT_LOOK_BEFORE_ANNOUNCING
       if :: injected > 0 || stopping -> goto again :: else fi;
       park[w] = ANNOUNCED;
       idle[w] = 1;
#else
       park[w] = ANNOUNCED;
       idle[w] = 1;
#ifndef MUTANT_NO_SECOND_LOOK
       if :: injected > 0 || stopping -> goto unpark :: else fi;
#ifndef MUTANT_GIVEN_UNSEEN
       if :: given[w] > 0 -> goto unpark :: else fi;
#endif
#ifndef MUTANT_ASKED_UNSEEN
       if :: asked[w] -> goto unpark :: else fi;
#endif
#endif
#endif
       atomic {
           if
           :: keeper == 0 -> keeper = w + 1; mine = 1
           :: else -> mine = 0
           fi
       };
       if
       :: mine ->         /* lane_keep */
          until = (earliest -> 1 : 2);
          sleep_until = until;
#ifndef MUTANT_NO_SECOND_LOOK_AT_TIMERS
          if :: earliest -> until = 1; sleep_until = 1 :: else fi;
#endif
          if
          :: until == 1 && due -> skip      /* LANE_TIMERS */
          :: else ->
             atomic {
                 if
#ifdef MUTANT_SLEEP_BLIND
                 :: true ->
#else
                 :: park[w] == ANNOUNCED ->
#endif
#ifdef POLLER
                    park[w] = IN_POLLER;
#else
                    park[w] = PARKED;
#endif
                    sleeps = 1
                 :: else
                 fi
             };
             /* the sleep: a wake, or the deadline */
             if
             :: sleeps ->
                if
#ifdef POLLER
                :: eventfd -> eventfd = 0
                :: event -> event = 0
#else
                :: park[w] == NOTIFIED
#endif
                :: until == 1 && due
                fi
             :: else
             fi;
             sleeps = 0
          fi;
#ifdef MUTANT_KEEPER_LEFT_EARLY
          keeper = 0;
          sleep_until = 0;
#else
          sleep_until = 0;
          keeper = 0;
#endif
          until = 0;
          /* core's fire, in a turn of Go */
          atomic { if :: earliest && due -> earliest = 0; fired = 1; injected++; accepted++ :: else fi };
          mine = 0
       :: else ->
          atomic {
              if
#ifdef MUTANT_SLEEP_BLIND
              :: true -> park[w] = PARKED
#else
              :: park[w] == ANNOUNCED -> park[w] = PARKED
              :: else
#endif
              fi
          };
          (park[w] != PARKED)
       fi;
unpark:
#ifdef MUTANT_WAKING_CLEARED_LATE
       atomic { go = idle[w]; idle[w] = 0 };
       park[w] = AWAKE;
       atomic { if :: injected > 0 -> ran = ran + injected; injected = 0 :: else fi };
       if :: !go -> waking = 0 :: else fi;
       /* and straight back to sleep, as if the look above were enough */
       if
       :: !stopping -> park[w] = ANNOUNCED; idle[w] = 1; park[w] = (park[w] == ANNOUNCED -> PARKED : park[w]); (park[w] != PARKED)
       :: else
       fi;
#else
       atomic { go = idle[w]; idle[w] = 0 };
       park[w] = AWAKE;
       if :: !go -> waking = 0 :: else fi;
#endif
       go = 0
    od;
ended:
#ifdef DESTROY
    ended_workers++
#else
    skip
#endif
}

proctype producer(byte ops) {
    byte how, victim;
    bit go, first;
    do
    :: ops > 0 ->
       ops--;
#ifdef MUTANT_PUSH_AFTER_LOOK
       first = (injected == 0);
       if :: first -> wake_one() :: else fi;
       atomic { injected++; accepted++ }
#else
       atomic { first = (injected == 0); injected++; accepted++ };
       if :: first -> wake_one() :: else fi
#endif
    :: else -> break
    od;
    producing--
}

#ifdef TURN
proctype turn() {         /* a busy worker's (lane_check, lane_poll), or the monitor's */
    bit woken;
    if
    :: keeper == 0 ->
       atomic { if :: eventfd -> eventfd = 0; woken = 1 :: else fi };
#ifndef MUTANT_WAKE_SWALLOWED
       if :: woken && keeper != 0 -> eventfd = 1 :: else fi
#endif
    :: else
    fi
}
#endif

#ifdef GIVER
proctype giver() {        /* a worker that leaves */
    byte how;
    bit go;
#ifdef MUTANT_WAKE_BEFORE_GIVING
    wake(0);
    atomic { given[0]++; accepted++ };
#else
    atomic { given[0]++; accepted++ };
    wake(0);
#endif
    producing--
}
#endif

#ifdef ASKER
proctype asker() {        /* watch_ask_to_leave */
    byte how;
    bit go;
#ifdef MUTANT_WAKE_BEFORE_ASKING
    wake(1);
    asked[1] = 1;
#else
    asked[1] = 1;
    wake(1);
#endif
    producing--
}
#endif

#ifdef TIMER
proctype starter() {      /* weft_schedule_at from outside, and the clock */
    byte how;
    bit go, hurry;
    byte k;
#ifdef MUTANT_HURRY_BEFORE_PUBLISHING
    hurry = (sleep_until == 2);
    earliest = 1;
#else
    earliest = 1;
    hurry = (sleep_until == 2);
#endif
    k = keeper;
    if
    :: hurry && k != 0 -> wake(k - 1)
    :: else
    fi;
    due = 1;
    producing--
}
#endif

init {
    byte how, victim;
    bit go;
    atomic {
        run worker(0);
#ifdef DESTROY
        producing = 2; run producer(1); run producer(1); event = 1
#else
        run worker(1);
#ifdef TIMER
        producing = 2; run producer(1); run starter()
#else
#ifdef TURN
        producing = 2; run producer(1); run producer(1); run turn()
#else
#ifdef GIVER
        producing = 2; run producer(1); run giver()
#else
#ifdef ASKER
        producing = 2; run producer(1); run asker()
#else
        producing = 2; run producer(2); run producer(1)
#endif
#endif
#endif
#endif
#endif
    };
#ifdef DESTROY
    (ran == 2);            /* they may be in their calls still */
#else
    (producing == 0);
#endif
#ifdef TIMER
    /* nobody helps the timer along but the keeper */
    (fired || timeout);
    assert(fired);
#endif
    /* without stop, everything is run by now or will be: nothing may depend on it */
    (injected + given[0] == 0 || timeout);
    assert(injected + given[0] == 0);
#ifdef ASKER
    (live == 1 || timeout);
    assert(live == 1);
#endif
    stopping = 1;
#ifndef MUTANT_STOP_FORGETS_SLEEPERS
    wake(0); wake(1);
#endif
    (closed);
#ifdef DESTROY
    (ended_workers == WORKERS);
#ifndef MUTANT_DESTROY_HURRIES
    (wakers == 0);
#endif
    poller_closed = 1;
#endif
    (_nr_pr == 1);
    assert(ran == accepted)
}
