/* SPDX-License-Identifier: MIT
 *
 * flight.pml: an op of a file that flies by an overlapped call (capi/flight_windows.c): who makes the call, who takes the packet, who asks for the end, and
 * who stops the runtime. The op has several lives in the same memory; what it does in each, and its file, is over once it has landed.
 *
 * Checked: it lands once in each life; nobody but a canceller, for whom the memory is there, touches it after that; and a call that the system
 * would never end by itself (no ANSWERS) ends when that is asked for: no process is left waiting.
 *
 * check: -DANSWERS -DCANCELS -DLIVES=2 -DSAFETY expect: pass
 * check: -DANSWERS -DCANCELS -DSTOPS -DLIVES=2 -DSAFETY expect: pass
 * check: -DCANCELS -DLIVES=1 -DSAFETY expect: pass
 * check: -DSTOPS -DLIVES=1 -DSAFETY expect: pass
 * check: -DCANCELS -DSTOPS -DLIVES=2 -DSAFETY expect: pass
 *
 * The submitter does not look for the request once the word is written; or asks for nothing on the canceller's behalf; or does not look whether the runtime stops.
 * check: -DNO_LOOK -DCANCELS -DLIVES=1 -DSAFETY expect: fail
 * check: -DNO_ASK -DCANCELS -DLIVES=1 -DSAFETY expect: fail
 * check: -DNO_STATE -DSTOPS -DLIVES=1 -DSAFETY expect: fail
 * He lets go first, and asks then. Or who takes the packet goes on with the op although the call has not returned.
 * check: -DASK_LATE -DANSWERS -DCANCELS -DLIVES=2 -DSAFETY expect: fail
 * check: -DTAKER_ALONE -DANSWERS -DLIVES=1 -DSAFETY expect: fail
 * The canceller asks the system himself, and leaves no word to the submitter.
 * check: -DNO_WORD -DCANCELS -DLIVES=1 -DSAFETY expect: fail
 */
#define RETURNED 1
#define ARRIVED 2
#define ASKED 4

byte word;          /* weft_file_op.flight_ */
bool requested;     /* the op's state, and BLOCKING_REQUESTED */
bool running = true;
bool under_way;     /* the system has the op */
bool packet;        /* it has said so at the port */
byte life;          /* the op's, from 1 */
bool landed = true; /* in this life */

#define MINE(l) (life == l && !landed)

/* CancelIoEx: the system ends what it has, and finds nothing else. */
inline cancel_io() { atomic { if :: under_way -> under_way = false; packet = true :: else fi } }

inline land(l) { atomic { assert(MINE(l)); landed = true } }

inline set_bit(b, before) { atomic { before = word; word = word | b } }

active proctype submitter() {
    byte seen, me;
    bool asked, wanted;
    do
    :: life < LIVES ->
        landed; /* the next life begins once the last is over */
        atomic { life++; me = life; landed = false; requested = false; asked = false }
        word = 0;
        if
#ifndef NO_LOOK
        :: requested || !running -> land(me) /* by the pool */
#endif
        :: else ->
            under_way = true; /* the call */
            seen = 0;
            do
            ::  assert(MINE(me));
                wanted = true;
#ifndef NO_ASK
                wanted = wanted && !(seen & ASKED);
#endif
#ifndef NO_STATE
                wanted = wanted && running;
#endif
#ifndef ASK_LATE
                if :: !wanted && !asked -> cancel_io(); asked = true :: else fi;
#endif
                atomic { if :: word == seen -> word = word | RETURNED; break :: else -> seen = word fi }
            od;
#ifdef ASK_LATE
            if :: !wanted -> assert(MINE(me) || (seen & ARRIVED)); cancel_io() :: else fi;
#endif
            if :: seen & ARRIVED -> land(me) :: else fi
        fi
    :: else -> break
    od;
    landed
}

#ifdef ANSWERS
active proctype system() {
end:
    do :: atomic { under_way -> under_way = false; packet = true } od
}
#endif

active proctype taker() {
    byte before, me;
end:
    do
    ::  atomic { packet -> packet = false; me = life }
        assert(MINE(me));
        set_bit(ARRIVED, before);
        if
#ifdef TAKER_ALONE
        :: true -> land(me)
#else
        :: before & RETURNED -> land(me)
        :: else
#endif
        fi
    od
}

#ifdef CANCELS
active proctype canceller() {
    byte before;
    life > 0;
    requested = true;
#ifdef NO_WORD
    before = word;
#else
    set_bit(ASKED, before);
#endif
    if :: (before & (RETURNED | ARRIVED)) == RETURNED -> cancel_io() :: else fi
}
#endif

#ifdef STOPS
active proctype stopper() {
    running = false;
    cancel_io() /* all that is under way */
}
#endif
