/* SPDX-License-Identifier: MIT */
/* check: -DSAFETY expect: pass */
/* check: -DSAFETY -DMUTANT_TORN_END expect: fail */
/* check: -DSAFETY -DMUTANT_SILENT_JOINER expect: fail */
/* check: -DSAFETY -DMUTANT_BLIND_SLEEP expect: fail */
/* check: -DSAFETY -DMUTANT_LATE_TOUCH expect: fail */
/* check: -DSAFETY -DMUTANT_CARELESS_WAKE expect: fail */
/*
 * fork.pml: the end of a fork that was stolen: capi/fork.c (fork_run, fork_sleep, fork_help).
 *
 * The word is weft_fork.state_; the naps of a joiner are left out, so that a lost wake is seen. The memory has two lives: it is a fork's again as soon as
 * its join has returned, and a wake for the first may come to the second.
 *
 * Properties
 *  1. a join returns only when its fork's function has run, and returns (invalid end states);
 *  2. who runs it does not touch the memory after the word says DONE.
 */
#define QUEUED 0
#define AWAITED 1
#define DONE 2

byte word;
byte life;      /* whose memory it is */
byte asked;     /* the life that a runner is to run */
bool ran;       /* the function of this life has */
bool asleep;

active proctype joiner() {
    byte seen, l;
    for (l : 1 .. 2) {
        atomic { life = l; ran = false; word = QUEUED }
        asked = l; /* stolen */
        do
        ::  if
            :: word == DONE -> break
            :: else
            fi;
#ifndef MUTANT_SILENT_JOINER
            atomic { seen = word; if :: word == QUEUED -> word = AWAITED :: else fi }
            if :: seen == DONE -> break :: else fi;
#endif
            /* futex: sleeps if the word is still what it was */
#ifdef MUTANT_BLIND_SLEEP
            asleep = true;
#else
            atomic { if :: word == AWAITED || word == QUEUED -> asleep = true :: else fi }
#endif
            !asleep
        od;
        assert(ran);
    }
}

active proctype runner() {
    byte before, l;
    for (l : 1 .. 2) {
        asked == l;
        ran = true;
#ifdef MUTANT_TORN_END
        before = word;
        assert(life == l);
        word = DONE;
#else
        atomic { assert(life == l); before = word; word = DONE }
#endif
#ifdef MUTANT_LATE_TOUCH
        assert(life == l); /* a look at the memory */
#endif
#ifdef MUTANT_CARELESS_WAKE
        if :: before == AWAITED -> atomic { asleep = false; word = DONE } :: else fi
#else
        if :: before == AWAITED -> asleep = false :: else fi
#endif
    }
}
