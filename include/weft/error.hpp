// SPDX-License-Identifier: MIT
//
// weft/error.hpp: the codes of weft as an error category, and the exceptions that carry them.
//
// Everything that weft throws for a reason of its own is a weft::error, and so a std::system_error. Those that a
// program handles by type have one: operation_cancelled, timed_out, runtime_stopped. Misuse (an empty task, sync_wait
// on a worker) is a std::logic_error.
#ifndef WEFT_ERROR_HPP
#define WEFT_ERROR_HPP

#include <string>
#include <system_error>
#include <type_traits>

#include "c/error.h"

namespace weft {

/// The codes of weft/c/error.h, comparable with std::error_code: `if (e.code() == weft::errc::connection_refused)`.
enum class errc : int {
    invalid_argument = WEFT_EINVAL,
    bad_handle = WEFT_EBADHANDLE,
    bad_version = WEFT_EVERSION,
    busy = WEFT_EBUSY,
    stopped = WEFT_ESTOPPED,
    not_a_worker = WEFT_ENOTWORKER,
    not_supported = WEFT_ENOTSUP,
    already_exists = WEFT_EEXIST,
    forked = WEFT_EFORKED,
    internal_failure = WEFT_EPANIC,
    out_of_memory = WEFT_ENOMEM,
    limit_reached = WEFT_ELIMIT,
    cancelled = WEFT_ECANCELED,
    timed_out = WEFT_ETIMEDOUT,
    closed = WEFT_ECLOSED,
    end_of_stream = WEFT_EOF,
    connection_refused = WEFT_ECONNREFUSED,
    connection_reset = WEFT_ECONNRESET,
    broken_pipe = WEFT_EPIPE,
    not_connected = WEFT_ENOTCONN,
    address_in_use = WEFT_EADDRINUSE,
    address_not_available = WEFT_EADDRNOTAVAIL,
    unreachable = WEFT_EUNREACH,
    access_denied = WEFT_EACCES,
    not_found = WEFT_ENOENT,
    no_space = WEFT_ENOSPC,
    no_answer = WEFT_ENOANSWER,
    system_failure = WEFT_ESYSTEM,
};

namespace detail {

class error_category final : public std::error_category {
public:
    [[nodiscard]] const char *name() const noexcept override { return "weft"; }
    [[nodiscard]] std::string message(int code) const override { return weft_error_text(code); }

    /// Where the standard has a word for a code, both compare equal: `e.code() == std::errc::connection_refused`.
    [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
        switch (code) {
        case WEFT_EINVAL:
            return std::errc::invalid_argument;
        case WEFT_EBADHANDLE:
            return std::errc::bad_file_descriptor;
        case WEFT_EBUSY:
            return std::errc::device_or_resource_busy;
        case WEFT_ENOTSUP:
            return std::errc::not_supported;
        case WEFT_EEXIST:
            return std::errc::file_exists;
        case WEFT_ENOMEM:
            return std::errc::not_enough_memory;
        case WEFT_ELIMIT:
            return std::errc::resource_unavailable_try_again;
        case WEFT_ECANCELED:
            return std::errc::operation_canceled;
        case WEFT_ETIMEDOUT:
            return std::errc::timed_out;
        case WEFT_ECONNREFUSED:
            return std::errc::connection_refused;
        case WEFT_ECONNRESET:
            return std::errc::connection_reset;
        case WEFT_EPIPE:
            return std::errc::broken_pipe;
        case WEFT_ENOTCONN:
            return std::errc::not_connected;
        case WEFT_EADDRINUSE:
            return std::errc::address_in_use;
        case WEFT_EADDRNOTAVAIL:
            return std::errc::address_not_available;
        case WEFT_EUNREACH:
            return std::errc::network_unreachable;
        case WEFT_EACCES:
            return std::errc::permission_denied;
        case WEFT_ENOENT:
            return std::errc::no_such_file_or_directory;
        case WEFT_ENOSPC:
            return std::errc::no_space_on_device;
        default:
            return {code, *this};
        }
    }
};

} // namespace detail

/// The category of every error_code that weft makes.
[[nodiscard]] inline const std::error_category &category() noexcept {
    static const detail::error_category instance;
    return instance;
}

[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), category()}; }

/// Base of what weft throws.
class error : public std::system_error {
public:
    /// code: one of weft/c/error.h. doing: what failed, for what(). os_error: the system's own number, or 0.
    error(int code, const char *doing, int os_error = 0)
        : std::system_error(std::error_code(code, category()), doing), os_error_(os_error) {}

    /// The operating system's error number behind the code (errno, or a Windows error); 0 when there was none.
    [[nodiscard]] int os_error() const noexcept { return os_error_; }

private:
    int os_error_;
};

/// The operation ended because the token of its task was requested, or because the runtime stopped under it.
class operation_cancelled : public error {
public:
    explicit operation_cancelled(const char *doing = "operation") : error(WEFT_ECANCELED, doing) {}
};

/// The runtime has stopped, or is stopping, and takes no new work.
class runtime_stopped : public error {
public:
    explicit runtime_stopped(const char *doing = "schedule") : error(WEFT_ESTOPPED, doing) {}
};

/// The time that timeout() gave ran out.
class timed_out : public error {
public:
    explicit timed_out(const char *doing = "timeout") : error(WEFT_ETIMEDOUT, doing) {}
};

/// Throws the exception for a negative code.
[[noreturn]] inline void throw_error(int code, const char *doing, int os_error = 0) {
    switch (code) {
    case WEFT_ECANCELED:
        throw operation_cancelled(doing);
    case WEFT_ESTOPPED:
        throw runtime_stopped(doing);
    case WEFT_ETIMEDOUT:
        throw timed_out(doing);
    default:
        throw error(code, doing, os_error);
    }
}

} // namespace weft

template <>
struct std::is_error_code_enum<weft::errc> : std::true_type {};

#endif
