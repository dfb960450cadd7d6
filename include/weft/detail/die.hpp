// SPDX-License-Identifier: MIT
//
// The ends of a program that broke a rule: a message on standard error, then std::terminate.
#ifndef WEFT_DETAIL_DIE_HPP
#define WEFT_DETAIL_DIE_HPP

#include <cstdio>
#include <exception>

namespace weft::detail {

[[noreturn]] inline void die(const char *what) noexcept {
    std::fprintf(stderr, "weft: %s\n", what);
    std::fflush(stderr);
    std::terminate();
}

/// Ends the program with the message of an exception. Called inside a catch block or with a captured exception.
[[noreturn]] inline void die_of_exception(const char *what, const std::exception_ptr &exception) noexcept {
    try {
        std::rethrow_exception(exception);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "weft: %s: %s\n", what, e.what());
    } catch (...) {
        std::fprintf(stderr, "weft: %s; it is no std::exception\n", what);
    }
    std::fflush(stderr);
    std::terminate();
}

} // namespace weft::detail

#endif
