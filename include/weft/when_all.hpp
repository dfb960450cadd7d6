// SPDX-License-Identifier: MIT
//
// weft/when_all.hpp: several things at once, all of which must be done.
//
//     auto [page, user] = co_await weft::when_all(load_page(), load_user());
//     std::vector<int> sums = co_await weft::when_all(std::move(tasks));
#ifndef WEFT_WHEN_ALL_HPP
#define WEFT_WHEN_ALL_HPP

#include <coroutine>
#include <cstdint>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "concepts.hpp"
#include "detail/join.hpp"
#include "task.hpp"

namespace weft {

namespace detail {

template <class Children>
struct all_results;

template <class... T>
struct all_results<std::tuple<task<T>...>> {
    static constexpr bool is_void = (std::is_void_v<T> && ...);
    using type = std::conditional_t<is_void, void, std::tuple<value_of<T>...>>;

    static type take(std::tuple<task<T>...> &children) { return take(children, std::index_sequence_for<T...>()); }

private:
    // In order, so that of several exceptions the first child's is thrown.
    template <std::size_t... I>
    static type take(std::tuple<task<T>...> &children, std::index_sequence<I...>) {
        if constexpr (is_void) {
            (static_cast<void>(take_value(std::get<I>(children))), ...);
        } else {
            return type{take_value(std::get<I>(children))...};
        }
    }
};

template <class T>
struct all_results<std::vector<task<T>>> {
    using type = std::conditional_t<std::is_void_v<T>, void, std::vector<value_of<T>>>;

    static type take(std::vector<task<T>> &children) {
        if constexpr (std::is_void_v<T>) {
            for (task<T> &child : children) {
                child.handle().promise().slot().take();
            }
        } else {
            type results;
            results.reserve(children.size());
            for (task<T> &child : children) {
                results.push_back(take_value(child));
            }
            return results;
        }
    }
};

// The children that one worker runs one after the other, as it mostly goes, are a chain. It begins with the last child,
// which is resumed at once; whoever ends as the end of the chain takes back the child before it from the worker's queue,
// unless a thief was faster, and resumes it as the new end. So there is one end at a time, wherever it has moved, the chain's
// fields need no atomics, and its children arrive at the join together: with no locked instruction when nothing was stolen.
// A child that is taken back may have run before, elsewhere, and have been queued here as its wait was over: it is as good.
struct chain_completion : completion {
    std::uint32_t before; // children before the end of the chain
    std::uint32_t ended;  // children of the chain that have ended
};

template <class Children>
class [[nodiscard]] all_awaiter : public native_awaiter, private chain_completion {
public:
    explicit all_awaiter(Children &children)
        : chain_completion{{at_chain_end}, static_cast<std::uint32_t>(count(children) - 1), 0}, children_(children), join_(at_end) {
        require_tasks(children);
    }

    [[nodiscard]] bool await_ready() const noexcept { return count(children_) == 0; }

    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        return join_.start(children_, parent, environment_of(parent), *this);
    }

    typename all_results<Children>::type await_resume() { return all_results<Children>::take(children_); }

private:
    static std::coroutine_handle<> at_end(completion *self, promise_base &child) noexcept {
        return static_cast<join_state *>(self)->arrive(child);
    }

    static std::coroutine_handle<> at_chain_end(completion *self, promise_base &child) noexcept {
        auto &all = static_cast<all_awaiter &>(*static_cast<chain_completion *>(self));
        ++all.ended;
        if (all.before != 0) {
            const started_child next = child_at(all.children_, all.before - 1);
            if (take_back(all.join_.home(), next.coroutine)) {
                --all.before;
                next.promise->end_with(all);
                return transfer(next.coroutine);
            }
        }
        return all.join_.arrive(child, all.ended);
    }

    Children &children_;
    join_state join_;
};

} // namespace detail

/// What when_all returns: holds the children until it is awaited, once, as an rvalue.
template <class Children>
class [[nodiscard]] when_all_operation {
public:
    template <class... A>
    explicit when_all_operation(std::in_place_t, A &&...work) : children_(detail::as_task(std::forward<A>(work))...) {}
    explicit when_all_operation(Children &&children) noexcept : children_(std::move(children)) {}
    [[nodiscard]] detail::all_awaiter<Children> operator co_await() && { return detail::all_awaiter<Children>(children_); }

private:
    Children children_;
};

/// Awaits all of its arguments at once, on all workers of the awaiting task's runtime. The result is a tuple in the
/// order of the arguments; std::monostate stands for void, std::reference_wrapper for references; void if all are void.
/// Resumes on the awaiting task's home when the last has ended. If some threw, the exception of the first of them in
/// that order comes out; the others are not cancelled (async_scope does that). Cancel: each child sees the request.
/// Single use.
template <awaitable... A>
[[nodiscard]] auto when_all(A &&...work) {
    using children = std::tuple<decltype(detail::as_task(std::forward<A>(work)))...>;
    return when_all_operation<children>(std::in_place, std::forward<A>(work)...);
}

/// when_all for a range of awaitables, which are moved from. The result is a vector in the order of the range.
template <std::ranges::input_range R>
    requires awaitable<std::ranges::range_value_t<R>>
[[nodiscard]] auto when_all(R &&work) {
    using child = decltype(detail::as_task(std::declval<std::ranges::range_value_t<R>>()));
    if constexpr (std::same_as<std::remove_cvref_t<R>, std::vector<child>> && std::is_rvalue_reference_v<R &&>) {
        return when_all_operation<std::vector<child>>(std::forward<R>(work));
    } else {
        std::vector<child> children;
        for (auto &&element : work) {
            children.push_back(detail::as_task(std::move(element)));
        }
        return when_all_operation<std::vector<child>>(std::move(children));
    }
}

} // namespace weft

#endif
