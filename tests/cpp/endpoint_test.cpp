// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <vector>

#include <weft/endpoint.hpp>

using weft::endpoint;

static_assert(endpoint::loopback(80).port() == 80 && endpoint::loopback(80).is_ipv4());
static_assert(endpoint::any_ipv6(1) < endpoint::loopback_ipv6(1));
static_assert(!endpoint() && endpoint::any(0));

TEST_CASE("endpoint: text in and out") {
    for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:0", "[fe80::1%2]:8080",
                             "[2001:db8::8:800:200c:417a]:443", "[::ffff:192.0.2.1]:1"}) {
        CAPTURE(text);
        CHECK(endpoint::parse(text).to_string() == text);
    }
    CHECK(endpoint::parse("[2001:DB8:0:0:0:0:0:1]:7").to_string() == "[2001:db8::1]:7");
    CHECK(endpoint::parse("127.0.0.1:80") == endpoint::loopback(80));
    CHECK(endpoint::parse("[::1]:80") == endpoint::loopback_ipv6(80));
    CHECK(endpoint::parse("[fe80::1%2]:1").native().scope == 2);
    CHECK(endpoint().to_string() == "none");
    std::ostringstream stream;
    stream << endpoint::any(5) << ' ' << endpoint();
    CHECK(stream.str() == "0.0.0.0:5 none");
}

TEST_CASE("endpoint: what is no address is refused") {
    const std::string longer(100, '1');
    for (const std::string_view text :
         {std::string_view(""), std::string_view("127.0.0.1"), std::string_view("127.0.0.1:"), std::string_view("127.0.0.1:65536"),
          std::string_view("127.0.0.1:-1"), std::string_view("127.0.0.1:80 "), std::string_view(" 127.0.0.1:80"),
          std::string_view("127.0.0.1:80x"), std::string_view("127.0.0:80"), std::string_view("127.0.0.256:80"),
          std::string_view("localhost:80"), std::string_view("::1:80"), std::string_view("[::1]"), std::string_view("[::1]:"),
          std::string_view("[::1:80"), std::string_view("[127.0.0.1]:80"), std::string_view("[:::]:80"), std::string_view("[::1%]:80"),
          std::string_view("127.0.0.1:80\0", 13), std::string_view("127.0.0.1:80\0x", 14), std::string_view(longer)}) {
        CAPTURE(text);
        CHECK_FALSE(endpoint::try_parse(text).has_value());
        try {
            static_cast<void>(endpoint::parse(text));
            FAIL("was accepted");
        } catch (const weft::error& e) {
            CHECK(e.code() == weft::errc::invalid_argument);
            CHECK(std::string_view(e.what()).find("endpoint '") != std::string_view::npos);
        }
    }
}

TEST_CASE("endpoint: order and equality go by family, address, zone and port") {
    const std::vector<endpoint> sorted = {
        endpoint(),
        endpoint::any(0),
        endpoint::any(1),
        endpoint::ipv4({10, 0, 0, 1}, 9),
        endpoint::ipv4({10, 0, 0, 2}, 1),
        endpoint::any_ipv6(0),
        endpoint::loopback_ipv6(1),
        endpoint::loopback_ipv6(2),
        endpoint::ipv6({0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 1, 1),
        endpoint::ipv6({0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 0, 2),
    };
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        for (std::size_t j = 0; j < sorted.size(); ++j) {
            CAPTURE(i);
            CAPTURE(j);
            CHECK((sorted[i] < sorted[j]) == (i < j));
            CHECK((sorted[i] == sorted[j]) == (i == j));
        }
    }
    const std::unordered_set<endpoint> hashed(sorted.begin(), sorted.end());
    CHECK(hashed.size() == sorted.size());
    CHECK(hashed.count(endpoint::parse("10.0.0.2:1")) == 1);
    CHECK(hashed.count(endpoint::parse("10.0.0.2:2")) == 0);
}

TEST_CASE("endpoint: hashes of neighbours differ") {
    std::set<std::size_t> hashes;
    for (std::uint16_t port = 0; port < 1000; ++port) {
        hashes.insert(std::hash<endpoint>()(endpoint::loopback(port)));
        hashes.insert(std::hash<endpoint>()(endpoint::loopback_ipv6(port)));
    }
    CHECK(hashes.size() == 2000);
}

TEST_CASE("endpoint: from the C structure, without what the family does not use") {
    weft_endpoint raw{};
    raw.family = WEFT_IPV4;
    raw.port = 7;
    raw.scope = 99;
    std::fill(std::begin(raw.address), std::end(raw.address), std::uint8_t{1});
    CHECK(endpoint(raw) == endpoint::ipv4({1, 1, 1, 1}, 7));
    CHECK(endpoint(raw).native().scope == 0);
    raw.family = WEFT_IPV6;
    CHECK(endpoint(raw).is_ipv6());
    CHECK(endpoint(raw).native().scope == 99);
    raw.family = 5;
    CHECK(endpoint(raw) == endpoint());
    CHECK(endpoint::loopback(1).with_port(2) == endpoint::loopback(2));
}
