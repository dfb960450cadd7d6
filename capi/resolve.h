/* SPDX-License-Identifier: MIT
 *
 * resolve.h: what a lookup in Go asks of C.
 */
#ifndef WEFT_RESOLVE_INTERNAL_H
#define WEFT_RESOLVE_INTERNAL_H

#include "lane_internal.h"

/* Whether the op was asked to end. After it was entered in Go's table; see weft_resolve_cancel. */
bool resolve_requested(const weft_resolve_op *op);

/* Writes the result and hands the op back. Go's table has let go of it. */
void resolve_complete(weft_resolve_op *op, int status, const weft_endpoint *found, uint32_t count);

#endif
