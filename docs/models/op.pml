/* SPDX-License-Identifier: MIT */
/* check: expect: pass */
/* check: -DSTALE -DNOCLOSE expect: pass */
/* check: -DSTALE -DOPS=1 expect: pass */
/* check: -DSTOP -DNOCLOSE expect: pass */
/* check: -DPOLLERS=2 -DNOCLOSE expect: pass */
/* check: -DSENDS expect: pass */
/* check: -DNOCLOSE -DMUTANT_ARM_BLIND expect: fail */
/* check: -DNOCLOSE -DMUTANT_CLEAR_LATE expect: fail */
/* check: -DNOCLOSE -DMUTANT_NO_NUDGE expect: fail */
/* check: -DNOCLOSE -DMUTANT_NO_LOOK expect: fail */
/* check: -DNOCLOSE -DMUTANT_LOOK_LATE expect: fail */
/* check: -DNOCLOSE -DMUTANT_CANCEL_BLIND expect: fail */
/* check: -DMUTANT_CANCEL_LOAD expect: fail */
/* check: -DNOCLOSE -DMUTANT_PUBLISH_LATE expect: fail */
/* check: -DNOCLOSE -DMUTANT_HANGUP_LATE expect: fail */
/* check: -DNOCLOSE -DMUTANT_DRAINED_ALWAYS expect: fail */
/* check: -DMUTANT_CLOSE_NO_WAIT expect: fail */
/* check: -DMUTANT_RETRY_UNCLAIMED expect: fail */
/* check: -DMUTANT_RECYCLE_EARLY expect: fail */
/* check: -DNOCLOSE -DMUTANT_RESTART_CANCELLED expect: fail */
/* check: -DSTALE -DNOCLOSE -DMUTANT_STALE_DROPS_READY expect: fail */
/* check: -DSTOP -DNOCLOSE -DNOCANCEL -DMUTANT_NO_NUDGE expect: fail */
/*
 * op.pml: one direction of a descriptor, and the receives that use it one after the other, against everything that may
 * come in between: data and a hangup that the kernel reports as edges, cancel, close, stop, and a start through a stale handle.
 *
 * Code:  capi/slot.h, capi/io.c; core/slot.go, core/io.go (the same in Go); core/descriptor.go (close, stop).
 * Words: owner/who/ready/closed are lane_descriptor.slot; state is weft_io.state_, published says that descriptor_ is there; drained and hangup are hints;
 *        parties is next_free while the descriptor closes. Each atomic block below is one atomic instruction in the code.
 *
 * Properties
 *  1. an op completes at most once, and not before it was started;
 *  2. nothing is lost: when all stand still, every started op has completed, or nobody has any news for it;
 *  3. an op is not touched by others once it has completed;
 *  4. no system call is made on a descriptor that is closed already;
 *  5. a closed record is given back exactly once, after the last who used it.
 *
 * The kernel's queue holds at most two bytes; two receives are started. A receive asks for one byte or for two. With SENDS the direction is
 * one in which every op makes its call, and a free slot is told nothing: a "byte" is room in the send buffer.
 */
#ifndef POLLERS
#define POLLERS 1
#endif
#ifndef OPS
#define OPS 2
#endif

/* Owner of the slot. ARMED and QUEUED go with who. */
#define FREE 0
#define TRYING 1
#define ARMED 2
#define QUEUED 3

/* weft_io.state_ */
#define IDLE 0
#define STARTED 1
#define CANCELLING 2
#define COMPLETED 3
#define CANCELLED_EARLY 4

byte owner = FREE, who;
bit ready, closed;
bit drained, hangup;
byte parties;
byte recycled;

byte state[OPS];
bit published[OPS];
byte done[OPS];  /* completions */

/* The kernel's side. */
byte data;
bit peer_gone, edge, edge_hup;
bit open = 1;
bit generation_current = 1; /* lane_descriptor.generation still is the handle's */
bit stopping;

chan queue = [4] of { byte };    /* retry ops on their way to a worker */
chan results = [4] of { byte };  /* ops whose run is called */

/* Completion: the result is there, run is called. From here on the op is its caller's. */
inline complete(op) {
	atomic {
		assert(done[op] == 0);
		done[op]++;
		published[op] = 0;
		state[op] = COMPLETED;
		results!op;
	}
}

/* slot_let_go: the third party to leave pushes the record on lane_runtime.released. */
inline let_go() {
	atomic {
		parties++;
		if
		:: parties == 3 -> recycled++; assert(recycled == 1 && owner == FREE && !open);
		:: else fi
	}
}

inline let_go_if(so) {
	if
	:: so -> let_go();
	:: else fi
}

inline complete_if(so, which) {
	if
	:: so -> complete(which);
	:: else fi
}

/* slot_release: the owner leaves; flags stay. */
inline release(seen_closed) {
	atomic { owner = FREE; seen_closed = closed; }
	let_go_if(seen_closed);
}

