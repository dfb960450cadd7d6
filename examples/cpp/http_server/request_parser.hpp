// SPDX-License-Identifier: MIT
//
// An incremental parser of HTTP/1.x requests (RFC 9112). Feed it what has arrived, cut anywhere, and it stops at the end
// of each head and each body. It allocates nothing and copies nothing: the views of a request point into the caller's bytes.
//
// It is strict where leniency is how requests get smuggled: lines end with CRLF, no folded headers, no blank before a
// colon, one Host, one Content-Length of digits only. Transfer codings are refused with 501.
#ifndef EXAMPLES_HTTP_SERVER_REQUEST_PARSER_HPP
#define EXAMPLES_HTTP_SERVER_REQUEST_PARSER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace http {

struct request_limits {
    std::size_t line_bytes = 4096; // request line: 414 beyond
    std::size_t head_bytes = 8192; // request line and headers: 431 beyond
    int headers = 100;             // 431 beyond
    std::uint64_t body_bytes = 1 << 20; // 413 beyond
};

struct request {
    std::string_view method; // valid until the caller's bytes move
    std::string_view target; // path and query; "*" for OPTIONS; likewise
    std::uint64_t content_length = 0;
    bool http11 = true;
    bool keep_alive = true;
    bool expects_continue = false; // the client waits for "100 Continue" before it sends the body
};

class request_parser {
public:
    enum class progress {
        more,     // everything was looked at; receive more
        head,     // current() is there; its body, if any, follows
        complete, // the body has ended: answer, then parse on
        failed,   // answer error_status() and close
    };

    explicit request_parser(const request_limits& limits = {}) noexcept : limits_(limits) {}

    /// Looks at `input`, which begins with the first byte not yet taken, and takes whole heads and bodies off its front.
    progress parse(std::string_view& input) noexcept {
        switch (state_) {
        case state::body: return body(input);
        case state::failed: return progress::failed;
        default: return head(input);
        }
    }

    [[nodiscard]] const request& current() const noexcept { return request_; }
    [[nodiscard]] int error_status() const noexcept { return error_status_; }

    /// Whether part of a request has arrived, and the rest has not.
    [[nodiscard]] bool midway() const noexcept {
        return state_ != state::idle && (state_ != state::request_line || searched_ != 0);
    }

private:
    enum class state { idle, request_line, headers, body, failed };

    struct piece { // of the bytes from the request line on, which may move until the head is complete
        std::size_t offset;
        std::size_t size;
    };

    progress head(std::string_view& input) noexcept {
        if (state_ == state::idle) {
            begin();
        }
        for (;;) {
            const std::size_t newline = input.find('\n', searched_);
            const std::size_t seen = newline == input.npos ? input.size() : newline + 1;
            if (state_ == state::request_line && seen > limits_.line_bytes) {
                return fail(414);
            }
            if (seen > limits_.head_bytes) {
                return fail(431);
            }
            if (newline == input.npos) {
                if (state_ == state::request_line && !plausible(input.substr(searched_))) {
                    return fail(400); // binary rubbish need not send a newline to be told
                }
                searched_ = input.size();
                return progress::more;
            }
            if (newline == line_ || input[newline - 1] != '\r') {
                return fail(400);
            }
            const std::string_view line = input.substr(line_, newline - 1 - line_);
            line_ = searched_ = newline + 1;
            if (!line.empty()) {
                const int status = state_ == state::request_line ? request_line(input, line) : header(line);
                if (status != 0) {
                    return fail(status);
                }
                state_ = state::headers;
            } else if (state_ == state::headers) {
                return end_of_head(input);
            } else if (blank_line_) { // RFC 9112 2.2: one before the request line may be a leftover
                return fail(400);
            } else {
                blank_line_ = true;
                input.remove_prefix(line_);
                line_ = searched_ = 0;
            }
        }
    }

    progress end_of_head(std::string_view& input) noexcept {
        if (request_.http11 && hosts_ != 1) {
            return fail(400);
        }
        if (transfer_encoding_) { // with a length too, or in HTTP/1.0, it is an attack (RFC 9112 6.1)
            return fail(content_length_ || !request_.http11 ? 400 : 501);
        }
        if (request_.content_length > limits_.body_bytes) {
            return fail(413);
        }
        request_.keep_alive = !close_ && (request_.http11 || keep_alive_);
        request_.expects_continue = expect_ && request_.http11 && request_.content_length != 0;
        request_.method = input.substr(method_.offset, method_.size);
        request_.target = input.substr(target_.offset, target_.size);
        input.remove_prefix(line_);
        body_left_ = request_.content_length;
        state_ = state::body;
        return progress::head;
    }

    progress body(std::string_view& input) noexcept {
        const std::uint64_t taken = std::min<std::uint64_t>(input.size(), body_left_);
        input.remove_prefix(static_cast<std::size_t>(taken));
        body_left_ -= taken;
        if (body_left_ != 0) {
            return progress::more;
        }
        state_ = state::idle;
        return progress::complete;
    }

