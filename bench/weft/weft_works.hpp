// SPDX-License-Identifier: MIT
//
// weft_works.hpp: what the files of weft's benchmark program share. The works are written as a user of the C++ layer would.
#ifndef WEFT_BENCH_WEFT_WORKS_HPP
#define WEFT_BENCH_WEFT_WORKS_HPP

#include <weft.hpp>

#include "bench.hpp"
#include "takeover.hpp"

inline weft::runtime start_runtime(const bench::options &o, takeover replaced = takeover::off) {
    weft::runtime_options options;
    options.workers = static_cast<std::uint32_t>(o.workers);
    if (replaced == takeover::off) options.max_workers = options.workers;
    return weft::runtime(options);
}

extern const std::vector<bench::work> task_works, forkjoin_works, calls_works, handover_works, timer_works, idle_works, echo_works, file_works;

#endif
