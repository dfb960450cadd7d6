/* SPDX-License-Identifier: MIT
 *
 * export.h: the Go functions that C calls, by hand: cgo's own header drags in its whole preamble. Each returns a code of error.h unless it
 * says otherwise, turns a panic into WEFT_EPANIC, and counts one crossing.
 */
#ifndef WEFT_EXPORT_H
#define WEFT_EXPORT_H

#include <stdint.h>

/* export_runtime.go */
extern int weftgo_runtime_create(uint32_t workers, uint64_t stack_bytes, char *name, uint64_t *id);
extern int weftgo_runtime_stop(uint64_t id, int wait);
extern int weftgo_runtime_destroy(uint64_t id, int wait);
extern void weftgo_thread_main(uint32_t slot, uint32_t index);

#endif
