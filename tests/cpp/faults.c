/* SPDX-License-Identifier: MIT
 *
 * faults.c: what faults.h replaces, for the program of the C++ tests, where stress_strike lets it strike.
 */
#include "../c/faults.h"

void stress_strike(int one_in, uint64_t seed);

void stress_strike(int one_in, uint64_t seed) { faults_unseen(one_in, seed); }
