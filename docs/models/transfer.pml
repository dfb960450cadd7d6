/* SPDX-License-Identifier: MIT */
/* check: expect: pass */
/* check: -DSTOP -DNOCLOSE expect: pass */
/* check: -DPOLLERS=2 -DNOCLOSE expect: pass */
/* check: -DNOCLOSE -DMUTANT_COMPLETE_AT_CANCEL expect: fail */
/* check: -DNOCLOSE -DMUTANT_NUDGE expect: fail */
/* check: -DNOCLOSE -DMUTANT_ASK_WITHOUT_WAITING expect: fail */
/* check: -DSTOP -DNOCLOSE -DMUTANT_STOP_WITHOUT_WAITING expect: fail */
/* check: -DNOCLOSE -DMUTANT_NO_LOOK expect: fail */
/* check: -DNOCLOSE -DMUTANT_ARM_BLIND expect: fail */
/* check: -DNOCLOSE -DMUTANT_LAND_LATE expect: fail */
/* check: -DNOCLOSE -DMUTANT_LATE_CANCEL_ENDS expect: fail */
/* check: -DMUTANT_CLOSE_COMPLETES expect: fail */
/* check: -DMUTANT_CLOSED_ARM_ENDS expect: fail */
/* check: -DMUTANT_CLOSED_ARM_UNASKED expect: fail */
/* check: -DMUTANT_NOBODY_POLLS expect: fail */
/* check: -DSTOP -DNOCLOSE -DMUTANT_STOP_UNCHECKED expect: fail */
/*
 * transfer.pml: one direction of a descriptor where the system reports completion, and the receives that use it one after the other, against the
 * system, cancel, close and stop. op.pml has the same slot where the system reports readiness.
 *
 * Code:  core/transfer.go, core/io.go, core/descriptor.go; capi/transfer.h, capi/io.c, capi/slot.h, capi/poll_windows.c (the same in C).
 * Words: owner/who/ready/closed are lane_descriptor.slot; state is weft_io.state_; lent and landed are weft_io.system_; parties is next_free while the
 *        descriptor closes; descriptors is lane_runtime.descriptors. Each atomic block below is one atomic instruction in the code.
 *
 * Properties
 *  1. an op completes at most once, and never while the system has its memory;
 *  2. nothing is lost: when all stand still, every started op has completed, or its transfer is under way and nobody wants its end;
 *  3. nobody asks for the end of an op, and it ends all the same: only when somebody has;
 *  4. a runtime ends after the last packet.
 *
 * The second op may stand in the memory of the first, whose late canceller then hits it: so he asks for the end of either. A close does not
 * end transfers by itself: a duplicate may keep the thing behind the descriptor open.
 */
#ifndef POLLERS
#define POLLERS 1
#endif
#define OPS 2

/* Owner of the slot. ARMED and QUEUED go with who. */
#define FREE 0
#define HELD 1
#define ARMED 2
#define QUEUED 3

/* weft_io.state_ */
#define IDLE 0
#define STARTED 1
#define CANCELLING 2
#define COMPLETED 3
#define CANCELLED_EARLY 4

/* A transfer, and what its packet says. */
#define NONE 0
#define PENDING 1
#define SUCCESS 2
#define ABORTED 3

byte owner = FREE, who;
bit ready, closed;
byte parties;
byte descriptors = 1;

byte state[OPS];
byte done[OPS];
byte result[OPS];
bit lent[OPS];
bit landed[OPS];
byte transfer[OPS];
bit stopping, ended, working; /* working: the worker does not rest */
bit asked[OPS]; /* somebody has asked for the end */

chan packets = [4] of { byte };
chan queue = [4] of { byte };
chan results = [4] of { byte };

/* Run is called. From here on the op is its caller's. */
inline complete(op, what) {
	atomic {
		assert(done[op] == 0);
		assert(!lent[op]);
		assert(what == SUCCESS || asked[op] || closed || stopping);
		done[op]++;
		result[op] = what;
		state[op] = COMPLETED;
		results!op;
	}
}

inline let_go() {
	atomic {
		parties++;
		if
		:: parties == 3 ->
			assert(owner == FREE);
#ifndef MUTANT_NOBODY_POLLS
			descriptors--;
#endif
		:: else fi
	}
}

