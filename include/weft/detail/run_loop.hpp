// SPDX-License-Identifier: MIT
//
// The home of tasks that a thread outside every runtime waits for (sync_wait): ops come in from any thread and run on
// that one. A home is a weft_runtime; a loop is told apart by the top bit, which no handle of a runtime has.
#ifndef WEFT_DETAIL_RUN_LOOP_HPP
#define WEFT_DETAIL_RUN_LOOP_HPP

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "../c/op.h"
#include "delay.hpp"
#include "inline_lane.hpp"
#include "tsan.hpp"

namespace weft::detail {

class run_loop {
public:
    run_loop() noexcept = default;
    run_loop(const run_loop &) = delete;
    run_loop &operator=(const run_loop &) = delete;

    /// This loop as a home.
    [[nodiscard]] weft_runtime home() const noexcept {
        return weft_runtime{(reinterpret_cast<std::uintptr_t>(this) >> 1U) | loop_bit};
    }

    /// The loop that a home names, or nullptr.
    [[nodiscard]] static run_loop *of(weft_runtime home) noexcept {
        return (home.id & loop_bit) == 0 ? nullptr : reinterpret_cast<run_loop *>(static_cast<std::uintptr_t>(home.id << 1U));
    }

    /// Hands over an op, from any thread. The op is the loop's until it runs. Notified under the lock: the loop may be
    /// gone as soon as it is released.
    void push(weft_op &op) noexcept {
        op.next_ = nullptr;
        WEFT_TEST_DELAY(run_loop_push);
        const std::lock_guard lock(mutex_);
        *tail_ = &op;
        tail_ = &op.next_;
        changed_.notify_one();
    }

    /// Lets run return once everything that is queued has run. From any thread.
    void finish() noexcept {
        WEFT_TEST_DELAY(run_loop_finish);
        const std::lock_guard lock(mutex_);
        finished_ = true;
        changed_.notify_one();
    }

    /// Runs ops on the calling thread until finish. The caller holds an inline_session, whose list this loop empties
    /// down to mark.
    void run(std::size_t mark) noexcept {
        for (;;) {
            inline_lane_drain(mark);
            weft_op *op = nullptr;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [this] { return head_ != nullptr || finished_; });
                if (head_ == nullptr) {
                    return;
                }
                op = head_;
                head_ = op->next_;
                if (head_ == nullptr) {
                    tail_ = &head_;
                }
            }
            WEFT_TEST_DELAY(run_loop_taken);
            op->run(op);
        }
    }

private:
    static constexpr std::uint64_t loop_bit = std::uint64_t{1} << 63U;

    std::mutex mutex_;
    std::condition_variable changed_;
    weft_op *head_ = nullptr; // guarded by mutex_
    weft_op **tail_ = &head_; // guarded by mutex_
    bool finished_ = false;   // guarded by mutex_
};

} // namespace weft::detail

#endif
