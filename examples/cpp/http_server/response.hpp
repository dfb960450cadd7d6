// SPDX-License-Identifier: MIT
//
// Writing responses behind each other into one buffer, which is sent at once and whose memory is used again.
#ifndef EXAMPLES_HTTP_SERVER_RESPONSE_HPP
#define EXAMPLES_HTTP_SERVER_RESPONSE_HPP

#include <charconv>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

namespace http {

inline std::string_view reason(int status) noexcept {
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
    }
}

/// The Date header's value, made once per second and thread. Do not keep the view across a co_await: another thread may
/// go on from there. For the same reason it is not inlined: a compiler that inlines it into a coroutine may keep the
/// address of a thread_local across a suspension.
[[gnu::noinline]] inline std::string_view date() noexcept {
    thread_local std::time_t second = -1;
    thread_local char text[32];
    thread_local std::size_t length = 0;
    if (const std::time_t now = std::time(nullptr); now != second) {
        std::tm parts{};
#if defined(_WIN32)
        gmtime_s(&parts, &now);
#else
        gmtime_r(&now, &parts);
#endif
        length = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts); // in the C locale's English
        second = now;
    }
    return {text, length};
}

/// Appends a whole response. Returns where a further header may still be inserted.
/// @param head_only  the answer to HEAD: the length is told and the body left out
inline std::size_t append_response(std::string& out, int status, std::string_view body, bool head_only) {
    char number[20];
    const auto digits = [&number](std::size_t value) {
        return std::string_view(number, static_cast<std::size_t>(std::to_chars(number, number + sizeof number, value).ptr - number));
    };
    out.append("HTTP/1.1 ").append(digits(static_cast<std::size_t>(status))).append(" ").append(reason(status));
    out.append("\r\nServer: weft\r\nDate: ").append(date()).append("\r\n");
    const std::size_t headers = out.size();
    out.append(status == 405 ? "Allow: GET, HEAD\r\n" : "");
    out.append("Content-Type: text/plain\r\nContent-Length: ").append(digits(body.size())).append("\r\n\r\n");
    if (!head_only) {
        out.append(body);
    }
    return headers;
}

} // namespace http

#endif