inline let_go_if(so) {
	if
	:: so -> let_go();
	:: else fi
}

inline release() {
	atomic { owner = FREE; seen = closed; }
	let_go_if(seen)
}

/* CancelIoEx: of a transfer that has ended nothing is found. */
inline interrupt(op) {
	atomic {
		if
		:: transfer[op] == PENDING -> transfer[op] = ABORTED; packets!op;
		:: else fi
	}
}

/* io_settle: from a held slot to a result or to a wait. */
inline settle(op) {
	do
	::
		if
		:: !lent[op] ->
			/* The call. What succeeds at once posts no packet. */
			if
			:: what = SUCCESS; release(); complete(op, what); break
			:: atomic { lent[op] = 1; landed[op] = 0; transfer[op] = PENDING; }
			fi
		:: else ->
			/* Collected. */
			assert(landed[op]);
			atomic { lent[op] = 0; what = transfer[op]; transfer[op] = NONE; }
			if
#ifndef MUTANT_LATE_CANCEL_ENDS
			:: what == ABORTED && state[op] != CANCELLING && !stopping && !closed -> goto again /* begun again */
#endif
			:: else -> release(); complete(op, what); break
			fi
		fi;
		/* io_unwanted */
#ifndef MUTANT_NO_LOOK
		if
		:: state[op] == CANCELLING || stopping -> interrupt(op)
		:: else fi;
#endif
		/* slot_arm */
		atomic {
			if
			:: closed -> outcome = 2;
#ifndef MUTANT_ARM_BLIND
			:: !closed && ready -> ready = 0; outcome = 1;
			:: !closed && !ready -> owner = ARMED; who = op; outcome = 0;
#else
			:: !closed -> ready = 0; owner = ARMED; who = op; outcome = 0;
#endif
			fi
		}
		if
		:: outcome == 2 ->
#ifdef MUTANT_CLOSED_ARM_ENDS
			release(); complete(op, ABORTED); break;
#endif
#ifndef MUTANT_CLOSED_ARM_UNASKED
			interrupt(op);
#endif
			/* slot_arm_closed */
			atomic {
				if
				:: ready -> ready = 0; outcome = 1;
				:: !ready -> owner = ARMED; who = op; outcome = 0;
				fi
			}
		:: else fi;
		if
		:: outcome == 0 -> break
		:: else fi;
again:		skip
	od
}

proctype starter() {
	byte i, got, what, outcome;
	bit seen, refused;
	for (i : 0 .. OPS - 1) {
		atomic {
			refused = 0;
			if
			:: state[i] == IDLE -> state[i] = STARTED;
			:: state[i] == CANCELLED_EARLY -> refused = 1;
			fi
		}
		if
		:: refused -> complete(i, ABORTED);
		:: else ->
			/* slot_claim */
			atomic {
				(owner == FREE || closed);
				if
				:: closed -> refused = 1;
				:: else -> owner = HELD; ready = 0;
				fi
			}
			if
			:: refused -> state[i] = IDLE; goto end_refused
			:: else fi;
#ifndef MUTANT_STOP_UNCHECKED
			if
			:: stopping -> atomic { owner = FREE; seen = closed; } let_go_if(seen); state[i] = IDLE; goto end_refused
			:: else fi;
#endif
			settle(i);
		fi;
end_wait:
		results?got;
		assert(got == i);
	}
end_refused:
	skip
}

proctype worker() {
	byte op, what, outcome;
	bit seen;
end:	do
	:: atomic { !ended && nempty(queue) -> queue?op; working = 1 }
		assert(done[op] == 0);
		/* slot_reclaim */
		atomic { assert(owner == QUEUED && who == op); owner = HELD; ready = 0; seen = closed; }
		if
		:: seen ->
			assert(landed[op]);
			atomic { lent[op] = 0; transfer[op] = NONE; }
			release();
			complete(op, ABORTED)
		:: else -> settle(op)
		fi;
		working = 0
	od
}

