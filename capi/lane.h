/* SPDX-License-Identifier: MIT
 *
 * lane.h: the memory that C and Go both touch, as C sees it. The definition is core/shared.go; layout_test.go compares
 * every offset. Nothing here is installed.
 *
 * All words are fixed-width. A word marked atomic is atomic on both sides; one marked "turn" is touched only inside the
 * worker's queue section (lane_enter ... lane_leave, or a thief that holds the queue), one marked "lock" under the wheel's lock.
 */
#ifndef WEFT_LANE_H
#define WEFT_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft.h"

enum {
    LANE_WORKERS_MAX = 256,
    LANE_RUNTIMES_MAX = 64,
    LANE_WHEEL_LEVELS = 9,  /* 2^14 ns * 64^9 covers every int64 */
    LANE_WHEEL_SLOTS = 64,
    LANE_WHEEL_TICK_SHIFT = 14,
    LANE_CHUNK_DESCRIPTORS = 1024,
    LANE_CHUNKS_MAX = 1024,
};

/* lane_runtime.state */
enum { LANE_FREE = 0, LANE_RUNNING = 1, LANE_STOPPING = 2, LANE_STOPPED = 3 };

/* lane_worker.park */
enum { LANE_AWAKE = 0, LANE_ANNOUNCED = 1, LANE_PARKED = 2, LANE_PARKED_IN_POLLER = 3, LANE_NOTIFIED = 4 };

/* lane_worker.life: core/shared.go tells who goes where */
enum { LANE_ABSENT = 0, LANE_STARTING = 1, LANE_RUNS = 2, LANE_ASKED = 3, LANE_CACHED = 4, LANE_DISMISSED = 5, LANE_LEAVING = 6 };

/* lane_runtime.monitor */
enum { LANE_MONITOR_AWAKE = 0, LANE_MONITOR_ASLEEP = 1, LANE_MONITOR_ENDS = 2 };

/* lane_runtime.inject when nothing more is accepted */
#define LANE_INJECT_CLOSED UINT64_C(1)

/* Why the lane goes back to Go. */
enum {
    LANE_TIMERS = 1,  /* a timer is due somewhere */
    LANE_POLL = 2,    /* nobody has polled for a while: every worker is held up, or cannot do it without Go */
    LANE_STOP = 3,    /* the runtime is stopping, and nothing is left here */
    LANE_RETIRE = 4,  /* the monitor has asked this worker to leave */
    LANE_REPLACE = 5, /* to the monitor: a worker is held up, and another is to take its place */
};

/* One timer wheel: Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987. Ticks of 2^14 ns, levels of 64 slots. */
typedef struct lane_wheel {
    _Atomic uint32_t lock;     /* 0 free, 1 held; any thread */
    uint32_t closed;           /* lock: 1 once the runtime stops */
    _Atomic int64_t earliest;  /* ns at which someone must advance this wheel; INT64_MAX: never. Written under lock, read by all */
    int64_t elapsed;           /* lock: ticks that have been advanced over */
    uint64_t pending;          /* lock: timers linked */
    uint64_t started;          /* lock: statistics */
    uint64_t fired;            /* lock */
    uint64_t cancelled;        /* lock */
    uint64_t occupied[LANE_WHEEL_LEVELS]; /* lock: bit per slot */
    uint64_t never;            /* lock: first timer without a deadline */
    uint64_t slots[LANE_WHEEL_LEVELS * LANE_WHEEL_SLOTS];  /* lock: first timer of each slot */
    int64_t minimum[LANE_WHEEL_LEVELS * LANE_WHEEL_SLOTS]; /* lock: lower bound of deadlines in the slot, in ticks */
} lane_wheel;

typedef struct lane_runtime lane_runtime;

/* A growing ring of runnables. Old ones are taken at head, new ones put in, and by a stack's owner taken, at tail. */
typedef struct lane_ring {
    _Atomic int64_t head; /* turn (peeked at by others) */
    _Atomic int64_t tail; /* turn (peeked at) */
    uint64_t words;       /* turn: address of mask + 1 words */
    int64_t mask;         /* turn */
} lane_ring;

