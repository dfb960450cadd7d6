// SPDX-License-Identifier: MIT
//
// A lock for a handful of instructions, in one byte. Whoever finds it held spins a little, and then gives way to other
// threads, for its holder may not have a CPU.
#ifndef WEFT_DETAIL_SHORT_LOCK_HPP
#define WEFT_DETAIL_SHORT_LOCK_HPP

#include <atomic>
#include <thread>

namespace weft::detail {

class short_lock {
public:
    constexpr short_lock() noexcept = default;
    short_lock(const short_lock &) = delete;
    short_lock &operator=(const short_lock &) = delete;

    // acquire pairs with the release in unlock: what was done under the lock is visible to the next holder.
    void lock() noexcept {
        while (locked_.exchange(true, std::memory_order_acquire)) {
            wait();
        }
    }

    void unlock() noexcept { locked_.store(false, std::memory_order_release); }

private:
    [[gnu::noinline, gnu::cold]] void wait() const noexcept {
        for (int looks = 0; locked_.load(std::memory_order_relaxed); ++looks) {
            if (looks >= 64) { // longer than a holder needs that has a CPU
                std::this_thread::yield();
            }
        }
    }

    std::atomic<bool> locked_{false};
};

} // namespace weft::detail

#endif
