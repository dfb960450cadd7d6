/* SPDX-License-Identifier: MIT
 *
 * in.h: see posix.h.
 */
#include "../posix.h"
