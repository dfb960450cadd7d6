// SPDX-License-Identifier: MIT
//
// Waiting in line: what events, mutexes and channels have in common. A waiter lives in its awaiter; a wait_list is a
// FIFO of them under its owner's lock. Who ends a wait is decided by the waiter's state, which is moved by
// compare-exchange:
//   idle       not in line. The callback of the token may move it to cancelled, and then it never gets in line
//   entering   its coroutine holds the lock and tries to get at once what it waits for; a callback only moves it to
//   requested  which the coroutine finds before it would get in line
//   waiting    in line. The owner of the line moves it to released, the callback to cancelled
//   released   out of line; whoever released it resumes the coroutine
//   cancelled  the callback takes it out of line, if it is in it, and resumes the coroutine
// A released waiter's callback does not look at the line any more, so the line may go as soon as it has released; a
// cancelled one's does, so the line's destructor waits until such waiters have left.
#ifndef WEFT_DETAIL_WAITER_HPP
#define WEFT_DETAIL_WAITER_HPP

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <thread>

#include "../c/cancel.h"
#include "../c/op.h"
#include "../error.hpp"
#include "delay.hpp"
#include "die.hpp"
#include "environment.hpp"
#include "resume.hpp"
#include "short_lock.hpp"
#include "token_watch.hpp"

namespace weft::detail {

class wait_list;

/// Awaits that are ready without waiting go through the queue once in so many, so that a loop over them cannot keep a
/// worker from everything else, and notices that it is cancelled.
inline constexpr std::uint32_t ready_budget = 128;
constinit inline thread_local std::uint32_t ready_in_a_row = 0;

/// True if an await that is ready may go on at once.
[[nodiscard]] inline bool spend_ready() noexcept {
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
    void end(const char *doing) {
        watch_.end();
        if (state_.load(std::memory_order_relaxed) == cancelled) {
            throw operation_cancelled(doing);
        }
    }

private:
    friend class wait_list;
    enum : std::uint32_t { idle, entering, requested, waiting, released, cancelled };

    /// Moves the state, unless the callback has. acq_rel: what the one who moves it wrote before is there for the one
    /// who sees it moved; on failure acquire, for the same reason. Without a callback only the holder of the lock
    /// changes the state.
    bool move(std::uint32_t from, std::uint32_t to) noexcept {
        if (!watch_.active()) {
            state_.store(to, std::memory_order_relaxed);
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

/// A line of waiters. Its lock is the owner's, and guards the owner's own state as well.
class wait_list {
public:
    explicit wait_list(short_lock &lock) noexcept : lock_(lock) {}
    wait_list(const wait_list &) = delete;
    wait_list &operator=(const wait_list &) = delete;

    /// For the owner's destructor. what: the message if somebody still waits.
    void destroy(const char *what) noexcept {
        for (;;) {
            lock_.lock();
            for (const waiter *w = first_; w != nullptr; w = w->next_) {
                if (w->state_.load(std::memory_order_relaxed) == waiter::waiting) {
                    die(what);
                }
            }
            const bool empty = first_ == nullptr;
            lock_.unlock();
            if (empty) {
                return;
            }
            std::this_thread::yield(); // a cancelled one is about to leave
        }
    }

    /// What the owner gives to a coroutine that comes: whether it need not wait, and a waiter that was released by
    /// that.
    struct taken {
        bool now;
        waiter *released = nullptr;
    };

    /// Suspends a coroutine in line, unless take gives it at once what it waits for. take is called under the lock,
    /// unless a cancellation came first: what it gives is never lost. spent: the coroutine goes through the queue even
    /// if it need not wait. Returns what await_suspend returns: after true the waiter may be gone.
    template <class Promise, std::invocable Take>
    [[nodiscard]] bool enter(waiter &w, std::coroutine_handle<Promise> coroutine, bool spent, Take take) noexcept {
        WEFT_TEST_DELAY(wait_list_enters);
        const environment here = environment_of(coroutine);
        w.list_ = this;
        w.coroutine_ = coroutine;
        w.home_ = here.home;
        w.watch_.begin(here.token, waiter::request, &w);
        WEFT_TEST_DELAY(wait_list_registered);
        lock_.lock();
        if (!w.move(waiter::idle, waiter::entering)) {
            lock_.unlock();
            return false;
        }
        WEFT_TEST_DELAY(wait_list_entering);
        const taken got = take();
        if (got.now) {
            w.state_.store(waiter::released, std::memory_order_relaxed); // a request that has come meanwhile is late
            lock_.unlock();
            if (got.released != nullptr) {
                got.released->resume();
            }
            return spent && schedule_via(here.home, coroutine, w.op_, true) == WEFT_OK;
        }
        if (!w.move(waiter::entering, waiter::waiting)) {
            w.state_.store(waiter::cancelled, std::memory_order_relaxed);
            lock_.unlock();
            return false;
        }
        WEFT_TEST_DELAY(wait_list_waiting);
        w.previous_ = last_;
        (last_ == nullptr ? first_ : last_->next_) = &w;
        last_ = &w;
        lock_.unlock();
        WEFT_TEST_DELAY(wait_list_in_line);
        return true;
    }

    /// Under the lock: takes the first waiter out of line that was not cancelled; nullptr if there is none. It is the
    /// caller's to resume, after unlock.
    [[nodiscard]] waiter *pop() noexcept {
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
    [[nodiscard]] waiter *pop_all() noexcept {
        waiter *all = nullptr;
        waiter **end = &all;
        while (waiter *w = pop()) {
            *end = w;
            end = &w->next_;
        }
        return all;
    }

    /// Resumes a list of pop_all, without the lock, so that they begin in order: a worker's own deque runs the newest
    /// first.
    static void resume_all(waiter *first) noexcept {
        if (first == nullptr || first->next_ == nullptr) {
            if (first != nullptr) {
                first->resume();
            }
            return;
        }
        WEFT_TEST_DELAY(wait_list_resumes);
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

    void unlink(waiter &w) noexcept {
        (w.previous_ == nullptr ? first_ : w.previous_->next_) = w.next_;
        (w.next_ == nullptr ? last_ : w.next_->previous_) = w.previous_;
    }

    short_lock &lock_;
    waiter *first_ = nullptr; // guarded by lock_
    waiter *last_ = nullptr;  // guarded by lock_
};

inline void waiter::request(void *self) noexcept {
    auto &w = *static_cast<waiter *>(self);
    const callback_scope scope(w.watch_.registration());
    // acq_rel and acquire as in move, with which it competes.
    WEFT_TEST_DELAY(waiter_requested);
    std::uint32_t from = w.state_.load(std::memory_order_acquire);
    std::uint32_t to = cancelled;
    do {
        if (from == released || from == cancelled || from == requested) {
            return;
        }
        to = from == entering ? requested : cancelled;
    } while (!w.state_.compare_exchange_weak(from, to, std::memory_order_acq_rel, std::memory_order_acquire));
    if (from == waiting) {
        WEFT_TEST_DELAY(waiter_cancelled);
        wait_list &list = *w.list_;
        list.lock_.lock();
        list.unlink(w);
        list.lock_.unlock(); // the list's owner may go from here on
        WEFT_TEST_DELAY(waiter_left);
        w.resume();
    }
}

} // namespace weft::detail

#endif
