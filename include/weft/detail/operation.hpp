// SPDX-License-Identifier: MIT
//
// What functions like sleep_for return: the arguments of an awaiter that does not exist yet. Awaiters are pinned: they
// contain an op, and others point at them. An operation can be passed on, stored, and given to when_any; awaiting it,
// as an rvalue, makes the awaiter in the frame of the coroutine.
#ifndef WEFT_DETAIL_OPERATION_HPP
#define WEFT_DETAIL_OPERATION_HPP

#include <tuple>
#include <utility>

namespace weft::detail {

template <class Awaiter, class... Arguments>
class [[nodiscard]] operation {
public:
    explicit operation(Arguments... arguments) noexcept : arguments_(arguments...) {}

    [[nodiscard]] Awaiter operator co_await() && noexcept {
        return std::apply([](Arguments &...argument) { return Awaiter(argument...); }, arguments_);
    }

private:
    std::tuple<Arguments...> arguments_;
};

} // namespace weft::detail

#endif
