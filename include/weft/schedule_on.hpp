// SPDX-License-Identifier: MIT
//
// weft/schedule_on.hpp: running work on another scheduler.
//
//     int sum = co_await (add_up(data) | weft::schedule_on(pool.scheduler()));   // back here afterwards
#ifndef WEFT_SCHEDULE_ON_HPP
#define WEFT_SCHEDULE_ON_HPP

#include <utility>

#include "concepts.hpp"
#include "detail/pipe.hpp"
#include "task.hpp"

namespace weft {

namespace detail {

template <class S, class T>
task<T> run_on(S where, task<T> work) {
    co_await where.schedule();
    co_return co_await std::move(work);
}

} // namespace detail

/// Work as a task that goes to a scheduler first and lives there; its awaiter goes on where the awaiter lives. What
/// schedule() throws (runtime_stopped, operation_cancelled) comes out instead of starting the work.
template <scheduler_like S, awaitable A>
[[nodiscard]] auto schedule_on(S where, A &&work) {
    return detail::run_on(std::move(where), detail::as_task(std::forward<A>(work)));
}

/// `work | schedule_on(where)`
template <scheduler_like S>
[[nodiscard]] auto schedule_on(S where) {
    return detail::pipe([where = std::move(where)]<class A>(A &&work) { return schedule_on(where, std::forward<A>(work)); });
}

} // namespace weft

#endif
