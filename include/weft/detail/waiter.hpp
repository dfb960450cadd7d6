// SPDX-License-Identifier: MIT
//
// Waiting in line: what events, mutexes and channels have in common. A waiter lives in its awaiter; a wait_list is a FIFO of them
// under a lock that is held for a few instructions. Who ends a wait is decided by the waiter's state:
//   idle       not in line. The token's callback may take it to cancelled, and then it never gets in line
//   waiting    in line. The owner of the list takes it to released, the callback to cancelled, by a compare-exchange
//   released   out of line; whoever released it resumes the coroutine
//   cancelled  the callback takes it out of line, if it is in it, and resumes the coroutine
// A released waiter's callback does not look at the list any more, so the owner may go as soon as it has released; a
// cancelled one's does, so the list's destructor waits until such waiters have left.
#ifndef WEFT_DETAIL_WAITER_HPP
#define WEFT_DETAIL_WAITER_HPP

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <thread>

#include "../c/cancel.h"
#include "../c/op.h"
#include "../error.hpp"
#include "die.hpp"
#include "environment.hpp"
#include "resume.hpp"
#include "token_watch.hpp"

namespace weft::detail {

class wait_list;

/// Awaits that are ready without waiting go through the queue once in so many, so that a loop over them cannot keep a
/// worker from everything else, and notices that it is cancelled.
inline constexpr std::uint32_t ready_budget = 128;
constinit inline thread_local std::uint32_t ready_in_a_row = 0;

/// True if an await that is ready may go on at once.
[[nodiscard]] inline bool spend_ready() noexcept
{
    if (++ready_in_a_row < ready_budget) {
        return true;
    }
    ready_in_a_row = 0;
    return false;
}

class waiter {
public:
    waiter() noexcept = default;
    waiter(const waiter &) = delete;
    waiter &operator=(const waiter &) = delete;

    /// Resumes the coroutine of a waiter that was released. It may be gone afterwards.
    void resume() noexcept { resume_via(home_, coroutine_, op_); }

protected:
    ~waiter() = default;

    /// For await_resume: ends the wait; throws if it was cancelled.
    void end(const char *doing)
    {
        watch_.end();
        if (state_.load(std::memory_order_relaxed) == cancelled) {
            throw operation_cancelled(doing);
        }
    }

private:
    friend class wait_list;
    enum : std::uint32_t { idle, waiting, released, cancelled };

    /// Leaves idle, or the line. acq_rel: what the one who moves the state wrote before is there for the one who
    /// sees it moved; on failure acquire, for the same reason.
    bool move(std::uint32_t from, std::uint32_t to) noexcept
    {
        if (!watch_.active()) {
            state_.store(to, std::memory_order_relaxed); // no callback: only the owner of the list changes it, under the lock
            return true;
        }
        return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_acquire);
    }

    static inline void request(void *self) noexcept;

    waiter *next_ = nullptr;     // guarded by the list's lock; after release, the releaser's
    waiter *previous_ = nullptr; // guarded by the list's lock
    wait_list *list_ = nullptr;  // immutable once idle is left
    std::coroutine_handle<> coroutine_;
    weft_runtime home_{0};
    std::atomic<std::uint32_t> state_{idle}; // see the head of this file
    token_watch watch_;
    weft_op op_; // set by resume
};

class wait_list {
public:
    wait_list() noexcept = default;
    wait_list(const wait_list &) = delete;
    wait_list &operator=(const wait_list &) = delete;

    /// what: the owner, for the message if somebody still waits.
    void destroy(const char *what) noexcept
    {
        for (;;) {
            lock();
            bool empty = true;
            for (const waiter *w = first_; w != nullptr; w = w->next_) {
                if (w->state_.load(std::memory_order_relaxed) == waiter::waiting) {
                    die(what);
                }
                empty = false;
            }
            unlock();
            if (empty) {
                return;
            }
            std::this_thread::yield(); // for a callback on its way to leave()
        }
    }

