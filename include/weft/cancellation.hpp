// SPDX-License-Identifier: MIT
//
// weft/cancellation.hpp: asking work to end early.
//
// A cancellation_source is requested once; a cancellation_token tells whether it was; a cancellation_registration runs
// a callback when it is, on the requester's thread. A task inherits the token of its awaiter, and every awaitable of
// weft ends with operation_cancelled when that token is requested: passing tokens by hand is the exception
// (with_token.hpp).
//
// A token from a source keeps the source's state alive. A token from this_task::token() may be one that lives in a
// frame further up (when_any, timeout, async_scope): it is good for as long as the task that asked for it runs.
#ifndef WEFT_CANCELLATION_HPP
#define WEFT_CANCELLATION_HPP

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "c/cancel.h"
#include "detail/delay.hpp"
#include "detail/die.hpp"
#include "detail/inline_lane.hpp"
#include "detail/registration.hpp"
#include "error.hpp"

namespace weft {

class cancellation_token;

namespace detail {

/// Requests a source. What the callbacks release runs after them and not inside: inline_lane.hpp.
inline bool request_cancel(weft_cancel_source &source) noexcept {
    const inline_session session;
    return weft_cancel_request(&source) == WEFT_OK;
}

/// A std::stop_source that follows a token.
class stop_bridge {
public:
    explicit stop_bridge(weft_cancel_token token) { register_callback(token, registration_, stop, this); }
    stop_bridge(const stop_bridge &) = delete;
    stop_bridge &operator=(const stop_bridge &) = delete;
    ~stop_bridge() { deregister_callback(registration_); }
    [[nodiscard]] std::stop_token get_token() const noexcept { return source_.get_token(); }

private:
    static void stop(void *context) noexcept {
        auto &self = *static_cast<stop_bridge *>(context);
        const callback_scope scope(self.registration_);
        self.source_.request_stop();
    }

    std::stop_source source_;
    weft_cancel_registration registration_{};
};

/// A source that sources and tokens share.
class cancellation_state {
public:
    cancellation_state() noexcept = default;
    cancellation_state(const cancellation_state &) = delete;
    cancellation_state &operator=(const cancellation_state &) = delete;

    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }

    void release() noexcept {
        // acq_rel: whoever drops the last reference sees all that the others did with the state.
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

    bool request() noexcept {
        retain(); // a callback may drop the last reference
        WEFT_TEST_DELAY(cancellation_retained);
        const bool first = request_cancel(source_);
        release();
        return first;
    }

    [[nodiscard]] weft_cancel_source &source() noexcept { return source_; }

    /// Lets this state follow another token; parent_owner is kept alive meanwhile.
    void follow(weft_cancel_token parent, cancellation_state *parent_owner) noexcept {
        parent_owner_ = parent_owner;
        if (parent_owner_ != nullptr) {
            parent_owner_->retain();
        }
        register_callback(parent, parent_, parent_requested, this);
    }

    void follow(const std::stop_token &parent) { stop_callback_.emplace(parent, stop_follower{this}); }

    [[nodiscard]] std::stop_token stop_token() {
        stop_bridge *bridge = stop_bridge_.load(std::memory_order_acquire);
        if (bridge == nullptr) {
            auto made = std::make_unique<stop_bridge>(&source_);
            WEFT_TEST_DELAY(stop_bridge_made);
            // release publishes the bridge to the acquire above; on failure acquire takes the one that won.
            if (stop_bridge_.compare_exchange_strong(bridge, made.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
                bridge = made.release();
            }
        }
        return bridge->get_token();
    }

private:
    struct stop_follower {
        cancellation_state *state;
        void operator()() const noexcept { state->followed(); }
    };

    static void parent_requested(void *context) noexcept {
        auto &self = *static_cast<cancellation_state *>(context);
        const callback_scope scope(self.parent_);
        self.followed();
    }

    ~cancellation_state() {
        deregister_callback(parent_); // waits for followed on another thread
        stop_callback_.reset();       // so does this
        delete stop_bridge_.load(std::memory_order_acquire);
        if (parent_owner_ != nullptr) {
            parent_owner_->release();
        }
    }

    /// What this state follows was requested. If the last reference is gone the destructor waits for this call; else a
    /// reference keeps the state while the callbacks run.
    void followed() noexcept {
        WEFT_TEST_DELAY(cancellation_followed);
        std::uint32_t references = references_.load(std::memory_order_relaxed);
        while (references != 0) {
            if (references_.compare_exchange_weak(references, references + 1, std::memory_order_relaxed)) {
                request_cancel(source_);
                release();
                return;
            }
        }
        request_cancel(source_);
    }

    weft_cancel_source source_{};
    std::atomic<std::uint32_t> references_{1}; // of sources, tokens and running requests
    weft_cancel_registration parent_{};
    cancellation_state *parent_owner_ = nullptr; // immutable after follow
    std::optional<std::stop_callback<stop_follower>> stop_callback_;
    std::atomic<stop_bridge *> stop_bridge_{nullptr}; // set once, see stop_token
};

} // namespace detail

/// Tells whether cancellation was requested. Copyable; may be used from any thread.
class cancellation_token {
public:
    /// A token that is never requested.
    cancellation_token() noexcept = default;

    /// A token of a source of the C interface, which must outlive it; nullptr is never requested.
    explicit cancellation_token(weft_cancel_token borrowed) noexcept : token_(borrowed) {}

