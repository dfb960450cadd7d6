// SPDX-License-Identifier: MIT
//
// weft/resolve.hpp and connecting by name: without a network, with the names and the name servers of this machine alone.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include <weft.hpp>

#include "support.hpp"
#include "tcp_support.hpp"

using namespace std::chrono_literals;
using test::endpoint;
using test::task;
using test::tcp_listener;
using test::tcp_stream;

namespace {

/// A port where nobody listens: it was free a moment ago. Not at 127.0.0.1, where it could be another process's by now, or that of the very socket that connects.
endpoint closed_port() {
    tcp_listener listener = tcp_listener::bind(endpoint::ipv4({127, 0, 0, 2}, 0));
    return listener.local_endpoint();
}

} // namespace

TEST_CASE("resolve: numbers, services, and the names of /etc/hosts") {
    test::run(1, []() -> task<> {
        const std::uint64_t home = test::here();
        const std::vector<endpoint> four = co_await weft::resolve("192.0.2.1", "https");
        REQUIRE(four.size() == 1);
        CHECK(four[0] == endpoint::parse("192.0.2.1:443"));
        CHECK(test::here() == home);
        const std::vector<endpoint> local = co_await weft::resolve("localhost");
        REQUIRE(!local.empty());
        CHECK(local[0].port() == 0);
        const int unknown = co_await test::code_of(weft::resolve("192.0.2.1", "no-such-service"));
        CHECK(unknown == WEFT_ENOENT);
        const int empty = co_await test::code_of(weft::resolve(""));
        CHECK(empty == WEFT_EINVAL);
    });
}

TEST_CASE("resolve: a name server that is not there, and a limit of time") {
    test::run(1, []() -> task<> {
        const int refused = co_await test::code_of(weft::resolve("name.invalid", "", endpoint::loopback(1)));
        CHECK(refused == WEFT_ENOANSWER);
        const auto ended = co_await weft::try_timeout(weft::resolve("localhost"), 1h);
        CHECK(ended.has_value());
        const weft::cancellation_source source;
        source.request();
        const int cancelled = co_await test::code_of(weft::resolve("localhost") | weft::with_token(source.token()));
        CHECK(cancelled == WEFT_ECANCELED);
    });
}

TEST_CASE("resolve: from nowhere a scheduler must be named") {
    weft::runtime pool({.workers = 1});
    const auto asks = [&pool](bool named) -> task<int> {
        int code = WEFT_OK;
        try {
            if (named) {
                const std::vector<endpoint> found = co_await weft::resolve(pool.scheduler(), "127.0.0.1");
                code = static_cast<int>(found.size());
            } else {
                const std::vector<endpoint> found = co_await weft::resolve("127.0.0.1");
            }
        } catch (const weft::error &e) {
            code = e.code().value();
        }
        co_return code;
    };
    CHECK(weft::sync_wait(asks(true)) == 1);
    CHECK(weft::sync_wait(asks(false)) == WEFT_ENOTWORKER);
}

TEST_CASE("resolve: families take turns") {
    const auto make = [](std::initializer_list<const char *> texts) {
        std::vector<endpoint> all;
        for (const char *text : texts) {
            all.push_back(endpoint::parse(text));
        }
        return all;
    };
    CHECK(weft::detail::interleave({}).empty());
    CHECK(weft::detail::interleave(make({"[::1]:1", "[::2]:1", "1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"})) ==
          make({"[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "3.3.3.3:1"}));
    CHECK(weft::detail::interleave(make({"1.1.1.1:1", "2.2.2.2:1", "[::1]:1"})) == make({"1.1.1.1:1", "[::1]:1", "2.2.2.2:1"}));
}

TEST_CASE("connect: by name") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        auto [server, client] =
            co_await weft::when_all(listener.accept(), tcp_stream::connect("localhost", listener.local_endpoint().port()));
        co_await client.send_all(std::string_view("name"));
        std::array<char, 4> text{};
        co_await server.receive_exactly(text);
        CHECK(std::string(text.data(), 4) == "name");
    });
}

