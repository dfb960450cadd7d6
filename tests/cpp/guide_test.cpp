// SPDX-License-Identifier: MIT
//
// docs/guide.md: its snippets, as they stand there, are compiled and run here; and what stands there is compared.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <fstream>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <weft.hpp>

using namespace std::chrono_literals;

namespace {

weft::task<int> async_main() {
    co_await weft::sleep_for(1ms);
    co_return 0;
}

int program() { return weft::run(async_main()); }

int from_a_plain_thread() {
    weft::runtime pool({.workers = 2});
    return weft::sync_wait(pool.scheduler(), async_main()); // blocks this thread, which is no worker
}

weft::task<std::string> load(std::string name) { // by value: the frame keeps it
    co_await weft::sleep_for(1ms);
    if (name.empty()) {
        throw std::invalid_argument("no name");
    }
    co_return "contents of " + name;
}

weft::task<std::size_t> measure(std::string name) {
    const std::string text = co_await load(std::move(name));
    co_return text.size();
}

weft::task<std::string> both() {
    const auto [left, right] = co_await weft::when_all(load("a"), load("b"));
    co_return left + ", " + right;
}

weft::task<std::size_t> many(std::vector<std::string> names) {
    std::vector<weft::task<std::size_t>> tasks;
    for (std::string &name : names) {
        tasks.push_back(measure(std::move(name)));
    }
    const std::vector<std::size_t> sizes = co_await weft::when_all(std::move(tasks));
    co_return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

long occurrences(std::span<const int> values, int wanted) {
    if (values.size() < 10000) {
        return std::count(values.begin(), values.end(), wanted);
    }
    const std::size_t half = values.size() / 2;
    const auto [left, right] = weft::fork_join([&] { return occurrences(values.first(half), wanted); },
                                               [&] { return occurrences(values.subspan(half), wanted); });
    return left + right;
}

weft::task<long> count_squares(std::vector<int> values, int wanted) {
    weft::parallel_for(std::size_t{0}, values.size(), [&](std::size_t i) { values[i] *= values[i]; }, 1000);
    co_return occurrences(values, wanted);
}

weft::task<std::string> fastest() {
    const auto first = co_await weft::when_any(load("mirror one"), load("mirror two"));
    co_return first.index == 0 ? std::get<0>(first.value) : std::get<1>(first.value);
}

weft::task<std::string> impatient() {
    try {
        co_return co_await weft::timeout(load("big"), 1h);
    } catch (const weft::timed_out &) {
        co_return "too late";
    }
}

weft::task<bool> in_time() {
    const std::optional<std::string> text = co_await (load("small") | weft::try_timeout(1h));
    co_return text.has_value();
}

weft::task<int> serve(int requests) {
    weft::async_scope scope;
    std::atomic<int> answered{0};
    for (int i = 0; i < requests; ++i) {
        scope.spawn([&answered]() -> weft::task<> {
            co_await weft::sleep_for(1ms);
            ++answered;
        });
    }
    co_await scope.join(); // before anything goes that the tasks refer to
    co_return answered;
}

weft::task<bool> cancel_by_hand() {
    const weft::cancellation_source source;
    const auto worker = []() -> weft::task<bool> {
        try {
            co_await weft::sleep_for(1h);
        } catch (const weft::operation_cancelled &) {
            co_return true;
        }
        co_return false;
    };
    const auto canceller = [&source]() -> weft::task<> {
        co_await weft::sleep_for(1ms);
        source.request();
    };
    const auto [cancelled, none] = co_await weft::when_all(worker() | weft::with_token(source.token()), canceller());
    co_return cancelled;
}

weft::task<> close_politely() { co_await weft::sleep_for(1ms); }

weft::task<> session() {
    std::exception_ptr failure; // C++ allows no co_await in a handler
    try {
        co_await weft::sleep_for(1h);
    } catch (...) {
        failure = std::current_exception();
    }
    co_await (close_politely() | weft::with_token({}));
    if (failure != nullptr) {
        std::rethrow_exception(failure);
    }
}

weft::task<bool> elsewhere(weft::scheduler here, weft::scheduler other) {
    // The work runs there; we go on here.
    const std::string text = co_await (load("x") | weft::schedule_on(other));
    const bool home = weft::current_scheduler() == here;
    // The rest of this task lives there.
    co_await weft::resume_on(other);
    co_return home && weft::current_scheduler() == other && !text.empty();
}

weft::task<int> call_that_blocks() {
    co_return co_await weft::blocking([] { return 42; }); // takes its time
}

weft::task<int> through_a_channel() {
    weft::channel<int> numbers(4);
    const auto producer = [&]() -> weft::task<> {
        for (int i = 1; i <= 10; ++i) {
            if (!co_await numbers.send(i)) {
                co_return; // closed by the other side
            }
        }
        numbers.close();
    };
    const auto consumer = [&]() -> weft::task<int> {
        int sum = 0;
        while (const std::optional<int> number = co_await numbers.receive()) {
            sum += *number;
        }
        co_return sum;
    };
    const auto [none, sum] = co_await weft::when_all(producer(), consumer());
    co_return sum;
}

struct async_answer {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> task) {
        std::thread([this, task] { // stands for a library that calls back
            value = 42;
            task.resume(); // the last thing: *this may be gone afterwards
        }).detach();
    }
    int await_resume() const noexcept { return value; }
    int value = 0;
};

weft::task<int> adapted() { co_return co_await async_answer{}; }

weft::task<> whole_life() {
    weft::async_scope scope;
    weft::event never;
    scope.spawn(never.wait());
    scope.request_cancel();
    co_await scope.join();
}

weft::task<int> safe_lambda(int n) {
    const auto by_parameter = [](int m) -> weft::task<int> { co_return m; };
    const int here = co_await [n]() -> weft::task<int> { co_return n; }(); // awaited before the lambda goes
    co_return here + co_await by_parameter(n);
}

weft::task<bool> careful() {
    weft::async_scope scope;
    std::exception_ptr failure;
    try {
        scope.spawn(close_politely());
        throw std::runtime_error("something else went wrong");
    } catch (...) {
        failure = std::current_exception();
        scope.request_cancel();
    }
    co_await scope.join();
    co_return failure != nullptr;
}

weft::task<std::size_t> lines_of(std::string path) {
    const std::string text = co_await weft::read_file(path);
    co_return co_await weft::blocking([&text] { // stands for a call that blocks
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    });
}

weft::task<std::string> ask(weft::endpoint server, std::string question) {
    weft::udp_socket socket = weft::udp_socket::bind(weft::endpoint::any(0));
    std::array<char, 1500> room{};
    for (;;) { // the question or the answer may get lost
        co_await socket.send_to(server, question);
        const auto answer = co_await weft::try_timeout(socket.receive_from(room), 200ms);
        if (answer && answer->from == server) {
            co_return std::string(room.data(), answer->size);
        }
    }
}

std::string read(const std::string &path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

} // namespace

TEST_CASE("guide: every snippet that is not marked as unsafe stands in this file") {
    const std::string here = __FILE__;
    const std::string source = read(here);
    const std::string guide = read(here.substr(0, here.rfind("tests/cpp/")) + "docs/guide.md");
    REQUIRE_FALSE(source.empty());
    REQUIRE_FALSE(guide.empty());
    const std::string fence = "```cpp\n";
    int snippets = 0;
    for (std::size_t at = guide.find(fence); at != std::string::npos; at = guide.find(fence, at)) {
        at += fence.size();
        const std::string snippet = guide.substr(at, guide.find("```", at) - at);
        if (snippet.rfind("// unsafe", 0) != 0) {
            ++snippets;
            CHECK_MESSAGE(source.find(snippet) != std::string::npos, snippet);
        }
    }
    CHECK(snippets > 10);
}

TEST_CASE("guide: the snippets do what the guide says") {
    CHECK(program() == 0);
    CHECK(from_a_plain_thread() == 0);
    weft::runtime other;
    weft::run([&]() -> weft::task<> {
        CHECK(co_await load("n") == "contents of n");
        CHECK(co_await measure("n") == 13);
        CHECK(co_await both() == "contents of a, contents of b");
        std::vector<std::string> names;
        names.emplace_back("a");
        names.emplace_back("bb");
        CHECK(co_await many(std::move(names)) == 13 + 14);
        CHECK(co_await count_squares(std::vector<int>(50000, -3), 9) == 50000);
        CHECK((co_await fastest()).rfind("contents of mirror", 0) == 0);
        CHECK(co_await impatient() == "contents of big");
        CHECK(co_await in_time());
        CHECK(co_await serve(20) == 20);
        CHECK(co_await cancel_by_hand());
        CHECK_FALSE(co_await weft::try_timeout(session(), 1ms));
        CHECK(co_await elsewhere(weft::current_scheduler(), other.scheduler()));
        CHECK(co_await call_that_blocks() == 42);
        weft::udp_socket server = weft::udp_socket::bind(weft::endpoint::loopback(0));
        const auto answers = [&server]() -> weft::task<> {
            std::array<char, 16> room{};
            const weft::datagram asked = co_await server.receive_from(room);
            co_await server.send_to(asked.from, std::string(room.data(), asked.size) + "!");
        };
        const auto [answer, served] = co_await weft::when_all(ask(server.local_endpoint(), "there"), answers());
        static_cast<void>(served);
        CHECK(answer == "there!");
        const std::size_t lines = co_await lines_of("/proc/self/status");
        CHECK(lines > 10);
        CHECK(co_await through_a_channel() == 55);
        CHECK(co_await adapted() == 42);
        co_await whole_life();
        CHECK(co_await safe_lambda(2) == 4);
        CHECK(co_await careful());
    });
}
