// SPDX-License-Identifier: MIT
//
// weft/channel.hpp: order, capacity, close, cancellation, and nothing lost between many senders and receivers.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weft/async_scope.hpp>
#include <weft/cancellation.hpp>
#include <weft/channel.hpp>
#include <weft/mutex.hpp>
#include <weft/sleep.hpp>
#include <weft/spawn.hpp>
#include <weft/sync_wait.hpp>
#include <weft/this_task.hpp>
#include <weft/when_all.hpp>
#include <weft/with_token.hpp>

#include "support.hpp"

using namespace std::chrono_literals;

TEST_CASE("channel: values come out in order; a full one makes its sender wait") {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
        test::run(1, [&]() -> weft::task<> {
            weft::channel<std::unique_ptr<int>> channel(capacity);
            CHECK(channel.capacity() == capacity);
            std::size_t sent = 0;
            const auto sender = [&]() -> weft::task<> {
                for (int i = 0; i < 10; ++i) {
                    CHECK(co_await channel.send(std::make_unique<int>(i)));
                    ++sent;
                }
                channel.close();
            };
            std::vector<int> got;
            const auto receiver = [&]() -> weft::task<> {
                while (std::optional<std::unique_ptr<int>> value = co_await channel.receive()) {
                    got.push_back(**value);
                }
            };
            weft::async_scope scope;
            scope.spawn(sender());
            for (int i = 0; i < 5; ++i) {
                co_await weft::this_task::yield();
            }
            CHECK(sent == capacity);
            scope.spawn(receiver());
            co_await scope.join();
            CHECK(sent == 10);
            CHECK(got == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
        });
    }
}

TEST_CASE("channel: without waiting") {
    weft::channel<std::string> channel(2);
    CHECK_FALSE(channel.try_receive().has_value());
    CHECK(channel.try_send("a"));
    CHECK(channel.try_send("b"));
    std::string kept = "c";
    CHECK_FALSE(channel.try_send(kept));
    CHECK(kept == "c");
    CHECK(channel.try_receive() == "a");
    CHECK(channel.try_send(kept));
    CHECK(channel.try_receive() == "b");
    CHECK(channel.try_receive() == "c");
    channel.close();
    CHECK_FALSE(channel.try_send("d"));
}

TEST_CASE("channel: close lets everybody go") {
    test::run(1, []() -> weft::task<> {
        weft::channel<int> full(1);
        weft::channel<int> empty(1);
        CHECK(full.try_send(1));
        int refused = 0;
        int ended = 0;
        weft::async_scope scope;
        for (int i = 0; i < 3; ++i) {
            scope.spawn([&]() -> weft::task<> { refused += co_await full.send(2) ? 0 : 1; });
            scope.spawn([&]() -> weft::task<> { ended += (co_await empty.receive()).has_value() ? 0 : 1; });
        }
        co_await weft::this_task::yield();
        co_await weft::this_task::yield();
        full.close();
        empty.close();
        co_await scope.join();
        CHECK(refused == 3);
        CHECK(ended == 3);
        CHECK_FALSE(co_await full.send(3));
        CHECK(co_await full.receive() == 1); // what was in it is not lost
        CHECK_FALSE((co_await full.receive()).has_value());
        full.close();
    });
}

TEST_CASE("channel: waits are cancelled; what was to be sent is not") {
    test::run(1, []() -> weft::task<> {
        const weft::cancellation_source source;
        weft::channel<int> full(1);
        weft::channel<int> empty(0);
        CHECK(full.try_send(1));
        int cancelled = 0;
        weft::async_scope scope;
        const auto note = [&](auto operation) -> weft::task<> {
            try {
                static_cast<void>(co_await std::move(operation));
            } catch (const weft::operation_cancelled &) {
                ++cancelled;
            }
        };
        scope.spawn(note(full.send(2)) | weft::with_token(source.token()));
        scope.spawn(note(empty.receive()) | weft::with_token(source.token()));
        co_await weft::this_task::yield();
        co_await weft::this_task::yield();
        source.request();
        co_await scope.join();
        CHECK(cancelled == 2);
        CHECK(full.try_receive() == 1);
        CHECK_FALSE(full.try_receive().has_value());
        CHECK_FALSE(empty.try_send(3)); // nobody waits any more
    });
}

TEST_CASE("channel: many senders, many receivers, cancellations in between; nothing is lost or doubled") {
    constexpr int senders = 4;
    constexpr int each = 3000;
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{5}}) {
        long received = 0;
        long sum = 0;
        int cancelled = 0;
        test::run(4, [&]() -> weft::task<> {
            weft::channel<int> channel(capacity);
            weft::mutex counters;
            const auto sender = [&](int first) -> weft::task<> {
                for (int i = 0; i < each; ++i) {
                    CHECK(co_await channel.send(first + i));
                }
            };
            const auto receiver = [&]() -> weft::task<> {
                long count = 0;
                long total = 0;
                int gave_up = 0;
                for (;;) {
                    const weft::cancellation_source source;
                    std::optional<int> value;
                    bool open = true;
                    const auto receive = [&]() -> weft::task<> {
                        try {
                            value = co_await channel.receive();
                            open = value.has_value();
                        } catch (const weft::operation_cancelled &) {
                            ++gave_up;
                        }
                    };
                    const auto requester = [&]() -> weft::task<> {
                        co_await weft::this_task::yield();
                        source.request();
                    };
                    co_await weft::when_all(receive() | weft::with_token(source.token()), requester());
                    if (!open) {
                        break;
                    }
                    if (value) {
                        ++count;
                        total += *value;
                    }
                }
                const auto guard = co_await counters.scoped_lock();
                received += count;
                sum += total;
                cancelled += gave_up;
            };
            weft::async_scope receivers;
            receivers.spawn(receiver());
            receivers.spawn(receiver());
            receivers.spawn(receiver());
            co_await weft::when_all(sender(0), sender(each), sender(2 * each), sender(3 * each));
            channel.close();
            co_await receivers.join();
        });
        constexpr long count = senders * each;
        CHECK(received == count);
        CHECK(sum == count * (count - 1) / 2);
        MESSAGE("capacity " << capacity << ": " << cancelled << " receives were cancelled");
    }
}

TEST_CASE("channel: destroyed while a task waits it ends the program and says so") {
    const test::death end = test::dies("channel: destroyed while a task waits it ends the program and says so", [] {
        weft::runtime pool;
        auto channel = std::make_unique<weft::channel<int>>(1);
        weft::spawn(pool.scheduler(), channel->receive());
        weft::sync_wait(pool.scheduler(), weft::sleep_for(5ms));
        channel.reset();
    });
    CHECK(end.aborted);
    CHECK(end.says("weft: a channel was destroyed while a task waited to receive"));
}
