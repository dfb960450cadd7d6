/* SPDX-License-Identifier: MIT
 *
 * weft.h: the whole C interface of weft, and the rules that hold for all of it.
 *
 * Handles   weft_runtime and weft_descriptor are numbers with a generation. A stale, null or foreign one gives
 *           WEFT_EBADHANDLE. Ops, timers, sources and registrations are memory of the caller's (op.h has the rules).
 * Errors    0 or a negative code of error.h; functions that can return a positive value say so. No errno, no thread-local
 *           last error. errno, the locale and the floating-point environment of the caller stay as they are.
 * Threads   every function may be called from any thread unless it says otherwise.
 * Time      nanoseconds of the monotonic clock (timer.h).
 * Process   - The library holds one Go runtime, which starts when the library is loaded. It is never unloaded: dlclose has no effect.
 *           - After fork without exec the child gets WEFT_EFORKED. Fork first, load afterwards; or exec.
 *           - Go handles SIGSEGV, SIGBUS, SIGFPE, SIGPIPE and SIGURG, and forwards the first three to a handler that
 *             was there before. weft's threads block all signals but those that a fault raises.
 *           - One Go runtime per process: a second Go library in the same process may disturb the first one to be loaded.
 *           - Code that runs as an op may be interrupted by SIGURG: it retries system calls on EINTR.
 *           - Ops run on worker threads with the stack of weft_runtime_config.stack_bytes.
 */
#ifndef WEFT_H
#define WEFT_H

#include "weft/c/cancel.h"
#include "weft/c/error.h"
#include "weft/c/io.h"
#include "weft/c/op.h"
#include "weft/c/runtime.h"
#include "weft/c/timer.h"
#include "weft/c/version.h"

#endif
