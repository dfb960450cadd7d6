/* SPDX-License-Identifier: MIT
 *
 * The smallest C user: runs one op on a runtime, and sees that header and library are of one version.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <weft.h>

static atomic_int ran;

static void run(weft_op *op) { *(int *)op->context = atomic_fetch_add(&ran, 1) + 42; }

int main(void) {
    int answer = 0;
    weft_runtime runtime = {0};
    weft_op op = {run, &answer, NULL, 0};
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
    if (strcmp(version, weft_version_text()) != 0 || weft_version_number() != WEFT_VERSION_NUMBER) return 2;
    if (weft_runtime_create(NULL, &runtime) != WEFT_OK) return 3;
    if (weft_schedule(runtime, &op) != WEFT_OK) return 4;
    if (weft_runtime_destroy(runtime) != WEFT_OK) return 5; /* an accepted op runs before the runtime ends */
    printf("C, weft %s: %d\n", version, answer);
    return answer == 42 ? 0 : 6;
}
