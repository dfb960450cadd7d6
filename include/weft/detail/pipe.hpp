// SPDX-License-Identifier: MIT
//
// The right side of `work | adaptor(arguments)`.
#ifndef WEFT_DETAIL_PIPE_HPP
#define WEFT_DETAIL_PIPE_HPP

#include <utility>

#include "../concepts.hpp"

namespace weft::detail {

template <class F>
class [[nodiscard]] pipe {
public:
    explicit pipe(F apply) : apply_(std::move(apply)) {}

    template <class A>
        requires awaitable<A>
    [[nodiscard]] friend auto operator|(A &&work, pipe adaptor) {
        return std::move(adaptor.apply_)(std::forward<A>(work));
    }

private:
    F apply_;
};

} // namespace weft::detail

#endif