/* The system ends a transfer, or never does. */
proctype system_() {
	byte i;
end:	do
	:: atomic { transfer[0] == PENDING -> assert(lent[0]); transfer[0] = SUCCESS; packets!0 }
	:: atomic { transfer[1] == PENDING -> assert(lent[1]); transfer[1] = SUCCESS; packets!1 }
	:: break
	od
}

/* lane_poll, as long as there is something to poll for. */
proctype poller() {
	byte op;
end:	do
	:: atomic { descriptors > 0 && !ended && nempty(packets) -> packets?op }
#ifndef MUTANT_LAND_LATE
		landed[op] = 1;
#endif
		/* slot_ready */
		atomic {
			if
			:: owner == ARMED -> assert(done[who] == 0); owner = QUEUED; queue!who;
			:: else -> ready = 1;
			fi
		}
#ifdef MUTANT_LAND_LATE
		landed[op] = 1;
#endif
	od
}

/* weft_io_cancel of the first op. */
proctype canceller() {
	bit hit, late;
	atomic {
		asked[0] = 1;
		if
		:: state[0] == IDLE -> state[0] = CANCELLED_EARLY; late = 1;
		:: state[0] == STARTED -> state[0] = CANCELLING;
		:: else -> late = 1;
		fi
	}
	if
	:: late -> skip
	:: else ->
#ifdef MUTANT_COMPLETE_AT_CANCEL
		atomic {
			hit = (owner == ARMED && who == 0);
			if
			:: hit -> owner = FREE;
			:: else fi
		}
		if
		:: hit -> complete(0, ABORTED)
		:: else fi
#else
#ifdef MUTANT_NUDGE
		/* As where the system reports readiness: an op that is not armed yet is made to look again. */
		atomic {
			hit = (owner == ARMED);
			if
			:: !hit -> ready = 1;
			:: else fi
		}
#else
#ifndef MUTANT_ASK_WITHOUT_WAITING
		(owner != HELD || state[0] != CANCELLING);
#endif
		hit = (owner == ARMED);
#endif
		/* Which may have ended, and the next op stand in its place. */
		if
		:: hit ->
			interrupt(0);
			if
			:: done[0] -> interrupt(1)
			:: skip
			fi
		:: else fi
#endif
	fi
}

/* DescriptorTable.Close. */
proctype closer() {
	byte was, op;
	atomic { closed = 1; was = owner; op = who; }
#ifdef MUTANT_NOBODY_POLLS
	descriptors--;
#endif
	let_go(); /* the other direction, which nobody uses here */
	if
	:: was == FREE -> let_go();
	:: was == ARMED ->
#ifdef MUTANT_CLOSE_COMPLETES
		owner = FREE; let_go(); complete(op, ABORTED);
#else
		interrupt(op)
#endif
	:: else fi;
	(owner != HELD);
	let_go()
}

/* Runtime.Stop and drained. */
proctype stopper() {
	bit hit;
	asked[0] = 1; asked[1] = 1;
	stopping = 1;
#ifndef MUTANT_STOP_WITHOUT_WAITING
	(owner != HELD);
#endif
	hit = (owner == ARMED);
	if
	:: hit -> interrupt(0); interrupt(1);
	:: else fi;
	/* busy is false, and the queue empty. */
	atomic { (owner == FREE && !working && empty(queue)) -> ended = 1; }
}

/* When nothing can move any more. */
proctype judge() {
	timeout;
	byte i;
	for (i : 0 .. OPS - 1) {
		if
		:: state[i] == STARTED || state[i] == CANCELLING ->
			assert(done[i] == 0);
			assert(owner == ARMED && who == i && transfer[i] == PENDING);
			assert(state[i] == STARTED && !closed && !stopping);
		:: state[i] == COMPLETED -> assert(done[i] == 1);
		:: else -> assert(done[i] == 0);
		fi
	}
	assert(!closed || (parties == 3 && descriptors == 0));
	assert(!stopping || ended);
	assert(owner != QUEUED && owner != HELD);
}

init {
	atomic {
		run starter();
		run worker();
		run system_();
		run poller();
#if POLLERS > 1
		run poller();
#endif
		if :: run canceller() :: skip fi;
#ifndef NOCLOSE
		if :: run closer() :: skip fi;
#endif
#ifdef STOP
		run stopper();
#endif
		run judge();
	}
}
