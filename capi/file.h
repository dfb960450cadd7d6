/* SPDX-License-Identifier: MIT
 *
 * file.h: what the table of open files offers the rest of the library.
 */
#ifndef WEFT_FILE_INTERNAL_H
#define WEFT_FILE_INTERNAL_H

#include "lane.h"

/* Closes all files of a runtime whose threads have ended; their handles are stale. */
void file_close_all(uint32_t slot);

#endif
