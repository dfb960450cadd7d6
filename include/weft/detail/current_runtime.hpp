// SPDX-License-Identifier: MIT
//
// The runtime of the calling worker, for the functions that are not told one.
#ifndef WEFT_DETAIL_CURRENT_RUNTIME_HPP
#define WEFT_DETAIL_CURRENT_RUNTIME_HPP

#include "../c/runtime.h"
#include "../error.hpp"

namespace weft::detail {

[[nodiscard]] inline weft_runtime current_runtime(const char *doing)
{
    const weft_runtime current = weft_runtime_current();
    if (current.id == 0) {
        throw error(WEFT_ENOTWORKER, doing);
    }
    return current;
}

} // namespace weft::detail

#endif
