// SPDX-License-Identifier: MIT
//
// Cuts a stream of HTTP/1.1 responses into single ones and tells of each its status and whether the server will close. Bodies
// must come with a Content-Length; anything else counts as a failure.
#ifndef EXAMPLES_HTTP_LOAD_RESPONSE_READER_HPP
#define EXAMPLES_HTTP_LOAD_RESPONSE_READER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace http {

class response_reader {
public:
    enum class progress {
        more,     // receive more
        complete, // a response has ended; status() is its
        failed,   // this is not HTTP
    };

    /// Takes bytes off the front of `input` up to the end of one response.
    progress read(std::string_view& input) noexcept {
        if (!in_body_) {
            const std::size_t end = input.find("\r\n\r\n", searched_);
            if (end == input.npos) {
                searched_ = input.size() < 3 ? 0 : input.size() - 3;
                return progress::more;
            }
            searched_ = 0;
            if (!head(input.substr(0, end + 2))) {
                return progress::failed;
            }
            input.remove_prefix(end + 4);
            in_body_ = true;
        }
        const std::uint64_t taken = std::min<std::uint64_t>(input.size(), body_left_);
        input.remove_prefix(static_cast<std::size_t>(taken));
        body_left_ -= taken;
        if (body_left_ != 0) {
            return progress::more;
        }
        in_body_ = false;
        return progress::complete;
    }

    [[nodiscard]] int status() const noexcept { return status_; }
    [[nodiscard]] bool closes() const noexcept { return closes_; }

private:
    // `head` is the status line and the header lines, each with its CRLF.
    bool head(std::string_view head) noexcept {
        if (head.size() < 14 || !head.starts_with("HTTP/1.") || head[8] != ' ') {
            return false;
        }
        status_ = 0;
        for (const char c : head.substr(9, 3)) {
            if (c < '0' || c > '9') {
                return false;
            }
            status_ = status_ * 10 + (c - '0');
        }
        closes_ = head[7] == '0';
        body_left_ = 0;
        bool length_known = status_ < 200 || status_ == 204 || status_ == 304;
        for (std::size_t line = head.find("\r\n") + 2; line < head.size();) {
            const std::size_t end = head.find("\r\n", line);
            const std::size_t colon = std::min(head.find(':', line), end);
            const std::string_view name = head.substr(line, colon - line);
            std::string_view value = colon == end ? std::string_view() : head.substr(colon + 1, end - colon - 1);
            value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
            if (same(name, "content-length")) {
                length_known = number(value, body_left_);
            } else if (same(name, "connection") && same(value, "close")) {
                closes_ = true;
            }
            line = end + 2;
        }
        return length_known;
    }

    static bool number(std::string_view digits, std::uint64_t& value) noexcept {
        value = 0;
        for (const char c : digits) {
            if (c < '0' || c > '9') {
                return false;
            }
            value = value * 10 + static_cast<std::uint64_t>(c - '0');
        }
        return !digits.empty() && digits.size() <= 18;
    }

    static bool same(std::string_view text, std::string_view lower_case) noexcept {
        return text.size() == lower_case.size() &&
               std::equal(text.begin(), text.end(), lower_case.begin(),
                          [](char c, char expected) { return (c >= 'A' && c <= 'Z' ? c + 32 : c) == expected; });
    }

    std::size_t searched_ = 0;
    std::uint64_t body_left_ = 0;
    int status_ = 0;
    bool in_body_ = false;
    bool closes_ = false;
};

} // namespace http

#endif