/* One system call: got = bytes; 0 is end of stream; eagain. It learns whether the stream is drained, before it lets go of the slot. */
inline try(op) {
	atomic {
		assert(open);
		eagain = 0; eof = 0; short_read = 0;
		if
		:: data == 2 -> data = 1;                    /* asked for one */
		:: data == 2 -> data = 0;                    /* asked for two and got them: nothing is known */
		:: data == 1 -> data = 0;                    /* asked for one */
		:: data == 1 -> data = 0; short_read = 1;    /* asked for two */
		:: data == 0 && peer_gone -> eof = 1;
		:: data == 0 && !peer_gone -> eagain = 1;
		fi
	}
	if
	:: !eagain && (short_read || eof) -> drained = 1;
	:: !eagain && !short_read && !eof ->
#ifdef MUTANT_DRAINED_ALWAYS
		drained = 1;
#else
		drained = 0;
#endif
	:: else fi
}

/* slot_disarm: takes an armed op out, for close. */
inline disarm(op, won) {
	atomic {
		won = (owner == ARMED && who == op);
		seen = closed;
		if
		:: won -> owner = FREE;
		:: else fi
	}
	let_go_if(won && seen)
}

/* slot_withdraw: takes an armed op out, or nudges whoever holds the slot by a false readiness: who is about to arm fails then, and
 * looks at the state again. That way the armer need not look after it has armed, when the op may be gone. */
inline withdraw(op, won) {
	atomic {
		won = (owner == ARMED && who == op);
		seen = closed;
		if
		:: won -> owner = FREE;
#ifndef MUTANT_NO_NUDGE
		:: !won && owner != ARMED -> ready = 1;
#endif
		:: else fi
	}
	let_go_if(won && seen)
}

/* io_settle: from a held slot to a result or to a wait. */
inline settle(op, untried) {
	do
	:: 
		if
		:: untried -> untried = 0; eagain = 1;
		:: else -> try(op);
		fi;
		if
		:: !eagain ->
			release(seen);
			complete(op);
			break;
		:: else fi;
#ifdef MUTANT_CLEAR_LATE
		ready = 0;
#endif
		/* io_unwanted */
#ifndef MUTANT_NO_LOOK
		if
		:: state[op] == CANCELLING || stopping ->
			release(seen);
			complete(op);
			break;
		:: else fi;
#endif
#ifdef MUTANT_PUBLISH_LATE /* a store behind the claim, seen by others at the next locked instruction */
		published[op] = 1;
#endif
		/* slot_arm. From here on the op may be anybody's; only who takes it out may touch it. */
		atomic {
			if
			:: closed -> outcome = 2;
#ifndef MUTANT_ARM_BLIND
			:: !closed && ready -> ready = 0; outcome = 1;
#endif
			:: else -> owner = ARMED; who = op; outcome = 0;
			fi
		}
		if
		:: outcome == 2 ->
			release(seen);
			complete(op);
			break;
		:: outcome == 1 -> skip   /* news since: try again */
		:: outcome == 0 ->
#ifdef MUTANT_LOOK_LATE
			/* Looks at the op once more. */
			assert(done[op] == 0);
#endif
			break
		fi
	od
}

/* Starts the receives, each when the one before has completed. */
proctype starter() {
	byte i, got;
	bit untried, eagain, eof, short_read, seen, was_ready, claimed;
	byte outcome;
	for (i : 0 .. OPS - 1) {
		/* io_begin: the state. */
		atomic {
			claimed = 0;
			if
			:: state[i] == IDLE -> state[i] = STARTED;
			:: state[i] == CANCELLED_EARLY -> claimed = 1;
			fi
		}
		if
		:: claimed -> complete(i);
		:: else ->
#ifndef MUTANT_PUBLISH_LATE
			published[i] = 1;
#endif
			/* slot_claim. A start through a stale handle may hold the slot for a moment. */
			atomic {
				(owner == FREE || closed);
				if
				:: closed -> claimed = 0;
				:: else -> claimed = 1; owner = TRYING; was_ready = ready;
#ifndef MUTANT_CLEAR_LATE
					ready = 0;
#endif
				fi
			}
			if
			:: !claimed -> published[i] = 0; state[i] = IDLE; goto end_refused;
			:: claimed && !generation_current -> 
				atomic { owner = FREE; ready = 1; seen = closed; }
				let_go_if(seen);
				published[i] = 0; state[i] = IDLE; goto end_refused;
			:: claimed && generation_current
			fi;
#ifdef SENDS
			untried = 0;
#else
			untried = (!was_ready && drained && !hangup); /* io_vain */
#endif
			settle(i, untried);
		fi;
end_wait:
		results?got;
		assert(got == i);
	}
end_refused:
	skip
}

#ifdef MUTANT_RESTART_CANCELLED
/* What a second start of an op would do that is under way and asked to end, if one value of the state meant both "asked
 * before the start" and "asked while under way". */
proctype restarter() {
	if :: state[0] == CANCELLING -> complete(0) :: skip fi
}
#endif

/* weft_io.system_'s op, run by a worker. */
proctype worker() {
	byte op;
	bit untried, eagain, eof, short_read, seen;
	byte outcome;
end:	do
	:: queue?op ->
		assert(done[op] == 0);
#ifdef MUTANT_RETRY_UNCLAIMED
		atomic { ready = 0; seen = closed; }
#else
		atomic { assert(owner == QUEUED && who == op); owner = TRYING; ready = 0; seen = closed; }
#endif
		if
		:: seen -> 
			release(seen);
			complete(op);
		:: else ->
			untried = 0;
			settle(op, untried);
		fi
	od
}

