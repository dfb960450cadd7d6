// SPDX-License-Identifier: MIT
//
// weft/endpoint.hpp: an IP address and a port, as a value: compared, hashed, read from and written to text. Names are not
// looked up. A default endpoint is none, and every operation of a socket refuses it with WEFT_EINVAL.
#ifndef WEFT_ENDPOINT_HPP
#define WEFT_ENDPOINT_HPP

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "c/io.h"
#include "error.hpp"

namespace weft {

class endpoint {
public:
    constexpr endpoint() noexcept = default;

    /// Takes what the C functions gave. An unknown family makes it none.
    constexpr explicit endpoint(const weft_endpoint &raw) noexcept
    {
        if (raw.family == WEFT_IPV4) { // what IPv4 does not use is zero, so that equal addresses compare equal
            raw_.family = WEFT_IPV4;
            raw_.port = raw.port;
            std::copy_n(raw.address, 4, raw_.address);
        } else if (raw.family == WEFT_IPV6) {
            raw_ = raw;
        }
    }

    [[nodiscard]] static constexpr endpoint ipv4(std::array<std::uint8_t, 4> address, std::uint16_t port) noexcept
    {
        endpoint result;
        result.raw_.family = WEFT_IPV4;
        result.raw_.port = port;
        std::copy(address.begin(), address.end(), result.raw_.address);
        return result;
    }

    /// @param scope  the zone of a link-local address: the interface's index
    [[nodiscard]] static constexpr endpoint ipv6(std::array<std::uint8_t, 16> address, std::uint16_t port,
                                                 std::uint32_t scope = 0) noexcept
    {
        endpoint result;
        result.raw_.family = WEFT_IPV6;
        result.raw_.port = port;
        result.raw_.scope = scope;
        std::copy(address.begin(), address.end(), result.raw_.address);
        return result;
    }

    /// This machine only: 127.0.0.1, or ::1. As a listener's port, 0 lets the system choose.
    [[nodiscard]] static constexpr endpoint loopback(std::uint16_t port) noexcept { return ipv4({127, 0, 0, 1}, port); }
    [[nodiscard]] static constexpr endpoint loopback_ipv6(std::uint16_t port) noexcept
    {
        return ipv6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, port);
    }

    /// Every interface: 0.0.0.0, or ::. Only for listeners.
    [[nodiscard]] static constexpr endpoint any(std::uint16_t port) noexcept { return ipv4({}, port); }
    [[nodiscard]] static constexpr endpoint any_ipv6(std::uint16_t port) noexcept { return ipv6({}, port); }

    /// Reads "127.0.0.1:80", "[::1]:80" or "[fe80::1%2]:80".
    /// @throws weft::error  WEFT_EINVAL for anything else
    [[nodiscard]] static endpoint parse(std::string_view text)
    {
        const std::optional<endpoint> result = try_parse(text);
        if (!result) {
            throw error(WEFT_EINVAL, ("endpoint '" + std::string(text) + "'").c_str());
        }
        return *result;
    }

    /// parse() that gives nothing where parse() throws.
    [[nodiscard]] static std::optional<endpoint> try_parse(std::string_view text) noexcept
    {
        char terminated[WEFT_ENDPOINT_TEXT_BYTES] = {};
        if (text.size() >= sizeof terminated || text.find('\0') != text.npos) {
            return std::nullopt;
        }
        std::copy(text.begin(), text.end(), terminated);
        weft_endpoint raw;
        if (weft_endpoint_parse(terminated, &raw) != WEFT_OK) {
            return std::nullopt;
        }
        return endpoint(raw);
    }

    /// Writes it as parse() reads it; "none" for a default endpoint.
    [[nodiscard]] std::string to_string() const
    {
        char text[WEFT_ENDPOINT_TEXT_BYTES];
        const int length = weft_endpoint_format(&raw_, text, sizeof text);
        return length < 0 ? "none" : std::string(text, static_cast<std::size_t>(length));
    }

    [[nodiscard]] constexpr bool is_ipv4() const noexcept { return raw_.family == WEFT_IPV4; }
    [[nodiscard]] constexpr bool is_ipv6() const noexcept { return raw_.family == WEFT_IPV6; }
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return raw_.family != 0; }

    [[nodiscard]] constexpr std::uint16_t port() const noexcept { return raw_.port; }
    [[nodiscard]] constexpr endpoint with_port(std::uint16_t port) const noexcept
    {
        endpoint result = *this;
        result.raw_.port = port;
        return result;
    }

    /// For the C functions.
    [[nodiscard]] constexpr const weft_endpoint &native() const noexcept { return raw_; }

    /// Ordered by family, address, zone and port.
    [[nodiscard]] friend constexpr bool operator==(const endpoint &a, const endpoint &b) noexcept
    {
        return (a <=> b) == std::strong_ordering::equal;
    }
    [[nodiscard]] friend constexpr std::strong_ordering operator<=>(const endpoint &a, const endpoint &b) noexcept
    {
        if (const auto order = a.raw_.family <=> b.raw_.family; order != 0) {
            return order;
        }
        for (std::size_t i = 0; i < sizeof a.raw_.address; ++i) {
            if (const auto order = a.raw_.address[i] <=> b.raw_.address[i]; order != 0) {
                return order;
            }
        }
        if (const auto order = a.raw_.scope <=> b.raw_.scope; order != 0) {
            return order;
        }
        return a.raw_.port <=> b.raw_.port;
    }

    template <class Stream>
    friend auto operator<<(Stream &stream, const endpoint &e) -> decltype(stream << std::string_view())
    {
        return stream << std::string_view(e.to_string());
    }

private:
    weft_endpoint raw_{};
};

} // namespace weft

template <>
struct std::hash<weft::endpoint> {
    /// FNV-1a, 64 bits, over everything that == compares.
    [[nodiscard]] std::size_t operator()(const weft::endpoint &e) const noexcept
    {
        const weft_endpoint &raw = e.native();
        std::uint64_t mixed = 0xcbf29ce484222325;
        const auto mix = [&mixed](std::uint64_t value) { mixed = (mixed ^ value) * 0x100000001b3; };
        std::for_each(std::begin(raw.address), std::end(raw.address), mix);
        mix(raw.family);
        mix(raw.scope);
        mix(raw.port);
        return static_cast<std::size_t>(mixed);
    }
};

#endif
