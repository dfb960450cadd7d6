// SPDX-License-Identifier: MIT
//
// weft/fork_join.hpp: plain functions in parallel, for work that computes and never waits.
//
//     std::uint64_t fib(int n) {
//         if (n < 2) return n;
//         auto [x, y] = weft::fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
//         return x + y;
//     }
//     weft::parallel_for(0, height, [&](int y) { render_row(y); });
//
// They are called in a task or op, that is on a worker, and use the workers of its runtime; on any other thread they do the same work there, one
// after the other. What waits is for when_all (when_all.hpp); coroutines that compute may use either, and these cost a sixth. The rules of
// weft_fork_join (c/fork.h) hold: a worker that waits for what was stolen runs other work meanwhile, so hold no lock across a call,
// and make none in a cancellation callback.
#ifndef WEFT_FORK_JOIN_HPP
#define WEFT_FORK_JOIN_HPP

#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "c/fork.h"
#include "detail/join.hpp"
#include "detail/promise.hpp"

namespace weft {

namespace detail {

/// A call that may be made elsewhere, with the place of its result. F is the forwarding type of the function.
template <class F>
class forked : public weft_fork {
    using returned = std::invoke_result_t<F>;

public:
    using result = std::conditional_t<std::is_rvalue_reference_v<returned>, std::remove_cvref_t<returned>, returned>;

    explicit forked(std::remove_reference_t<F> &function) noexcept
        : weft_fork{nullptr, [](weft_fork *self) { static_cast<forked *>(self)->run(); }, 0, 0}, function_(function) {}

    void run() noexcept {
        try {
            if constexpr (std::is_void_v<result>) {
                std::invoke(static_cast<F &&>(function_));
            } else {
                slot_.set_value(std::invoke(static_cast<F &&>(function_)));
            }
        } catch (...) {
            slot_.set_exception(std::current_exception());
        }
    }

    [[nodiscard]] value_of<result> take() {
        if constexpr (std::is_void_v<result>) {
            slot_.take();
            return {};
        } else {
            return value_of<result>(slot_.take());
        }
    }

private:
    std::remove_reference_t<F> &function_;
    result_slot<result> slot_;
};

/// What the parts of a parallel_for share.
template <class I, class Body>
struct range_work {
    Body &body;
    I grain;
};

/// A part of a parallel_for: it forks its upper halves, does what is left, and joins them from below.
template <class I, class Body>
class range_fork : public weft_fork {
    using size = std::make_unsigned_t<I>;

public:
    range_fork() noexcept {} // start makes it, and join ends it: of an array of these most are not used
    range_fork(const range_fork &) = delete;
    range_fork &operator=(const range_fork &) = delete;
    ~range_fork() {}

    void start(range_work<I, Body> &work, I first, I last) noexcept {
        call = [](weft_fork *self) { static_cast<range_fork *>(self)->run(); };
        work_ = &work;
        first_ = first;
        last_ = last;
        std::construct_at(&error_);
        weft_fork_start(this);
    }

    /// Waits for it, and returns its exception.
    [[nodiscard]] std::exception_ptr join() noexcept {
        weft_fork_join(this);
        std::exception_ptr error = std::move(error_);
        std::destroy_at(&error_);
        return error;
    }

    /// Does [first, last), which is not empty. Returns the exception of its first part that has failed.
    [[nodiscard]] static std::exception_ptr run(range_work<I, Body> &work, I first, I last) noexcept {
        std::array<range_fork, 8> halves; // of a part 256 times as long as the rest; what is longer goes on in a call
        std::size_t forked = 0;
        size count = size_of(first, last);
        for (; count > static_cast<size>(work.grain) && forked < halves.size(); ++forked) {
            const I middle = static_cast<I>(static_cast<size>(first) + count / 2);
            halves[forked].start(work, middle, last);
            last = middle;
            count /= 2;
        }
        std::exception_ptr error;
        if (count > static_cast<size>(work.grain)) {
            error = run(work, first, last);
        } else {
            try {
                for (I i = first; i != last; ++i) {
                    std::invoke(work.body, i);
                }
            } catch (...) {
                error = std::current_exception();
            }
        }
        while (forked-- > 0) {
            if (std::exception_ptr next = halves[forked].join(); next != nullptr && error == nullptr) {
                error = std::move(next);
            }
        }
        return error;
    }

    [[nodiscard]] static size size_of(I first, I last) noexcept { return static_cast<size>(static_cast<size>(last) - static_cast<size>(first)); }

private:
    void run() noexcept { error_ = run(*work_, first_, last_); }

    range_work<I, Body> *work_;
    I first_, last_;
    union {
        std::exception_ptr error_;
    };
};

} // namespace detail

/// Calls all of its arguments, the first on this thread and the others where there is a worker for them, and returns when all have returned. The
/// result is a tuple in the order of the arguments; std::monostate stands for void, std::reference_wrapper for references; void if all are void. If some
/// threw, the exception of the first of them in that order comes out, when all have ended. Threads: any; on one that is no worker they are called in turn.
template <std::invocable First, std::invocable... Others>
auto fork_join(First &&first, Others &&...others) {
    detail::forked<First &&> own(first);
    std::tuple<detail::forked<Others &&>...> forks(others...);
    constexpr bool nothing = (std::is_void_v<typename detail::forked<First &&>::result> && ... &&
                              std::is_void_v<typename detail::forked<Others &&>::result>);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        (weft_fork_start(&std::get<sizeof...(I) - 1 - I>(forks)), ...); // the first of them last, to be joined first
        own.run();
        (weft_fork_join(&std::get<I>(forks)), ...);
        if constexpr (nothing) {
            static_cast<void>(own.take());
            (static_cast<void>(std::get<I>(forks).take()), ...);
        } else {
            return std::tuple<detail::value_of<typename detail::forked<First &&>::result>,
                              detail::value_of<typename detail::forked<Others &&>::result>...>{own.take(), std::get<I>(forks).take()...};
        }
    }(std::index_sequence_for<Others...>());
}

/// Calls body(i) for every i from first up to, but not including, last. The range is halved until at most grain are left, which one thread then does in
/// order; choose grain so that they take a few microseconds. body is shared by the threads that call it. If calls threw, the exception of the part
/// that comes first comes out, when all parts have ended; a part ends at its first exception. Throws std::invalid_argument when grain is below 1.
template <std::integral I, class Body>
    requires std::invocable<Body &, I>
void parallel_for(I first, std::type_identity_t<I> last, Body &&body, std::type_identity_t<I> grain = 1) {
    if (grain < 1) {
        throw std::invalid_argument("weft: parallel_for wants a grain of 1 or more");
    }
    if (last <= first) {
        return;
    }
    detail::range_work<I, Body> work{body, grain};
    if (std::exception_ptr error = detail::range_fork<I, Body>::run(work, first, last); error != nullptr) {
        std::rethrow_exception(std::move(error));
    }
}

} // namespace weft

#endif