/* lane_poll, and core's Apply: an edge becomes a flag, or makes the armed op run. */
proctype poller() {
	bit hup;
end:	do
	:: atomic { edge -> edge = 0; hup = edge_hup; }
#ifndef MUTANT_HANGUP_LATE
		if
		:: hup -> hangup = 1;
		:: else fi;
#endif
		/* slot_ready */
		atomic {
			if
			:: owner == ARMED ->
				assert(done[who] == 0);
				owner = QUEUED;
				queue!who;
#ifdef SENDS
			:: owner == FREE -> skip /* who starts now, tries later */
			:: owner != FREE && owner != ARMED -> ready = 1;
#else
			:: owner != ARMED -> ready = 1;
#endif
			fi
		}
#ifdef MUTANT_HANGUP_LATE
		if
		:: hup -> hangup = 1;
		:: else fi;
#endif
	od
}

/* weft_io_cancel of the first op. */
proctype canceller() {
	bit won, seen, late;
	atomic {
		late = 0;
		if
		:: state[0] == IDLE -> state[0] = CANCELLED_EARLY; late = 1;
#ifndef MUTANT_CANCEL_LOAD
		:: state[0] == STARTED -> state[0] = CANCELLING;
#else
		:: state[0] == STARTED -> skip
#endif
		:: else -> late = 1;
		fi
	}
#ifdef MUTANT_CANCEL_LOAD
	if /* The request as a load and a store. */
	:: !late -> state[0] = CANCELLING;
	:: else fi;
#endif
	if
	:: !late && published[0] ->
#ifdef MUTANT_CANCEL_BLIND
		/* Takes the op out without asking whether somebody else has. */
		won = (owner == ARMED && who == 0);
		if
		:: won -> owner = FREE;
		:: else fi;
#else
		withdraw(0, won);
#endif
		complete_if(won, 0)
	:: else fi /* not published: who starts it looks at the state later */
}

/* DescriptorTable.Close. */
proctype closer() {
	bit won, seen;
	byte was, op;
	generation_current = 0;
	atomic { closed = 1; was = owner; op = who; }
	let_go(); /* the other direction, which nobody uses here */
	if
	:: was == FREE -> let_go();
	:: was == ARMED ->
		disarm(op, won);
		complete_if(won, op)
	:: else fi;
#ifndef MUTANT_CLOSE_NO_WAIT
	(owner != TRYING);
#endif
	open = 0;
#ifdef MUTANT_RECYCLE_EARLY
	parties = 2;
#endif
	let_go();
}

#ifdef STALE
/* A start through a handle whose descriptor was closed, and whose record is in use again: it finds out after its claim. */
proctype stale() {
	bit claimed, seen;
	atomic {
		claimed = (owner == FREE && !closed);
		if
		:: claimed -> owner = TRYING; ready = 0;
		:: else fi
	}
	if
	:: claimed ->
		atomic {
			owner = FREE;
#ifndef MUTANT_STALE_DROPS_READY
			ready = 1;
#endif
			seen = closed;
		}
		let_go_if(seen)
	:: else fi
}
#endif

#ifdef STOP
/* DescriptorTable.CancelAll. */
proctype stopper() {
	bit won, seen;
	byte op;
	stopping = 1;
	/* Whichever op there is. */
	atomic { op = who; withdraw(op, won); }
	complete_if(won, op)
}
#endif

/* The peer: up to two bytes and its end, at any time or never. A change of the socket and the edge are one step, under the
 * kernel's lock. */
proctype peer() {
	byte sent;
	do
	:: atomic { sent < 2 -> sent++; data++; edge = 1; }
	:: atomic { peer_gone = 1; edge = 1; edge_hup = 1; break; }
	:: break
	od
}

/* When nothing can move any more. */
proctype judge() {
	timeout;
	byte i;
	for (i : 0 .. OPS - 1) {
		/* An op that is under way waits for something, and there is none of it. */
		if
		:: state[i] == STARTED || state[i] == CANCELLING ->
			assert(done[i] == 0);
			assert(owner == ARMED && who == i);
			assert(data == 0 && !peer_gone && !closed && !stopping && state[i] == STARTED);
		:: state[i] == COMPLETED -> assert(done[i] == 1);
		:: else -> assert(done[i] == 0);
		fi
	}
	assert(open || recycled == 1);
	assert(owner != QUEUED && owner != TRYING);
}

init {
	atomic {
		run starter();
		run worker();
		run poller();
#if POLLERS > 1
		run poller();
#endif
#ifndef NOCANCEL
		if :: run canceller() :: skip fi;
#endif
#ifndef NOCLOSE
		if :: run closer() :: skip fi;
#endif
#ifdef STALE
		run stale();
#endif
#ifdef STOP
		run stopper();
#endif
#ifdef MUTANT_RESTART_CANCELLED
		run restarter();
#endif
		run peer();
		run judge();
	}
}
