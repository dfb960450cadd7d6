// SPDX-License-Identifier: MIT
//
// Connecting to the first of several addresses that answers (RFC 8305): families alternate, attempts begin 250 ms apart or when
// one has failed, the first that connects wins, and the others are cancelled and waited for.
#ifndef WEFT_DETAIL_HAPPY_EYEBALLS_HPP
#define WEFT_DETAIL_HAPPY_EYEBALLS_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../async_scope.hpp"
#include "../endpoint.hpp"
#include "../error.hpp"
#include "../event.hpp"
#include "../resolve.hpp"
#include "../scheduler.hpp"
#include "../task.hpp"
#include "../this_task.hpp"
#include "../timeout.hpp"

namespace weft::detail {

inline constexpr std::chrono::milliseconds attempt_delay{250}; // RFC 8305, 5

/// Lets the families alternate, beginning with the first one's; otherwise the order stays.
[[nodiscard]] inline std::vector<endpoint> interleave(const std::vector<endpoint> &all) {
    std::vector<endpoint> mixed;
    mixed.reserve(all.size());
    const auto next = [&all](std::size_t from, bool ipv6) {
        while (from < all.size() && all[from].is_ipv6() != ipv6) {
            ++from;
        }
        return from;
    };
    bool ipv6 = !all.empty() && all.front().is_ipv6();
    std::size_t at[2] = {next(0, false), next(0, true)}; // the next of each family
    while (mixed.size() < all.size()) {
        if (at[ipv6 ? 1 : 0] == all.size()) {
            ipv6 = !ipv6;
        }
        std::size_t &taken = at[ipv6 ? 1 : 0];
        mixed.push_back(all[taken]);
        taken = next(taken + 1, ipv6);
        ipv6 = !ipv6;
    }
    return mixed;
}

/// Result: what one attempt came to, as try_connect gives it. Connect: makes the task of an attempt.
template <class Result, class Connect>
class connect_race {
public:
    connect_race(std::vector<endpoint> to, scheduler on, Connect connect)
        : to_(std::move(to)), results_(to_.size()), connect_(connect), scope_(on) {}

    /// Runs the race. The first failure is the result when all fail, WEFT_ECANCELED when the task was cancelled.
    task<Result> run() {
        bool cancelled = false;
        for (std::size_t i = 0; i < to_.size() && winner() < 0 && !cancelled; ++i) {
            try {
                scope_.spawn(attempt(i));
                if (i + 1 < to_.size()) {
                    const bool told = co_await try_timeout(progress_.wait(), attempt_delay);
                    static_cast<void>(told);
                }
            } catch (const error &) { // cancelled, or the runtime stops; those that have begun are waited for
                cancelled = true;
            }
        }
        if (cancelled) {
            scope_.request_cancel();
        }
        co_await scope_.join();
        const cancellation_token token = co_await this_task::token();
        if (winner() >= 0) {
            co_return std::move(results_[static_cast<std::size_t>(winner())]);
        }
        if (cancelled || token.requested() || results_.empty()) {
            Result none;
            none.status = results_.empty() ? WEFT_EINVAL : WEFT_ECANCELED;
            co_return none;
        }
        co_return std::move(results_.front());
    }

private:
    [[nodiscard]] std::ptrdiff_t winner() const noexcept { return winner_.load(std::memory_order_acquire); }

    task<void> attempt(std::size_t index) {
        results_[index] = co_await connect_(to_[index]);
        std::ptrdiff_t nobody = -1;
        // acq_rel: release pairs with the acquire in winner, for the result; join orders everything else.
        if (results_[index].status == WEFT_OK &&
            winner_.compare_exchange_strong(nobody, static_cast<std::ptrdiff_t>(index), std::memory_order_acq_rel)) {
            scope_.request_cancel();
        }
        progress_.set();
    }

    std::vector<endpoint> to_;
    std::vector<Result> results_;
    Connect connect_;
    std::atomic<std::ptrdiff_t> winner_{-1}; // the attempt that connected first; set once
    auto_reset_event progress_;              // an attempt has ended
    async_scope scope_;
};

} // namespace weft::detail

#endif