    // Held for a few instructions. acquire pairs with the release in unlock: it guards the list and what its owner puts
    // under it.
    void lock() noexcept
    {
        while (locked_.exchange(true, std::memory_order_acquire)) {
            for (int spins = 0; locked_.load(std::memory_order_relaxed); ++spins) {
                if (spins >= 64) {
                    std::this_thread::yield();
                }
            }
        }
    }

    void unlock() noexcept { locked_.store(false, std::memory_order_release); }

    /// Suspends a coroutine in line, unless what it waits for is there. ready and take are called under the lock: take
    /// only if ready said yes, and if no cancellation came first, so that what it takes is never lost. Returns what
    /// await_suspend returns: after true the waiter may be gone. spent: the coroutine must go through the queue even if
    /// it need not wait.
    template <class Promise, class Ready, class Take>
    [[nodiscard]] bool enter(waiter &w, std::coroutine_handle<Promise> coroutine, bool spent, Ready ready, Take take) noexcept
    {
        const environment here = environment_of(coroutine);
        w.list_ = this;
        w.coroutine_ = coroutine;
        w.home_ = here.home;
        w.watch_.begin(here.token, waiter::request, &w);
        lock();
        const bool is_ready = ready();
        if (!w.move(waiter::idle, is_ready ? waiter::released : waiter::waiting)) {
            unlock();
            return false;
        }
        if (is_ready) {
            take();
            unlock();
            return spent && schedule_via(here.home, coroutine, w.op_, true) == WEFT_OK;
        }
        w.previous_ = last_;
        (last_ == nullptr ? first_ : last_->next_) = &w;
        last_ = &w;
        unlock();
        return true;
    }

    /// Under the lock: takes the first waiter out of line that was not cancelled; nullptr if there is none. It is the caller's
    /// to resume, after unlock.
    [[nodiscard]] waiter *pop() noexcept
    {
        for (waiter *w = first_; w != nullptr; w = w->next_) {
            if (w->move(waiter::waiting, waiter::released)) {
                unlink(*w);
                w->next_ = nullptr;
                return w;
            }
        }
        return nullptr;
    }

    /// Under the lock: takes all out of line that pop would give, as a list for resume_all.
    [[nodiscard]] waiter *pop_all() noexcept
    {
        waiter *all = nullptr;
        waiter **end = &all;
        while (waiter *w = pop()) {
            *end = w;
            end = &w->next_;
        }
        return all;
    }

    /// Resumes a list of pop_all, without the lock, so that they begin in order: a worker's own deque runs the newest first.
    static void resume_all(waiter *first) noexcept
    {
        if (first == nullptr || first->next_ == nullptr) {
            if (first != nullptr) {
                first->resume();
            }
            return;
        }
        const weft_runtime here = weft_runtime_current();
        waiter *local = nullptr;
        while (first != nullptr) {
            waiter *next = first->next_;
            if (here.id != 0 && first->home_.id == here.id) {
                first->next_ = local;
                local = first;
            } else {
                first->resume();
            }
            first = next;
        }
        while (local != nullptr) {
            waiter *next = local->next_;
            local->resume();
            local = next;
        }
    }

private:
    friend class waiter;

    void unlink(waiter &w) noexcept
    {
        (w.previous_ == nullptr ? first_ : w.previous_->next_) = w.next_;
        (w.next_ == nullptr ? last_ : w.next_->previous_) = w.previous_;
    }

    std::atomic<bool> locked_{false};
    waiter *first_ = nullptr; // guarded by the lock
    waiter *last_ = nullptr;  // guarded by the lock
};

inline void waiter::request(void *self) noexcept
{
    auto &w = *static_cast<waiter *>(self);
    // acq_rel and acquire as in move, with which it competes.
    std::uint32_t from = w.state_.load(std::memory_order_acquire);
    do {
        if (from != idle && from != waiting) {
            return;
        }
    } while (!w.state_.compare_exchange_weak(from, cancelled, std::memory_order_acq_rel, std::memory_order_acquire));
    if (from == waiting) {
        wait_list &list = *w.list_;
        list.lock();
        list.unlink(w);
        list.unlock(); // the list's owner may go from here on
        w.resume();
    }
}

} // namespace weft::detail

#endif
