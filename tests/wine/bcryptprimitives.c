/* SPDX-License-Identifier: MIT
 *
 * bcryptprimitives.c: for tests only, never shipped. Go's runtime takes its first random numbers from
 * bcryptprimitives.dll!ProcessPrng, which Windows has had since 7, and Wine only since 9. scripts/wine builds this in its stead.
 */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T length) {
    while (length != 0) {
        ULONG piece = length < MAXLONG ? (ULONG)length : MAXLONG;
        if (!RtlGenRandom(data, piece)) return FALSE;
        data += piece;
        length -= piece;
    }
    return TRUE;
}
