/* SPDX-License-Identifier: MIT
 *
 * inet.h: see posix.h.
 */
#include "../posix.h"
