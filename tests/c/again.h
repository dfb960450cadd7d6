/* SPDX-License-Identifier: MIT
 *
 * again.h: this program once more, as a process of its own from the first instruction on.
 */
#ifndef WEFT_TESTS_C_AGAIN_H
#define WEFT_TESTS_C_AGAIN_H

#include <stdlib.h>
#include <unistd.h>

/* Becomes this program, run from its beginning with up to two arguments; the second may be NULL. Does not return. WEFT_TEST_EMULATOR names what
 * runs it when the system cannot. */
static inline void exec_again(const char *first, const char *second)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        self[length] = 0;
        const char *emulator = getenv("WEFT_TEST_EMULATOR");
        if (emulator != NULL)
            execl(emulator, emulator, self, first, second, (char *)NULL);
        else
            execl(self, self, first, second, (char *)NULL);
    }
    _exit(120);
}

#endif
