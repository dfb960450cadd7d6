// SPDX-License-Identifier: MIT
//
// The source of a combinator (when_any, timeout, async_scope): it lives in the awaiter, is requested by the combinator
// or through the token that the combinator inherited, and must be detached before its memory goes.
#ifndef WEFT_DETAIL_LINKED_SOURCE_HPP
#define WEFT_DETAIL_LINKED_SOURCE_HPP

#include "../c/cancel.h"
#include "../cancellation.hpp"
#include "delay.hpp"
#include "registration.hpp"

namespace weft::detail {

class linked_source {
public:
    linked_source() noexcept = default;
    linked_source(const linked_source &) = delete;
    linked_source &operator=(const linked_source &) = delete;
    ~linked_source() { detach(); }

    /// Follows parent from now on.
    void attach(weft_cancel_token parent) noexcept {
        if (parent != nullptr) {
            register_callback(parent, link_, pass_on, this);
        }
    }

    /// Stops following; waits for a request that is passing through on another thread. None is on this thread:
    /// coroutines do not run inside callbacks.
    void detach() noexcept { deregister_callback(link_); }

    bool request() noexcept { return request_cancel(source_); }

    [[nodiscard]] weft_cancel_token token() const noexcept { return &source_; }

private:
    static void pass_on(void *context) noexcept {
        auto &self = *static_cast<linked_source *>(context);
        const callback_scope scope(self.link_);
        WEFT_TEST_DELAY(linked_source_passes_on);
        self.request();
    }

    weft_cancel_source source_{};
    weft_cancel_registration link_{};
};

} // namespace weft::detail

#endif
