/* SPDX-License-Identifier: MIT
 *
 * socket.h: see posix.h.
 */
#include "../posix.h"
