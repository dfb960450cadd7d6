// SPDX-License-Identifier: MIT
//
// weft/event.hpp: telling tasks that something has happened.
//
// event stays set until it is reset, and lets everybody through; auto_reset_event lets one through per set. Waiters go
// in the order in which they came. Both may be destroyed as soon as nobody waits, also by a task that set() has
// released.
#ifndef WEFT_EVENT_HPP
#define WEFT_EVENT_HPP

#include <atomic>
#include <coroutine>

#include "detail/delay.hpp"
#include "detail/operation.hpp"
#include "detail/short_lock.hpp"
#include "detail/waiter.hpp"

namespace weft {

/// A flag that tasks can wait for. May be used from any thread.
class event {
public:
    explicit event(bool set = false) noexcept : set_(set) {}
    event(const event &) = delete;
    event &operator=(const event &) = delete;
    /// Ends the program if a task waits.
    ~event() { line_.destroy("an event was destroyed while a task waited for it"); }

    /// Lets all waiters go, and all who come until reset().
    void set() noexcept {
        lock_.lock();
        set_.store(true, std::memory_order_release);
        detail::waiter *waiters = line_.pop_all();
        lock_.unlock();
        WEFT_TEST_DELAY(event_set);
        detail::wait_list::resume_all(waiters); // who may destroy this event
    }

    /// Lets those who come from now on wait.
    void reset() noexcept {
        lock_.lock();
        set_.store(false, std::memory_order_relaxed);
        lock_.unlock();
    }

    [[nodiscard]] bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }

    class wait_awaiter : public detail::native_awaiter, private detail::waiter {
    public:
        explicit wait_awaiter(event &owner) noexcept : event_(owner) {}

        [[nodiscard]] bool await_ready() noexcept {
            if (!event_.is_set()) {
                return false;
            }
            spent_ = !detail::spend_ready();
            return !spent_;
        }

        template <class Promise>
        [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
            return event_.line_.enter(*this, coroutine, spent_, [this] { return detail::wait_list::taken{event_.is_set()}; });
        }

        void await_resume() { end("event::wait"); }

    private:
        event &event_;
        bool spent_ = false;
    };
    using wait_operation = detail::operation<wait_awaiter, event &>;

    /// Waits until the event is set. Resumes on the awaiting task's home. Cancel: leaves the line, operation_cancelled.
    /// Single use.
    [[nodiscard]] wait_operation wait() noexcept { return wait_operation(*this); }

private:
    // Changed under lock_. release in set pairs with acquire in is_set: who sees it set sees what came before set().
    std::atomic<bool> set_;
    detail::short_lock lock_;
    detail::wait_list line_{lock_};
};

/// A flag that lets one waiter through and is then unset again. Sets do not add up: a second set() of a set event does
/// nothing. May be used from any thread.
class auto_reset_event {
public:
    explicit auto_reset_event(bool set = false) noexcept : set_(set) {}
    auto_reset_event(const auto_reset_event &) = delete;
    auto_reset_event &operator=(const auto_reset_event &) = delete;
    /// Ends the program if a task waits.
    ~auto_reset_event() { line_.destroy("an auto_reset_event was destroyed while a task waited for it"); }

    /// Lets the first waiter go; if nobody waits, the next who comes. A cancelled waiter never swallows a set.
    void set() noexcept {
        lock_.lock();
        detail::waiter *next = line_.pop();
        if (next == nullptr) {
            set_.store(true, std::memory_order_relaxed);
        }
        lock_.unlock();
        WEFT_TEST_DELAY(auto_reset_event_set);
        if (next != nullptr) {
            next->resume();
        }
    }

    /// Takes back a set() that nobody has used.
    void reset() noexcept {
        lock_.lock();
        set_.store(false, std::memory_order_relaxed);
        lock_.unlock();
    }

    [[nodiscard]] bool is_set() const noexcept { return set_.load(std::memory_order_relaxed); }

    class wait_awaiter : public detail::native_awaiter, private detail::waiter {
    public:
        explicit wait_awaiter(auto_reset_event &owner) noexcept : event_(owner) {}

        [[nodiscard]] bool await_ready() noexcept {
            if (!event_.is_set()) {
                return false;
            }
            spent_ = !detail::spend_ready();
            return !spent_ && event_.try_wait();
        }

        template <class Promise>
        [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
            return event_.line_.enter(*this, coroutine, spent_, [this] { return detail::wait_list::taken{event_.unset()}; });
        }

        void await_resume() { end("auto_reset_event::wait"); }

    private:
        auto_reset_event &event_;
        bool spent_ = false;
    };
    using wait_operation = detail::operation<wait_awaiter, auto_reset_event &>;

    /// Waits until the event is set, and unsets it. Resumes on the awaiting task's home. Cancel: leaves the line,
    /// operation_cancelled. Single use.
    [[nodiscard]] wait_operation wait() noexcept { return wait_operation(*this); }

    /// Unsets the event; false if it was not set.
    [[nodiscard]] bool try_wait() noexcept {
        lock_.lock();
        const bool was_set = unset();
        lock_.unlock();
        return was_set;
    }

private:
    bool unset() noexcept {
        const bool was_set = is_set();
        set_.store(false, std::memory_order_relaxed);
        return was_set;
    }

    std::atomic<bool> set_; // changed under lock_; read without it as a hint
    detail::short_lock lock_;
    detail::wait_list line_{lock_};
};

} // namespace weft

#endif
