// SPDX-License-Identifier: MIT
//
// weft/when_any.hpp: several things at once, of which the first one to end counts.
//
//     auto winner = co_await weft::when_any(from_cache(), from_network());   // {index, variant}
#ifndef WEFT_WHEN_ANY_HPP
#define WEFT_WHEN_ANY_HPP

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <ranges>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "concepts.hpp"
#include "detail/delay.hpp"
#include "detail/join.hpp"
#include "detail/linked_source.hpp"
#include "task.hpp"

namespace weft {

/// Which one of several was first, and what it gave.
template <class T>
struct indexed {
    std::size_t index;
    T value;
};

namespace detail {

template <class Children>
struct any_result;

template <class... T>
struct any_result<std::tuple<task<T>...>> {
    static constexpr bool is_void = (std::is_void_v<T> && ...);
    using value = std::variant<value_of<T>...>;
    using type = std::conditional_t<is_void, std::size_t, indexed<value>>;

    static type take(std::tuple<task<T>...> &children, std::size_t winner) {
        return take(children, winner, std::index_sequence_for<T...>());
    }

private:
    template <std::size_t... I>
    static type take(std::tuple<task<T>...> &children, std::size_t winner, std::index_sequence<I...>) {
        using take_fn = type (*)(std::tuple<task<T>...> &);
        static constexpr take_fn take_one[] = {[](std::tuple<task<T>...> &all) -> type {
            if constexpr (is_void) {
                static_cast<void>(take_value(std::get<I>(all)));
                return I;
            } else {
                return type{I, value(std::in_place_index<I>, take_value(std::get<I>(all)))};
            }
        }...};
        return take_one[winner](children);
    }
};

template <class T>
struct any_result<std::vector<task<T>>> {
    using type = std::conditional_t<std::is_void_v<T>, std::size_t, indexed<value_of<T>>>;

    static type take(std::vector<task<T>> &children, std::size_t winner) {
        if constexpr (std::is_void_v<T>) {
            children[winner].handle().promise().slot().take();
            return winner;
        } else {
            return type{winner, take_value(children[winner])};
        }
    }
};

template <class Children>
class [[nodiscard]] any_awaiter : public native_awaiter {
public:
    explicit any_awaiter(Children &children) : children_(children), state_(*this) { require_tasks(children); }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        environment inherited = environment_of(parent);
        source_.attach(inherited.token);
        inherited.token = source_.token();
        return state_.start(children_, parent, inherited, state_);
    }

    typename any_result<Children>::type await_resume() {
        source_.detach();
        const promise_base *winner = winner_.load(std::memory_order_relaxed); // the join has handed it over
        std::size_t index = 0;
        std::size_t found = 0;
        for_each(children_, [&](auto &child) {
            if (&child.handle().promise() == winner) {
                found = index;
            }
            ++index;
        });
        return any_result<Children>::take(children_, found);
    }

private:
    struct state : join_state {
        explicit state(any_awaiter &owner) noexcept : join_state(at_end), awaiter(owner) {}
        any_awaiter &awaiter;
    };

    static std::coroutine_handle<> at_end(completion *self, promise_base &child) noexcept {
        auto &ended = *static_cast<state *>(self);
        // relaxed: only one child gets it, and what the parent reads is ordered by the join. The join also keeps
        // everything here until this child has arrived, so the source is safe while it is being requested.
        promise_base *nobody = nullptr;
        if (ended.awaiter.winner_.compare_exchange_strong(nobody, &child, std::memory_order_relaxed)) {
            WEFT_TEST_DELAY(when_any_won);
            ended.awaiter.source_.request();
        }
        return ended.arrive(child);
    }

    Children &children_;
    linked_source source_;
    std::atomic<promise_base *> winner_{nullptr}; // set once, by the first child to end
    state state_;
};

} // namespace detail

/// What when_any returns: holds the children until it is awaited, once, as an rvalue.
template <class Children>
class [[nodiscard]] when_any_operation {
public:
    explicit when_any_operation(Children &&children) noexcept : children_(std::move(children)) {}
    [[nodiscard]] detail::any_awaiter<Children> operator co_await() && { return detail::any_awaiter<Children>(children_); }

private:
    Children children_;
};

/// Awaits its arguments at once. The first to end wins; the others are cancelled *and* waited for before this returns,
/// so what they refer to may end afterwards; their results and exceptions are dropped. The result is an
/// indexed<variant> with std::monostate for void and std::reference_wrapper for references; the index alone if all are
/// void. If the winner threw, its exception comes out. Resumes on the awaiting task's home. Cancel: each child sees the
/// request. Single use.
template <awaitable... A>
    requires(sizeof...(A) > 0)
[[nodiscard]] auto when_any(A &&...work) {
    return when_any_operation(std::tuple(detail::as_task(std::forward<A>(work))...));
}

/// when_any for a range of awaitables, which are moved from. The result is indexed<T>, or the index alone for void.
/// Throws std::invalid_argument if the range is empty.
template <std::ranges::input_range R>
    requires awaitable<std::ranges::range_value_t<R>>
[[nodiscard]] auto when_any(R &&work) {
    using child = decltype(detail::as_task(std::declval<std::ranges::range_value_t<R>>()));
    std::vector<child> children;
    for (auto &&element : work) {
        children.push_back(detail::as_task(std::move(element)));
    }
    if (children.empty()) {
        throw std::invalid_argument("weft: when_any of nothing would never end");
    }
    return when_any_operation<std::vector<child>>(std::move(children));
}

} // namespace weft

#endif
