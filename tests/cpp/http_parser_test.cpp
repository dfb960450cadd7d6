// SPDX-License-Identifier: MIT
//
// The request parser of examples/cpp/http_server: what it accepts, what it refuses and with which status, and that neither
// depends on how the bytes were cut.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/cpp/http_server/request_parser.hpp"

namespace {

using progress = http::request_parser::progress;

// What a parser made of a stream, in one line per request: "GET /path 1.1 keep body=0", then "more", "midway" or "error 400".
std::string transcript(const std::vector<std::string>& pieces, const http::request_limits& limits = {}) {
    http::request_parser parser(limits);
    std::string result;
    std::string kept; // as a server's buffer: what was not taken stays, at another address each time
    for (const std::string& piece : pieces) {
        std::string moved = kept + piece;
        std::string_view input = moved;
        for (bool again = true; again;) {
            switch (parser.parse(input)) {
            case progress::head: {
                const http::request& r = parser.current();
                result += std::string(r.method) + ' ' + std::string(r.target) + (r.http11 ? " 1.1" : " 1.0") +
                          (r.keep_alive ? " keep" : " close") + (r.expects_continue ? " expect" : "") +
                          " body=" + std::to_string(r.content_length) + '\n';
                break;
            }
            case progress::complete: result += "complete\n"; break;
            case progress::more: again = false; break;
            case progress::failed: return result + "error " + std::to_string(parser.error_status());
            }
        }
        kept = std::string(input);
    }
    return result + (parser.midway() ? "midway" : "more");
}

std::string whole(const std::string& text, const http::request_limits& limits = {}) { return transcript({text}, limits); }

int status_of(const std::string& text, const http::request_limits& limits = {}) {
    const std::string result = whole(text, limits);
    return result.starts_with("error ") ? std::stoi(result.substr(6)) : 0;
}

std::string get(const std::string& headers) { return "GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n"; }

} // namespace

TEST_CASE("http parser: plain requests") {
    CHECK(whole("GET /x?y=1 HTTP/1.1\r\nHost: a\r\n\r\n") == "GET /x?y=1 1.1 keep body=0\ncomplete\nmore");
    CHECK(whole("HEAD / HTTP/1.0\r\n\r\n") == "HEAD / 1.0 close body=0\ncomplete\nmore");
    CHECK(whole("GET http://a.example:80/p/q HTTP/1.1\r\nhOsT:\t a \t\r\n\r\n") == "GET /p/q 1.1 keep body=0\ncomplete\nmore");
    CHECK(whole("GET http://a.example HTTP/1.1\r\nHost: a\r\n\r\n") == "GET / 1.1 keep body=0\ncomplete\nmore");
    CHECK(whole("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n") == "OPTIONS * 1.1 keep body=0\ncomplete\nmore");
    CHECK(whole("GET / HTTP/1.9\r\nHost:\r\n\r\n") == "GET / 1.1 keep body=0\ncomplete\nmore");
    CHECK(whole("") == "more");
    CHECK(whole("GET / HT") == "midway");
    CHECK(whole("GET / HTTP/1.1\r\n") == "midway");
}

TEST_CASE("http parser: the connection's future") {
    CHECK(whole(get("Connection: close\r\n")) == "GET / 1.1 close body=0\ncomplete\nmore");
    CHECK(whole(get("Connection: Upgrade, CLOSE\r\n")) == "GET / 1.1 close body=0\ncomplete\nmore");
    CHECK(whole(get("Connection: keep-alive, close\r\n")) == "GET / 1.1 close body=0\ncomplete\nmore");
    CHECK(whole(get("Connection: closed\r\n")) == "GET / 1.1 keep body=0\ncomplete\nmore");
    CHECK(whole("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n") == "GET / 1.0 keep body=0\ncomplete\nmore");
}

TEST_CASE("http parser: pipelined requests and bodies") {
    const std::string post = "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /";
    CHECK(whole(post + get("") + "\r\n" + get("")) == "POST /p 1.1 keep body=5\ncomplete\nGET / 1.1 keep body=0\ncomplete\n"
                                                       "GET / 1.1 keep body=0\ncomplete\nmore");
    CHECK(whole("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\nabcd") ==
          "POST / 1.1 keep expect body=5\nmidway");
    CHECK(whole(get("Expect: 100-continue\r\n")) == "GET / 1.1 keep body=0\ncomplete\nmore"); // no body to wait for
    CHECK(whole(get("Content-Length: 0\r\n")) == "GET / 1.1 keep body=0\ncomplete\nmore");
}

