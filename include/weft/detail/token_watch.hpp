// SPDX-License-Identifier: MIT
//
// The registration of one awaiter with the token that it inherited. It must be over before the coroutine goes on: end()
// is called in await_resume, and waits for a callback that is still running on another thread.
#ifndef WEFT_DETAIL_TOKEN_WATCH_HPP
#define WEFT_DETAIL_TOKEN_WATCH_HPP

#include "../c/cancel.h"
#include "registration.hpp"

namespace weft::detail {

class token_watch {
public:
    token_watch() noexcept : token_(nullptr) {}
    token_watch(const token_watch &) = delete;
    token_watch &operator=(const token_watch &) = delete;

    /// Registers callback, which may run before this returns. Without a token nothing happens.
    void begin(weft_cancel_token token, weft_cancel_fn callback, void *context) noexcept {
        token_ = token;
        if (token != nullptr) {
            registration_ = weft_cancel_registration{};
            register_callback(token, registration_, callback, context);
        }
    }

    void end() noexcept {
        if (token_ != nullptr) {
            deregister_callback(registration_);
        }
    }

    [[nodiscard]] bool active() const noexcept { return token_ != nullptr; }

    /// For callback_scope.
    [[nodiscard]] weft_cancel_registration &registration() noexcept { return registration_; }

private:
    weft_cancel_token token_;
    weft_cancel_registration registration_; // unset without a token
};

} // namespace weft::detail

#endif