TEST_CASE("connect: the first of several that answers, and the first failure if none does") {
    test::run(2, []() -> task<> {
        tcp_listener listener = tcp_listener::bind(endpoint::loopback(0));
        const endpoint nobody = closed_port();
        std::vector<endpoint> to{nobody, nobody, listener.local_endpoint(), nobody};
        auto [server, client] = co_await weft::when_all(listener.accept(), tcp_stream::connect(to));
        CHECK(client.remote_endpoint() == listener.local_endpoint());
        std::vector<endpoint> nobodies{nobody, nobody, nobody};
        const int refused = co_await test::code_of(tcp_stream::connect(nobodies));
        CHECK(refused == WEFT_ECONNREFUSED);
        std::vector<endpoint> none;
        const int nowhere = co_await test::code_of(tcp_stream::connect(none));
        CHECK(nowhere == WEFT_EINVAL);
    });
}

namespace {

/// An attempt of a race without sockets: succeeds or fails after a while, or waits until it is cancelled.
struct outcome {
    int status = WEFT_OK;
    std::uint16_t port = 0;
};

struct attempts {
    std::vector<std::uint16_t> begun;
    int cancelled = 0;

    task<outcome> one(endpoint to) {
        begun.push_back(to.port());
        outcome result{WEFT_ECONNREFUSED, to.port()};
        if (to.port() >= 1000) { // hangs
            try {
                co_await weft::sleep_for(1h);
            } catch (const weft::operation_cancelled &) {
                ++cancelled;
                result.status = WEFT_ECANCELED;
            }
        } else if (to.port() >= 100) {
            result.status = WEFT_OK;
        }
        co_return result;
    }
};

task<outcome> race(attempts &of, std::vector<endpoint> to) {
    const auto connect = [&of](const endpoint &each) { return of.one(each); };
    weft::detail::connect_race<outcome, decltype(connect)> racing(std::move(to), weft::current_scheduler(), connect);
    co_return co_await racing.run();
}

// No initializer lists: see the guide on GCC 12.
template <class... N>
std::vector<std::uint16_t> numbers(N... number) {
    return {static_cast<std::uint16_t>(number)...};
}

template <class... N>
std::vector<endpoint> ports(N... number) {
    return {endpoint::loopback(static_cast<std::uint16_t>(number))...};
}

} // namespace

TEST_CASE("connect: attempts begin one after the other, and the losers are cancelled and waited for") {
    test::run(1, []() -> task<> {
        attempts fail_first;
        const outcome won = co_await race(fail_first, ports(1, 2, 100, 101));
        CHECK(won.port == 100);
        CHECK(fail_first.begun == numbers(1, 2, 100));

        attempts hang_first;
        const auto begin = test::clock::now();
        const outcome second = co_await race(hang_first, ports(1000, 1001, 100, 102));
        CHECK(second.port == 100);
        CHECK(hang_first.begun == numbers(1000, 1001, 100));
        CHECK(hang_first.cancelled == 2);
        CHECK(test::clock::now() - begin >= 2 * weft::detail::attempt_delay);

        attempts all_fail;
        const outcome failed = co_await race(all_fail, ports(3, 4));
        CHECK(failed.port == 3);
        CHECK(failed.status == WEFT_ECONNREFUSED);
    });
}

TEST_CASE("connect: a cancelled race waits for its attempts") {
    test::run(1, []() -> task<> {
        attempts hang;
        const auto ended = co_await weft::when_any(race(hang, ports(1000, 1001)), weft::sleep_for(1ms));
        CHECK(ended.index == 1);
        CHECK(hang.begun == numbers(1000));
        CHECK(hang.cancelled == 1);
        attempts both;
        const auto later = co_await weft::when_any(race(both, ports(1000, 1001)), weft::sleep_for(2 * weft::detail::attempt_delay));
        CHECK(later.index == 1);
        CHECK(both.cancelled == static_cast<int>(both.begun.size()));
    });
}