typedef struct lane_worker {
    /* Owner's lines. */
    _Alignas(128) _Atomic uint32_t turn; /* atomic: 1 while the owner is inside its queue section */
    uint32_t index;                      /* immutable */
    _Atomic uint64_t ticks;              /* atomic: ops begun; owner writes, monitor and statistics read */
    _Atomic uint64_t next;               /* turn (peeked at): the newest runnable, or 0 */
    lane_ring deque;                     /* turn: a stack to its owner, a queue to thieves */
    lane_ring injected;                  /* turn: first in, first out: taken from the injection stack */
    lane_ring yielded;                   /* turn: first in, first out: behind everything */
    uint64_t runtime;                    /* immutable: address of the lane_runtime */
    uint64_t runtime_id;                 /* immutable: its handle */
    _Atomic uint64_t accepts;            /* atomic: runtime_id while new ops are accepted, else 0; written by stop */
    uint64_t turn_at;                    /* owner: ticks of the op that is chosen by lane_turn and not from the newest end */
    _Atomic uint64_t running;            /* atomic: function of the op that runs, 0 outside of one; owner writes, the monitor reads */
    /* Owner's, used now and then. */
    uint64_t io_streak_tick; /* owner: ticks of the op that io_streak counts for */
    uint32_t io_streak;                  /* owner: I/O ops completed at once in that op */
    uint32_t check_interval;             /* owner: ops between two looks at the clock, adapted */
    int64_t checked_at;                  /* owner: ns of that look */
    int64_t spin_ns;                     /* owner: how long to look for work before parking, adapted */
    uint64_t wake_after;                 /* owner: ticks before which a push wakes nobody, so that futile wakes stay rare */
    int64_t leave_at;                    /* owner: ns before which a worker that was asked to leave, and could not, does not try again */
    /* Statistics: owner writes, all read. */
    _Atomic uint64_t crossings;
    _Atomic uint64_t steals;
    _Atomic uint64_t ops_stolen;
    _Atomic uint64_t parks;
    _Atomic uint64_t wakes; /* system calls that this worker made to wake others */
    _Atomic uint64_t injected_count;
    _Atomic uint64_t io_started;
    _Atomic uint64_t io_events;
    _Atomic uint64_t io_immediate;
    /* Thieves' line. */
    _Alignas(128) _Atomic uint32_t thief; /* atomic: 1 while somebody else holds, or wants to hold, the queue */
    _Atomic uint64_t stalled;             /* atomic: ticks at which the monitor found the worker stalled; its last op may be taken */
    /* Wakers' line. */
    _Alignas(128) _Atomic uint32_t park; /* atomic: LANE_AWAKE ...; the futex word */
    _Atomic uint32_t life;               /* atomic: LANE_ABSENT ...; the futex word of a cached worker */
    _Atomic uint32_t thread;             /* atomic: the system's number of the thread */
    uint32_t reserved;
    _Atomic int64_t replaces_since;   /* atomic: ns at which the stall was seen that this worker was started for; 0: none */
    _Atomic uint64_t recoveries;      /* statistics: times that it began to run for a held-up one, */
    _Atomic int64_t recovery_total;   /* ns from replaces_since until then, all together, */
    _Atomic int64_t recovery_longest; /* and the longest */
    _Alignas(128) lane_wheel wheel;
} lane_worker;

/* lane_descriptor.slot words: two flags and an owner. The owner is one of
 *   0            free
 *   4            an op is in its system call (trying)
 *   io           an op waits (armed)
 *   io | 4       an op was taken by an event and is queued to try again */
#define LANE_SLOT_READY UINT64_C(1)
#define LANE_SLOT_CLOSED UINT64_C(2)
#define LANE_SLOT_HELD UINT64_C(4)
#define LANE_SLOT_OWNER (~UINT64_C(3))

enum { LANE_RECEIVE = 0, LANE_SEND = 1 };

/* lane_descriptor.hints */
enum { LANE_HINT_RECEIVE_DRAINED = 1, LANE_HINT_HANGUP = 4 };

