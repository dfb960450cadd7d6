/* SPDX-License-Identifier: MIT
 *
 * ends.h: what ends.c adds to cancel_host.h.
 */
#ifndef WEFT_ENDS_H
#define WEFT_ENDS_H

#include <stddef.h>

#include "weft/c/cancel.h"

enum { ENDS_LAYOUT = 12 };

void ends_callback(void *context);
int ends_register(weft_cancel_token token, weft_cancel_registration *registration, uintptr_t callback, uintptr_t context);
extern const size_t ends_layout[ENDS_LAYOUT];

#endif
