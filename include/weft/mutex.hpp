// SPDX-License-Identifier: MIT
//
// weft/mutex.hpp: mutual exclusion that a task may keep across co_await.
//
//     auto guard = co_await mutex.scoped_lock();
//
// Fair: it is handed to those who wait in the order in which they came. No thread is blocked, and it may be unlocked
// from another thread than the one that locked it.
#ifndef WEFT_MUTEX_HPP
#define WEFT_MUTEX_HPP

#include <coroutine>
#include <utility>

#include "detail/delay.hpp"
#include "detail/operation.hpp"
#include "detail/short_lock.hpp"
#include "detail/waiter.hpp"

namespace weft {

class mutex {
public:
    mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    /// Ends the program if a task waits.
    ~mutex() { line_.destroy("a mutex was destroyed while a task waited for it"); }

    /// Unlocks when it goes out of scope.
    class [[nodiscard]] guard {
    public:
        guard() noexcept = default;
        guard(guard &&other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
        guard &operator=(guard &&other) noexcept {
            guard(std::move(other)).swap(*this);
            return *this;
        }
        ~guard() { unlock(); }

        void swap(guard &other) noexcept { std::swap(mutex_, other.mutex_); }

        /// Unlocks now.
        void unlock() noexcept {
            if (mutex *owner = std::exchange(mutex_, nullptr); owner != nullptr) {
                owner->unlock();
            }
        }

        [[nodiscard]] explicit operator bool() const noexcept { return mutex_ != nullptr; }

    private:
        friend class mutex;
        explicit guard(mutex &owner) noexcept : mutex_(&owner) {}
        mutex *mutex_ = nullptr;
    };

    class lock_awaiter : public detail::native_awaiter, private detail::waiter {
    public:
        explicit lock_awaiter(mutex &owner) noexcept : mutex_(owner) {}

        [[nodiscard]] bool await_ready() noexcept {
            spent_ = !detail::spend_ready();
            return !spent_ && mutex_.try_lock();
        }

        template <class Promise>
        [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
            return mutex_.line_.enter(*this, coroutine, spent_, [this] { return detail::wait_list::taken{mutex_.take()}; });
        }

        void await_resume() { end("mutex::lock"); }

    protected:
        [[nodiscard]] mutex &owner() const noexcept { return mutex_; }

    private:
        mutex &mutex_;
        bool spent_ = false;
    };

    class scoped_lock_awaiter : public lock_awaiter {
    public:
        using lock_awaiter::lock_awaiter;
        [[nodiscard]] guard await_resume() {
            lock_awaiter::await_resume();
            return guard(owner());
        }
    };

    using lock_operation = detail::operation<lock_awaiter, mutex &>;
    using scoped_lock_operation = detail::operation<scoped_lock_awaiter, mutex &>;

    /// Locks; whoever does so calls unlock(). Resumes on the awaiting task's home. Cancel: leaves the line,
    /// operation_cancelled, not locked. Single use.
    [[nodiscard]] lock_operation lock() noexcept { return lock_operation(*this); }

    /// Locks, and gives a guard that unlocks. Otherwise as lock().
    [[nodiscard]] scoped_lock_operation scoped_lock() noexcept { return scoped_lock_operation(*this); }

    /// Locks if it is free.
    [[nodiscard]] bool try_lock() noexcept {
        lock_.lock();
        const bool free = take();
        lock_.unlock();
        return free;
    }

    /// Hands the mutex to the first who waits, or frees it. From any thread.
    void unlock() noexcept {
        lock_.lock();
        detail::waiter *next = line_.pop();
        if (next == nullptr) {
            locked_ = false;
        }
        lock_.unlock();
        WEFT_TEST_DELAY(mutex_unlocked);
        if (next != nullptr) {
            next->resume();
        }
    }

private:
    bool take() noexcept { return !std::exchange(locked_, true); }

    bool locked_ = false; // guarded by lock_
    detail::short_lock lock_;
    detail::wait_list line_{lock_};
};

} // namespace weft

#endif
