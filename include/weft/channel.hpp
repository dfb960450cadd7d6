// SPDX-License-Identifier: MIT
//
// weft/channel.hpp: passing values from tasks to tasks, in order.
//
//     while (std::optional<job> next = co_await jobs.receive()) { ... }
#ifndef WEFT_CHANNEL_HPP
#define WEFT_CHANNEL_HPP

#include <coroutine>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "detail/delay.hpp"
#include "detail/operation.hpp"
#include "detail/short_lock.hpp"
#include "detail/waiter.hpp"

namespace weft {

/// A queue of bounded capacity between any number of senders and receivers. Values come out in the order in which they
/// went in, and those who wait are served in the order in which they came. May be used from any thread. With a capacity
/// of 0 a sender waits until its value is received.
template <class T>
    requires std::is_nothrow_move_constructible_v<T>
class channel {
public:
    explicit channel(std::size_t capacity) : ring_(capacity) {}
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;
    /// Ends the program if a task waits.
    ~channel() {
        receivers_.destroy("a channel was destroyed while a task waited to receive");
        senders_.destroy("a channel was destroyed while a task waited to send");
    }

    /// Lets receivers take what is in it and then get std::nullopt; senders, also those who wait, get false.
    void close() noexcept {
        lock_.lock();
        closed_ = true;
        detail::waiter *receivers = receivers_.pop_all();
        detail::waiter *senders = senders_.pop_all();
        lock_.unlock();
        WEFT_TEST_DELAY(channel_closed);
        detail::wait_list::resume_all(receivers);
        detail::wait_list::resume_all(senders);
    }

    class send_awaiter : public detail::native_awaiter, private detail::waiter {
    public:
        send_awaiter(channel &owner, T &value) noexcept : channel_(owner), value_(std::move(value)) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }

        template <class Promise>
        [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
            return channel_.senders_.enter(*this, coroutine, !detail::spend_ready(), [this] {
                const taken put = channel_.put(value_);
                sent_ = put.now;
                return taken{put.now || channel_.closed_, put.released};
            });
        }

        /// True if the value was sent.
        [[nodiscard]] bool await_resume() {
            this->end("channel::send");
            return sent_;
        }

    private:
        friend class channel;
        channel &channel_;
        T value_;           // while in line: guarded by the channel's lock
        bool sent_ = false; // likewise
    };

    class receive_awaiter : public detail::native_awaiter, private detail::waiter {
    public:
        explicit receive_awaiter(channel &owner) noexcept : channel_(owner) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }

        template <class Promise>
        [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
            return channel_.receivers_.enter(*this, coroutine, !detail::spend_ready(), [this] {
                const taken got = channel_.get(value_);
                return taken{got.now || channel_.closed_, got.released};
            });
        }

        [[nodiscard]] std::optional<T> await_resume() {
            this->end("channel::receive");
            return std::move(value_);
        }

    private:
        friend class channel;
        channel &channel_;
        std::optional<T> value_; // while in line: guarded by the channel's lock
    };

    /// Keeps the value until it is awaited.
    class [[nodiscard]] send_operation {
    public:
        send_operation(channel &owner, T value) noexcept : channel_(owner), value_(std::move(value)) {}
        [[nodiscard]] send_awaiter operator co_await() && noexcept { return send_awaiter(channel_, value_); }

    private:
        channel &channel_;
        T value_;
    };
    using receive_operation = detail::operation<receive_awaiter, channel &>;

    /// Puts a value in; waits while the channel is full. Gives true, or false if the channel is closed. Resumes on the
    /// awaiting task's home. Cancel: leaves the line, operation_cancelled; the value is not sent. Single use.
    [[nodiscard]] send_operation send(T value) noexcept { return send_operation(*this, std::move(value)); }

    /// Takes a value out; waits while there is none. Gives std::nullopt once the channel is closed and empty. Resumes
    /// on the awaiting task's home. Cancel: leaves the line, operation_cancelled; a value that was given to it is not
    /// lost. Single use.
    [[nodiscard]] receive_operation receive() noexcept { return receive_operation(*this); }

    /// Puts a value in without waiting; false if there is no room or the channel is closed, and then value is as it
    /// was.
    [[nodiscard]] bool try_send(T &value) noexcept {
        lock_.lock();
        const taken put = this->put(value);
        lock_.unlock();
        WEFT_TEST_DELAY(channel_sent);
        if (put.released != nullptr) {
            put.released->resume();
        }
        return put.now;
    }
    [[nodiscard]] bool try_send(T &&value) noexcept { return try_send(value); }

    /// Takes a value out without waiting; std::nullopt if there is none.
    [[nodiscard]] std::optional<T> try_receive() noexcept {
        std::optional<T> value;
        lock_.lock();
        const taken got = get(value);
        lock_.unlock();
        WEFT_TEST_DELAY(channel_received);
        if (got.released != nullptr) {
            got.released->resume();
        }
        return value;
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return ring_.size(); }

private:
    using taken = detail::wait_list::taken;

    /// Under lock_: gives a value to a receiver or the ring, if there is one or room.
    [[nodiscard]] taken put(T &value) noexcept {
        if (closed_) {
            return {false};
        }
        if (detail::waiter *waiting = receivers_.pop(); waiting != nullptr) {
            static_cast<receive_awaiter *>(waiting)->value_.emplace(std::move(value));
            return {true, waiting};
        }
        if (size_ == ring_.size()) {
            return {false};
        }
        ring_[(first_ + size_) % ring_.size()].emplace(std::move(value));
        ++size_;
        return {true};
    }

    /// Under lock_: takes a value from the ring, which the first waiting sender refills, or from that sender.
    [[nodiscard]] taken get(std::optional<T> &value) noexcept {
        detail::waiter *waiting = senders_.pop();
        auto *sender = static_cast<send_awaiter *>(waiting);
        if (sender != nullptr) {
            sender->sent_ = true;
        }
        if (size_ == 0) {
            if (sender != nullptr) {
                value.emplace(std::move(sender->value_));
            }
            return {sender != nullptr, waiting};
        }
        value.emplace(std::move(*ring_[first_]));
        ring_[first_].reset();
        if (sender != nullptr) {
            ring_[first_].emplace(std::move(sender->value_)); // the ring was full: first_ is also its end
        } else {
            --size_;
        }
        first_ = (first_ + 1) % ring_.size();
        return {true, waiting};
    }

    detail::short_lock lock_;
    std::vector<std::optional<T>> ring_; // guarded by lock_, as all below
    std::size_t first_ = 0;
    std::size_t size_ = 0;
    bool closed_ = false;
    detail::wait_list receivers_{lock_}; // not empty only if the ring is
    detail::wait_list senders_{lock_};   // not empty only if the ring is full
};

} // namespace weft

#endif