typedef struct lane_descriptor {
    _Alignas(128) _Atomic uint64_t slot[2]; /* atomic: see above; LANE_RECEIVE, LANE_SEND */
    _Atomic uint32_t generation;            /* atomic: odd while open */
    _Atomic int32_t system;                 /* atomic: file descriptor; -1 when closed */
    _Atomic uint32_t hints;                 /* atomic: what the last calls and events told; only an optimisation, but for HANGUP */
    uint32_t index;                         /* immutable */
    uint64_t runtime;                       /* immutable: address of the lane_runtime */
    _Atomic uint64_t next_free;             /* atomic: link of lane_runtime.released */
    uint64_t id;                            /* written at open, before the handle is given out */
} lane_descriptor;

struct lane_runtime {
    _Alignas(128) _Atomic uint64_t id; /* atomic: handle; 0 when free */
    _Atomic uint32_t state;            /* atomic: LANE_FREE ... */
    uint32_t worker_count;             /* immutable while it runs: the base, workers that are always there */
    uint64_t workers;                  /* immutable while it runs: address of lane_worker[worker_max] */
    uint32_t asymmetric;               /* immutable: 1 when thieves have a process-wide barrier */
    uint32_t cpus;                     /* immutable: CPUs that this process may use */
    int32_t port;                      /* immutable: the epoll descriptor, or the completion port */
    int32_t event;                     /* immutable: what ends a wait there: the eventfd in it, or the timer */
    uint32_t worker_max;               /* immutable: places for workers */
    _Atomic uint32_t active;           /* atomic: places that may hold anything; all beyond are empty. The monitor writes */
    _Atomic uint32_t begun;            /* atomic: places that have ever been used. The monitor writes */
    /* Producers' line. */
    _Alignas(128) _Atomic uint64_t inject; /* atomic: newest injected op, linked by next_; or LANE_INJECT_CLOSED */
    _Atomic uint64_t pending; /* atomic: ops that threads of weft's which are no workers will hand back, and 1 until stop has cancelled; 0 is final */
    /* Sleepers' line. */
    _Alignas(128) _Atomic uint64_t idle[LANE_WORKERS_MAX / 64]; /* atomic: bit per announced or parked worker */
    _Atomic uint32_t waking;       /* atomic: 1 while a woken worker has not yet looked for work */
    _Atomic uint32_t spinning;     /* atomic: workers that look for work before they park */
    _Atomic uint32_t keeper;       /* atomic: 1 + index of the sleeper who minds timers and poller; 0: nobody */
    _Atomic uint32_t descriptors;  /* atomic: open descriptors */
    _Atomic int64_t sleep_until;   /* atomic: when the keeper will wake by itself; INT64_MIN: there is none */
    _Atomic int64_t polled_at;     /* atomic: ns of the last poll by anybody */
    _Atomic uint64_t released;     /* atomic: closed descriptors whose last op has let go, linked by next_free */
    _Atomic uint32_t wakers;       /* atomic: threads that are about to wake a worker; never reset */
    _Atomic uint32_t drained;      /* atomic: 1 once a stopping runtime can get no more work; the futex word of its workers */
    /* Monitor's line. */
    _Alignas(128) _Atomic uint32_t monitor; /* atomic: LANE_MONITOR_AWAKE ...; the futex word */
    uint32_t reserved;
    _Atomic int64_t replace_since;   /* monitor: ns at which the stall was seen that asks for a replacement */
    _Atomic int64_t refused_at;      /* monitor: ns at which a thread was last refused; 0: never */
    _Atomic uint64_t stalls;         /* monitor writes, statistics; so the next four */
    _Atomic int64_t stalled_longest;
    _Atomic uint64_t replacements;
    _Atomic uint64_t refused;
    _Atomic uint64_t dismissed;      /* suspicions that came to nothing: the worker had only lost its CPU */
    /* Statistics of threads that are no workers. */
    _Alignas(128) _Atomic uint64_t crossings;
    _Atomic uint64_t wakes;
    _Atomic uint64_t io_started;
    _Atomic uint64_t io_events;
    _Atomic uint64_t io_immediate;
    /* Descriptor table: chunks are never moved and never freed; the next runtime in this place uses them. */
    _Alignas(128) _Atomic uint64_t chunks[LANE_CHUNKS_MAX];
};

#endif
