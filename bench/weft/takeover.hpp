// SPDX-License-Identifier: MIT
//
// takeover.hpp: whether a worker that an op holds up is replaced. Only in works that are about that: else a work of one worker whose op computes for more than
// 10 ms would have two threads, and its peers one.
#ifndef WEFT_BENCH_TAKEOVER_HPP
#define WEFT_BENCH_TAKEOVER_HPP

enum class takeover { off, on };

#endif
