/* SPDX-License-Identifier: MIT
 *
 * export.h: the Go functions that C calls, by hand: cgo's own header drags in its whole preamble. Each returns a code of error.h unless it
 * says otherwise, turns a panic into WEFT_EPANIC, and counts one crossing.
 */
#ifndef WEFT_EXPORT_H
#define WEFT_EXPORT_H

#include "weft.h"

#include "weft.h"

/* export_runtime.go */
extern int weftgo_runtime_create(weft_runtime_config *config, uint64_t *id); /* config is complete */
extern int weftgo_runtime_stop(uint64_t id, int wait);
extern int weftgo_runtime_destroy(uint64_t id, int wait);
extern void weftgo_thread_main(uint32_t slot, int32_t index); /* LANE_MONITOR_THREAD or a worker's */

/* export_io.go */
extern int weftgo_descriptor_open(uint64_t runtime, int32_t system, uint32_t kind, uint64_t *handle);
extern int weftgo_descriptor_close(uint64_t runtime, uint64_t descriptor, uint64_t *waited); /* waited[2]: ops to be queued, or 0 */

/* export_resolve.go */
extern int weftgo_resolve(uint64_t runtime, weft_resolve_op *op, const char *host, const char *service, const weft_endpoint *server,
                          int64_t timeout_ns);
extern void weftgo_resolve_cancel(weft_resolve_op *op);

#endif
