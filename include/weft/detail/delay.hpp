// SPDX-License-Identifier: MIT
//
// WEFT_TEST_DELAY(point) stands where a thread that loses its CPU could meet another one: between await_ready and
// await_suspend, between a publication and the return. It expands to nothing but in the builds of weft's own tests
// (WEFT_TEST_DELAYS), which wait there for a random time, now and then: tests/delay.c. capi/delay.h is its twin.
#ifndef WEFT_DETAIL_DELAY_HPP
#define WEFT_DETAIL_DELAY_HPP

#if defined(WEFT_TEST_DELAYS)
extern "C" void weft_test_delay(const char *point) noexcept;
#define WEFT_TEST_DELAY(point) weft_test_delay(#point)
#else
#define WEFT_TEST_DELAY(point) static_cast<void>(0)
#endif

#endif