    /// A token that is requested when the std::stop_token is. Allocates.
    explicit cancellation_token(const std::stop_token &stop) {
        if (stop.stop_possible()) {
            owner_ = new detail::cancellation_state;
            token_ = &owner_->source();
            try {
                owner_->follow(stop);
            } catch (...) {
                owner_->release();
                throw;
            }
        }
    }

    cancellation_token(const cancellation_token &other) noexcept : token_(other.token_), owner_(other.owner_) {
        if (owner_ != nullptr) {
            owner_->retain();
        }
    }
    cancellation_token(cancellation_token &&other) noexcept
        : token_(std::exchange(other.token_, nullptr)), owner_(std::exchange(other.owner_, nullptr)) {}
    cancellation_token &operator=(cancellation_token other) noexcept {
        std::swap(token_, other.token_);
        std::swap(owner_, other.owner_);
        return *this;
    }
    ~cancellation_token() {
        if (owner_ != nullptr) {
            owner_->release();
        }
    }

    /// True once cancellation was requested. Never blocks.
    [[nodiscard]] bool requested() const noexcept { return weft_cancel_requested(token_) != 0; }

    /// False for a token that belongs to no source.
    [[nodiscard]] bool can_be_requested() const noexcept { return token_ != nullptr; }

    /// Throws operation_cancelled if cancellation was requested.
    void throw_if_requested() const {
        if (requested()) {
            throw operation_cancelled("task");
        }
    }

    /// The token of the C interface; good for as long as this one.
    [[nodiscard]] weft_cancel_token native() const noexcept { return token_; }

    [[nodiscard]] friend bool operator==(const cancellation_token &a, const cancellation_token &b) noexcept {
        return a.token_ == b.token_;
    }

private:
    friend class cancellation_source;
    cancellation_token(weft_cancel_token token, detail::cancellation_state *owner) noexcept : token_(token), owner_(owner) {
        owner_->retain();
    }

    weft_cancel_token token_ = nullptr;
    detail::cancellation_state *owner_ = nullptr; // keeps token_ alive; nullptr: somebody else does
};

/// Requests cancellation. Copies share one state; may be used from any thread.
class cancellation_source {
public:
    cancellation_source() : state_(new detail::cancellation_state) {}

    /// A source that is also requested when the parent is.
    explicit cancellation_source(const cancellation_token &parent) : cancellation_source() {
        if (parent.can_be_requested()) {
            state_->follow(parent.token_, parent.owner_);
        }
    }

    cancellation_source(const cancellation_source &other) noexcept : state_(other.state_) { state_->retain(); }
    cancellation_source &operator=(const cancellation_source &other) noexcept {
        other.state_->retain();
        std::exchange(state_, other.state_)->release();
        return *this;
    }
    ~cancellation_source() { state_->release(); }

    /// Requests cancellation; runs the callbacks on this thread, and returns when they are done. It does not wait for
    /// the work to end: whoever awaits that does. Returns true for the first request.
    bool request() const noexcept { return state_->request(); }

    [[nodiscard]] bool requested() const noexcept { return weft_cancel_requested(&state_->source()) != 0; }

    [[nodiscard]] cancellation_token token() const noexcept { return cancellation_token(&state_->source(), state_); }

    /// A std::stop_token that is stopped when this source is requested, as long as this source or a token of it lives.
    [[nodiscard]] std::stop_token stop_token() const { return state_->stop_token(); }

    [[nodiscard]] friend bool operator==(const cancellation_source &a, const cancellation_source &b) noexcept {
        return a.state_ == b.state_;
    }

private:
    detail::cancellation_state *state_;
};

/// A std::stop_token that follows any token, for as long as this object lives.
class linked_stop_source {
public:
    explicit linked_stop_source(cancellation_token token) : token_(std::move(token)), bridge_(token_.native()) {}
    [[nodiscard]] std::stop_token get_token() const noexcept { return bridge_.get_token(); }

private:
    cancellation_token token_;
    detail::stop_bridge bridge_;
};

/// Runs a callback once when a token is requested: on the requester's thread, or at once, in the constructor, if it was
/// requested already. The destructor waits for a callback that runs on another thread, and never for itself: a callback
/// may destroy its own registration. An exception that escapes the callback ends the program.
template <std::invocable Callback>
class [[nodiscard]] cancellation_registration {
public:
    template <class F>
        requires std::constructible_from<Callback, F>
    cancellation_registration(cancellation_token token, F &&callback)
        : token_(std::move(token)), callback_(std::forward<F>(callback)) {
        detail::register_callback(token_.native(), registration_, run, this);
    }
    cancellation_registration(const cancellation_registration &) = delete;
    cancellation_registration &operator=(const cancellation_registration &) = delete;
    ~cancellation_registration() { detail::deregister_callback(registration_); }

private:
    static void run(void *context) noexcept {
        auto &self = *static_cast<cancellation_registration *>(context);
        const detail::callback_scope scope(self.registration_);
        try {
            std::forward<Callback>(self.callback_)();
        } catch (...) {
            detail::die_of_exception("an exception escaped a cancellation callback", std::current_exception());
        }
    }

    cancellation_token token_;
    Callback callback_;
    weft_cancel_registration registration_{};
};

template <class Callback>
cancellation_registration(cancellation_token, Callback) -> cancellation_registration<Callback>;

} // namespace weft

#endif