    int request_line(std::string_view input, std::string_view line) noexcept {
        const std::size_t method_end = line.find(' ');
        const std::size_t target_end = method_end == line.npos ? line.npos : line.find(' ', method_end + 1);
        if (target_end == line.npos) {
            return 400;
        }
        const std::string_view method = line.substr(0, method_end);
        const std::string_view target = path_of(line.substr(method_end + 1, target_end - method_end - 1), method);
        const std::string_view version = line.substr(target_end + 1);
        if (!token(method) || target.empty() || version.size() != 8 || !version.starts_with("HTTP/") ||
            !digit(version[5]) || version[6] != '.' || !digit(version[7])) {
            return 400;
        }
        if (version[5] != '1') {
            return 505;
        }
        request_.http11 = version[7] != '0';
        method_ = {static_cast<std::size_t>(method.data() - input.data()), method.size()};
        target_ = {static_cast<std::size_t>(target.data() - input.data()), target.size()};
        return 0;
    }

    // Path and query of a target, or nothing if it is no target that a server is asked for.
    static std::string_view path_of(std::string_view target, std::string_view method) noexcept {
        if (!std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < 0x7f && c != '#'; })) {
            return {};
        }
        if (starts_with_ignoring_case(target, "http://")) { // as proxies are asked; a server must understand it too
            const std::size_t path = target.find('/', 7);
            if (path == 7 || target.size() == 7) {
                return {};
            }
            return path == target.npos ? target.substr(6, 1) : target.substr(path); // the second slash stands for "/"
        }
        return target.starts_with('/') || (target == "*" && method == "OPTIONS") ? target : std::string_view();
    }

    int header(std::string_view line) noexcept {
        if (++headers_ > limits_.headers) {
            return 431;
        }
        const std::size_t colon = line.find(':');
        if (colon == line.npos) {
            return 400;
        }
        const std::string_view name = line.substr(0, colon);
        const std::string_view value = trim(line.substr(colon + 1));
        if (!token(name) || !std::all_of(value.begin(), value.end(), text)) {
            return 400;
        }
        if (same(name, "host")) {
            ++hosts_;
        } else if (same(name, "connection")) {
            connection(value);
        } else if (same(name, "content-length")) {
            return content_length(value);
        } else if (same(name, "transfer-encoding")) {
            transfer_encoding_ = true;
        } else if (same(name, "expect")) {
            expect_ = true;
            return same(value, "100-continue") ? 0 : 417;
        }
        return 0;
    }

    int content_length(std::string_view value) noexcept {
        // 18 digits fit into 63 bits; a length that needs more is no length that is meant.
        if (content_length_ || value.empty() || value.size() > 18 || !std::all_of(value.begin(), value.end(), digit)) {
            return 400;
        }
        content_length_ = true;
        for (const char c : value) {
            request_.content_length = request_.content_length * 10 + static_cast<std::uint64_t>(c - '0');
        }
        return 0;
    }

    void connection(std::string_view list) noexcept {
        while (!list.empty()) {
            const std::size_t comma = std::min(list.find(','), list.size());
            const std::string_view option = trim(list.substr(0, comma));
            close_ = close_ || same(option, "close");
            keep_alive_ = keep_alive_ || same(option, "keep-alive");
            list.remove_prefix(std::min(comma + 1, list.size()));
        }
    }

    void begin() noexcept {
        request_ = {};
        state_ = state::request_line;
        line_ = searched_ = 0;
        headers_ = hosts_ = 0;
        blank_line_ = content_length_ = transfer_encoding_ = expect_ = close_ = keep_alive_ = false;
    }

    progress fail(int status) noexcept {
        error_status_ = status;
        state_ = state::failed;
        return progress::failed;
    }

    static bool digit(char c) noexcept { return c >= '0' && c <= '9'; }
    static bool text(char c) noexcept { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }
    static char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

    static bool token_char(char c) noexcept {
        return digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') ||
               (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
    }

    static bool token(std::string_view word) noexcept {
        return !word.empty() && std::all_of(word.begin(), word.end(), token_char);
    }

    // Whether these bytes can be a piece of a request line that has not ended yet.
    static bool plausible(std::string_view piece) noexcept {
        return std::all_of(piece.begin(), piece.end(), [](char c) { return (c >= ' ' && c < 0x7f) || c == '\r'; });
    }

    static bool same(std::string_view text, std::string_view lower_case) noexcept {
        return text.size() == lower_case.size() && starts_with_ignoring_case(text, lower_case);
    }

    static bool starts_with_ignoring_case(std::string_view text, std::string_view lower_case) noexcept {
        return text.size() >= lower_case.size() &&
               std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                          [](char expected, char c) { return expected == lower(c); });
    }

    static std::string_view trim(std::string_view text) noexcept {
        while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
            text.remove_prefix(1);
        }
        while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
            text.remove_suffix(1);
        }
        return text;
    }

    request_limits limits_;
    request request_;
    state state_ = state::idle;
    piece method_{};
    piece target_{};
    std::size_t line_ = 0;     // where the current line begins
    std::size_t searched_ = 0; // up to where a newline was looked for
    std::uint64_t body_left_ = 0;
    int headers_ = 0;
    int hosts_ = 0;
    int error_status_ = 0;
    bool blank_line_ = false;
    bool content_length_ = false;
    bool transfer_encoding_ = false;
    bool expect_ = false;
    bool close_ = false;
    bool keep_alive_ = false;
};

} // namespace http

#endif