TEST_CASE("http parser: rubbish is refused") {
    for (const char* line : {"GET", "GET /", "GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET  / HTTP/1.1", "GET /a b HTTP/1.1",
                             "GET / http/1.1", "GET / HTTP/11", "GET / HTTP/1.x", "GET / HTTP/1.10", "GET / FTP/1.1", "G(T / HTTP/1.1",
                             "GET a HTTP/1.1", "GET * HTTP/1.1", "GET /#f HTTP/1.1", "GET http:// HTTP/1.1", "GET http:///x HTTP/1.1",
                             "GET /\x80 HTTP/1.1", "GET /\r HTTP/1.1", "GET\t/ HTTP/1.1", ": / HTTP/1.1", "CONNECT a:1 HTTP/1.1"}) {
        CAPTURE(line);
        CHECK(status_of(std::string(line) + "\r\nHost: a\r\n\r\n") == 400);
    }
    for (const char* header : {"NoColon", ": empty", "Bad name: x", "Name : x", " folded", "\tfolded", "X: a\rb", "X: \x7f", "Host: b",
                               "Content-Length:", "Content-Length: -1", "Content-Length: +1", "Content-Length: 1 2",
                               "Content-Length: 0x1", "Content-Length: 1\r\nContent-Length: 1", "Content-Length: 5, 5",
                               "Content-Length: 99999999999999999999", "Content-Length: 1\r\nTransfer-Encoding: chunked"}) {
        CAPTURE(header);
        CHECK(status_of(get(std::string(header) + "\r\n")) == 400);
    }
    CHECK(status_of("GET / HTTP/1.1\r\n\r\n") == 400);                                  // no Host
    CHECK(status_of("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == 400);    // RFC 9112 6.1
    CHECK(status_of("GET / HTTP/1.1\nHost: a\n\n") == 400);                             // bare newlines
    CHECK(status_of("\n") == 400);
    CHECK(status_of("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n") == 400);               // one blank line is all there may be
    CHECK(status_of(std::string("\x16\x03\x01\x02\x00\x01", 6)) == 400);                // TLS, with no newline in sight
    CHECK(status_of(get(std::string("X: \0\r\n", 6))) == 400);
    CHECK(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n") == 505);
    CHECK(status_of(get("Transfer-Encoding: chunked\r\n")) == 501);
    CHECK(status_of(get("Expect: the-unexpected\r\n")) == 417);
}

TEST_CASE("http parser: a failed parser stays failed") {
    http::request_parser parser;
    std::string_view bad = "nonsense\r\n";
    CHECK(parser.parse(bad) == progress::failed);
    std::string_view good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    CHECK(parser.parse(good) == progress::failed);
    CHECK(parser.error_status() == 400);
    CHECK(good.size() == 27);
}

TEST_CASE("http parser: limits, to the byte") {
    http::request_limits limits;
    limits.line_bytes = 64;
    limits.head_bytes = 128;
    limits.headers = 3;
    limits.body_bytes = 10;
    const auto line = [](std::size_t bytes) { return "GET /" + std::string(bytes - 16, 'x') + " HTTP/1.1\r\n"; };
    CHECK(line(64).size() == 64);
    CHECK(status_of(line(64) + "Host: a\r\n\r\n", limits) == 0);
    CHECK(status_of(line(65) + "Host: a\r\n\r\n", limits) == 414);
    CHECK(status_of(std::string(65, 'G'), limits) == 414);
    CHECK(whole(std::string(64, 'G'), limits) == "midway");
    const auto head = [&](std::size_t bytes) {
        return line(64) + "Host: a\r\nX: " + std::string(bytes - 64 - 9 - 3 - 4, 'x') + "\r\n\r\n";
    };
    CHECK(head(128).size() == 128);
    CHECK(status_of(head(128), limits) == 0);
    CHECK(status_of(head(129), limits) == 431);
    CHECK(status_of(line(64) + std::string(65, 'h'), limits) == 431);
    CHECK(status_of(get("A: 1\r\nB: 1\r\n"), limits) == 0);
    CHECK(status_of(get("A: 1\r\nB: 1\r\nC: 1\r\n"), limits) == 431);
    CHECK(status_of(get("Content-Length: 11\r\n"), limits) == 413);
    CHECK(whole(get("Content-Length: 10\r\n") + "0123456789", limits) == "GET / 1.1 keep body=10\ncomplete\nmore");
}

TEST_CASE("http parser: cut anywhere, the same comes out") {
    const std::string streams[] = {
        "\r\n" + get("Connection: keep-alive\r\n") + "POST /a HTTP/1.1\r\nHost: b\r\nContent-Length: 7\r\n\r\n\r\n\r\n\r\nx" + get("X: y\r\n"),
        get("Content-Length: 3\r\nExpect: 100-continue\r\n") + "abcHEAD http://h/p HTTP/1.1\r\nHost: h\r\n\r\nGET / HT",
        get("") + "\r\n\r\n" + get(""),
        get("") + "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        get("") + "GET /\x01 HTTP/1.1\r\n",
        get("Transfer-Encoding: gzip\r\n"),
    };
    for (const std::string& stream : streams) {
        CAPTURE(stream);
        const std::string expected = whole(stream);
        for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
            CAPTURE(cut);
            CHECK(transcript({stream.substr(0, cut), stream.substr(cut)}) == expected);
        }
        std::vector<std::string> bytes;
        for (const char c : stream) {
            bytes.emplace_back(1, c);
        }
        CHECK(transcript(bytes) == expected);
    }
}

TEST_CASE("http parser: mutated requests, cut at random") {
    const std::uint32_t seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::string valid = get("Connection: close\r\nContent-Length: 4\r\n") + "bodyGET /z HTTP/1.0\r\nX-Y: z, z\r\n\r\n";
    const std::string alphabet = std::string("\r\n :/,*HTP19gx\t\"", 16) + '\0' + '\x80';
    int accepted = 0;
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string stream = valid;
        for (std::size_t edits = below(3); edits > 0; --edits) {
            const std::size_t place = below(stream.size());
            switch (below(3)) {
            case 0: stream[place] = alphabet[below(alphabet.size())]; break;
            case 1: stream.insert(place, 1, alphabet[below(alphabet.size())]); break;
            default: stream.erase(place, 1 + below(3)); break;
            }
        }
        const std::string expected = whole(stream);
        const std::size_t first = below(stream.size() + 1);
        const std::size_t second = first + below(stream.size() - first + 1);
        CAPTURE(stream);
        CHECK(transcript({stream.substr(0, first), stream.substr(first, second - first), stream.substr(second)}) == expected);
        ++(expected.find("error") == expected.npos ? accepted : refused);
    }
    CHECK(accepted > 1000);
    CHECK(refused > 1000);
}
