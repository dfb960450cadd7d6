/* SPDX-License-Identifier: MIT
 *
 * delay.h: WEFT_TEST_DELAY(point) stands where a thread that loses its CPU could meet another one: between a publication and
 * what follows it, between an announcement and the sleep. It expands to nothing but in test builds (-DWEFT_TEST_DELAYS, the
 * preset asan), where tests/delay.c waits there for a random time, now and then. errno is kept. include/weft/detail/delay.hpp
 * is its twin.
 */
#ifndef WEFT_DELAY_H
#define WEFT_DELAY_H

#if defined(WEFT_TEST_DELAYS)
/* Weak: the program brings it, if it is one that wants delays. */
extern __attribute__((weak)) void weft_test_delay(const char *point);
#define WEFT_TEST_DELAY(point) (weft_test_delay != NULL ? weft_test_delay(#point) : (void)0)
#else
#define WEFT_TEST_DELAY(point) ((void)0)
#endif

#endif
