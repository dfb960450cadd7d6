/* SPDX-License-Identifier: MIT
 *
 * weft.h: the whole C interface of weft, and the rules that hold for all of it.
 *
 * Handles   weft_runtime, weft_descriptor and weft_file are numbers with a generation. A stale, null or foreign one gives
 *           WEFT_EBADHANDLE. Ops, timers, sources and registrations are memory of the caller's (op.h has the rules).
 * Errors    0 or a negative code of error.h; functions that can return a positive value say so. No errno, no thread-local
 *           last error. errno, the locale and the floating-point environment of the caller stay as they are.
 * Memory    what a call needs it asks for, and says WEFT_ENOMEM. Queues grow by themselves: when there is no memory for that, which no call
 *           could report, the program ends with a message.
 * Threads   every function may be called from any thread unless it says otherwise.
 * Time      nanoseconds of the monotonic clock (timer.h).
 * Process   - The library holds one Go runtime, which starts when the library is loaded. It is never unloaded: dlclose has no effect.
 *           - After fork without exec the child gets WEFT_EFORKED. Fork first, load afterwards; or exec.
 *           - Signals stay the host's: weft's threads and Go's block all but those that a fault raises. A thread of the host's keeps its mask,
 *             but has its signals held back while it is in Go: it creates, stops (not while it waits) or destroys a runtime, opens
 *             or closes a descriptor, or accepts a connection.
 *           - Go handles SIGSEGV, SIGBUS, SIGFPE, SIGPIPE and SIGURG. Faults that C or C++ code has raised are forwarded to the handler that was
 *             there when the library was loaded; without one the program dies of them as usual. A handler that is installed
 *             later gets them all. One for SA_ONSTACK runs, on threads that have called weft and have set no stack, on one of 32 KiB.
 *           - One Go runtime per process: a second Go library in the same process may disturb the first one to be loaded.
 *           - Ops, and blocking calls, run on threads with the stack of weft_runtime_config.stack_bytes. Ops begin with the default floating-point
 *             environment, and find errno and that environment as the op before them on that thread has left them.
 */
#ifndef WEFT_H
#define WEFT_H

#include "weft/c/blocking.h"
#include "weft/c/cancel.h"
#include "weft/c/error.h"
#include "weft/c/file.h"
#include "weft/c/fork.h"
#include "weft/c/io.h"
#include "weft/c/op.h"
#include "weft/c/resolve.h"
#include "weft/c/runtime.h"
#include "weft/c/stall.h"
#include "weft/c/timer.h"
#include "weft/c/version.h"

#endif
