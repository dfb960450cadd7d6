/* SPDX-License-Identifier: MIT
 *
 * file.h: what the table of open files offers the rest of the library.
 */
#ifndef WEFT_FILE_INTERNAL_H
#define WEFT_FILE_INTERNAL_H

#include "lane.h"

/* A runtime begins to stop: what waits in the system is asked to end. Before blocking_close. */
void file_stop(uint32_t slot);

/* Adds what weft_stats tells of files. */
void file_read_stats(uint32_t slot, weft_stats *stats);

/* Closes all files of a runtime whose threads have ended; their handles are stale. */
void file_close_all(uint32_t slot);

#endif
