// SPDX-License-Identifier: MIT
//
// What this server has to show: "/" and "/stats".
#ifndef EXAMPLES_HTTP_SERVER_PAGES_HPP
#define EXAMPLES_HTTP_SERVER_PAGES_HPP

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <weft/runtime.hpp>

#include "request_parser.hpp"
#include "response.hpp"

namespace http {

enum class page { home, stats, not_found, not_allowed };

struct route {
    page where = page::not_found;
    bool head_only = false;
};

inline route route_of(const request& r) noexcept {
    const std::string_view path = r.target.substr(0, r.target.find('?'));
    const bool head = r.method == "HEAD";
    const page where = path == "/" ? page::home : path == "/stats" ? page::stats : page::not_found;
    const bool allowed = head || r.method == "GET" || where == page::not_found;
    return {allowed ? where : page::not_allowed, head};
}

/// The scheduler's counters, "name value" in each line, in a buffer of a size that suffices.
class stats_text {
public:
    explicit stats_text(const weft::runtime_stats& s) noexcept {
        const std::pair<std::string_view, std::uint64_t> lines[] = {
            {"workers", s.workers},
            {"workers_parked", s.parked},
            {"descriptors", s.descriptors},
            {"ops_run", s.ops_run},
            {"crossings", s.crossings},
            {"steals", s.steals},
            {"ops_stolen", s.ops_stolen},
            {"parks", s.parks},
            {"wakes", s.wakes},
            {"injected", s.injected},
            {"timers_started", s.timers_started},
            {"timers_fired", s.timers_fired},
            {"timers_cancelled", s.timers_cancelled},
            {"io_started", s.io_started},
            {"io_immediate", s.io_immediate},
            {"io_events", s.io_events},
        };
        static_assert(std::size(lines) * line_bytes <= sizeof text_);
        for (const auto& [name, value] : lines) {
            std::memcpy(text_.data() + size_, name.data(), name.size());
            size_ += name.size();
            text_[size_++] = ' ';
            size_ = static_cast<std::size_t>(std::to_chars(text_.data() + size_, text_.data() + text_.size(), value).ptr - text_.data());
            text_[size_++] = '\n';
        }
    }

    [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }

private:
    static constexpr std::size_t line_bytes = 40; // 16 of the longest name, 20 of the largest number, a space and a newline

    std::array<char, 16 * line_bytes> text_;
    std::size_t size_ = 0;
};

/// Appends the answer to a request; returns what append_response does.
inline std::size_t append_page(std::string& out, route to, const weft::runtime& runtime) {
    switch (to.where) {
    case page::home: return append_response(out, 200, "Hello from weft\n", to.head_only);
    case page::stats: return append_response(out, 200, stats_text(runtime.stats()).view(), to.head_only);
    case page::not_allowed: return append_response(out, 405, "GET and HEAD are allowed here\n", to.head_only);
    default: return append_response(out, 404, "There is no such page\n", to.head_only);
    }
}

} // namespace http

#endif
