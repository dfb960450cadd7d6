// SPDX-License-Identifier: MIT
//
// Registering callbacks with tokens, so that ThreadSanitizer sees what the library orders: what was written before the
// registration is there for the callback, and what the callback did is there after the deregistration.
#ifndef WEFT_DETAIL_REGISTRATION_HPP
#define WEFT_DETAIL_REGISTRATION_HPP

#include "../c/cancel.h"
#include "delay.hpp"
#include "tsan.hpp"

namespace weft::detail {

inline void register_callback(weft_cancel_token token, weft_cancel_registration &registration, weft_cancel_fn callback,
                              void *context) noexcept {
    tsan_release(&registration);
    WEFT_TEST_DELAY(register_callback);
    weft_cancel_register(token, &registration, callback, context);
}

/// Waits for a callback that runs on another thread.
inline void deregister_callback(weft_cancel_registration &registration) noexcept {
    WEFT_TEST_DELAY(deregister_callback);
    weft_cancel_deregister(&registration);
    tsan_acquire(&registration);
}

/// Stands at the beginning of every callback.
class callback_scope {
public:
    explicit callback_scope(weft_cancel_registration &registration) noexcept : registration_(&registration) {
        tsan_acquire(registration_);
    }
    callback_scope(const callback_scope &) = delete;
    callback_scope &operator=(const callback_scope &) = delete;
    ~callback_scope() { tsan_release(registration_); } // the address alone: the registration may be gone

private:
    [[maybe_unused]] weft_cancel_registration *registration_;
};

} // namespace weft::detail

#endif
