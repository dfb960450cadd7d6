// SPDX-License-Identifier: MIT
//
// Starting several children and waiting for all of them: the common part of when_all and when_any. The children are
// tasks in a tuple or a vector that lives in the awaiting frame; only their own frames are allocated. All but the last
// are queued on this worker, where others may steal them, the last is entered by symmetric transfer, and the last to
// finish resumes the parent.
#ifndef WEFT_DETAIL_JOIN_HPP
#define WEFT_DETAIL_JOIN_HPP

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../task.hpp"
#include "delay.hpp"
#include "environment.hpp"
#include "promise.hpp"
#include "resume.hpp"

namespace weft::detail {

/// A result as a member of a tuple, variant, vector or optional.
template <class T>
struct as_value {
    using type = T;
};
template <>
struct as_value<void> {
    using type = std::monostate;
};
template <class T>
struct as_value<T &> {
    using type = std::reference_wrapper<T>;
};
template <class T>
using value_of = typename as_value<T>::type;

/// Takes a finished task's result; throws its exception.
template <class T>
[[nodiscard]] value_of<T> take_value(task<T> &child) {
    if constexpr (std::is_void_v<T>) {
        child.handle().promise().slot().take();
        return {};
    } else {
        return value_of<T>(child.handle().promise().slot().take());
    }
}

template <class... T>
[[nodiscard]] constexpr std::size_t count(const std::tuple<task<T>...> &) noexcept {
    return sizeof...(T);
}

template <class T>
[[nodiscard]] std::size_t count(const std::vector<task<T>> &children) noexcept {
    return children.size();
}

// Inlined by force, because what goes through a closure goes through memory: the children's fields would be written in
// halves and read back whole, which stalls.
template <class... T, class F, std::size_t... I>
[[gnu::always_inline]] inline void for_each(std::tuple<task<T>...> &children, F &f, std::index_sequence<I...>) {
    (f(std::get<I>(children)), ...);
}

template <class... T, class F>
[[gnu::always_inline]] inline void for_each(std::tuple<task<T>...> &children, F f) {
    for_each(children, f, std::index_sequence_for<T...>());
}

template <class T, class F>
[[gnu::always_inline]] inline void for_each(std::vector<task<T>> &children, F f) {
    for (task<T> &child : children) {
        f(child);
    }
}

[[noreturn, gnu::cold]] inline void throw_empty_task() { throw std::logic_error("weft: an empty task was awaited"); }

template <class Children>
[[gnu::always_inline]] inline void require_tasks(Children &children) {
    for_each(children, [](const auto &child) {
        if (!child) [[unlikely]] {
            throw_empty_task();
        }
    });
}

/// The coroutine and the promise of a child.
struct started_child {
    std::coroutine_handle<> coroutine;
    promise_base *promise;
};

template <class... T, std::size_t... I>
[[nodiscard]] started_child child_at(const std::tuple<task<T>...> &children, std::size_t index, std::index_sequence<I...>) noexcept {
    started_child found{};
    static_cast<void>(((I == index &&
                        (found = {std::get<I>(children).handle(), &std::get<I>(children).handle().promise()}, true)) ||
                       ...));
    return found;
}

template <class... T>
[[nodiscard]] started_child child_at(const std::tuple<task<T>...> &children, std::size_t index) noexcept {
    return child_at(children, index, std::index_sequence_for<T...>());
}

template <class T>
[[nodiscard]] started_child child_at(const std::vector<task<T>> &children, std::size_t index) noexcept {
    return {children[index].handle(), &children[index].handle().promise()};
}

class join_state : public completion {
public:
    using at_end_fn = std::coroutine_handle<> (*)(completion *, promise_base &) noexcept;
    explicit join_state(at_end_fn at_end) noexcept : completion{at_end} {}

    /// Starts all children, the last with a completion of its own. Returns the last, to be resumed now. There is at least one.
    template <class Children>
    [[nodiscard]] std::coroutine_handle<> start(Children &children, std::coroutine_handle<> parent, const environment &inherited,
                                                completion &at_last_end) noexcept {
        parent_ = parent;
        home_ = inherited.home;
        const std::size_t total = count(children);
        pending_.store(total, std::memory_order_relaxed); // the queue hands it to whoever takes a child
        std::coroutine_handle<> last;
        std::size_t left = total;
        for_each(children, [this, inherited, &last, &left, &at_last_end](auto &child) {
            if (--left == 0) {
                child.handle().promise().start(at_last_end, inherited);
                last = child.handle();
            } else {
                child.handle().promise().start(*this, inherited);
                resume_here(inherited.home, child.handle());
            }
        });
        WEFT_TEST_DELAY(join_started);
        return transfer(last);
    }

    [[nodiscard]] weft_runtime home() const noexcept { return home_; }

    /// child has finished, and with it those that count for it. Returns what to resume next on this thread.
    [[nodiscard]] std::coroutine_handle<> arrive(promise_base &child, std::size_t arrived = 1) noexcept {
        // The load saves the last one a locked instruction: nobody else is left to change the count. acquire, in both:
        // the last sees what the others wrote, and pairs with the release in their fetch_sub. Weaker, the parent could
        // read results that are not there yet.
        WEFT_TEST_DELAY(join_arrives);
        if (pending_.load(std::memory_order_acquire) != arrived &&
            pending_.fetch_sub(arrived, std::memory_order_acq_rel) != arrived) {
            return std::noop_coroutine();
        }
        WEFT_TEST_DELAY(join_last);
        return child.resume_parent(home_, parent_);
    }

private:
    std::atomic<std::size_t> pending_{0}; // children that have not arrived
    std::coroutine_handle<> parent_;
    weft_runtime home_{0};
};

} // namespace weft::detail

#endif
