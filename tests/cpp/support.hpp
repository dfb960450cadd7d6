// SPDX-License-Identifier: MIT
//
// What several C++ tests need: a runtime to run in, a way to tell where one is, and programs that are meant to die.
#ifndef TESTS_CPP_SUPPORT_HPP
#define TESTS_CPP_SUPPORT_HPP

#include <array>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include <weft/run.hpp>
#include <weft/task.hpp>

namespace test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Runs a function that makes a task on a runtime of its own. One worker runs one op after the other, whatever holds it up: for cases that expect an order.
template <class F>
decltype(auto) run(std::uint32_t workers, F &&f) {
    weft::runtime_options options;
    options.workers = workers;
    if (workers == 1) options.max_workers = 1;
    return weft::run(options, std::forward<F>(f));
}

/// The runtime whose worker this thread is; 0 elsewhere. Not inlined: a coroutine must not keep it over a suspension.
[[gnu::noinline]] inline std::uint64_t here() { return weft_runtime_current().id; }

/// Calls a function on a thread that nobody joins. Not std::thread::detach on MinGW, where such threads were seen not to begin, under Wine and
/// load: in half of the runs of a test that starts one after the other, and in none with threads that are joined, or the system's own.
template <class F>
void on_detached_thread(F f) {
#if defined(_WIN32)
    const HANDLE thread = ::CreateThread(
        nullptr, 0,
        [](void *raw) -> DWORD {
            const std::unique_ptr<F> call(static_cast<F *>(raw));
            (*call)();
            return 0;
        },
        new F(std::move(f)), 0, nullptr);
    if (thread == nullptr) {
        std::abort();
    }
    ::CloseHandle(thread);
#else
    std::thread(std::move(f)).detach();
#endif
}

/// An awaitable that is not weft's: it completes on a new thread after a while.
struct on_new_thread {
    std::chrono::microseconds after{0};

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) const {
        on_detached_thread([coroutine, after = after] {
            std::this_thread::sleep_for(after);
            coroutine.resume();
        });
    }
    int await_resume() const noexcept { return 42; }
};

/// How a program ended.
struct death {
    bool aborted = false;
    std::string output;
    bool says(const std::string &text) const { return output.find(text) != std::string::npos; }
};

/// Runs the test case `name` of this program again, as a process of its own with WEFT_TEST_DEATH set, and tells how it
/// ended. In that process it calls die instead, which is expected not to return.
template <class F>
death dies(const char *name, F die) {
    if (std::getenv("WEFT_TEST_DEATH") != nullptr) {
        die();
        std::_Exit(0);
    }
    std::array<char, 4096> self{};
#if defined(_WIN32)
    if (::GetModuleFileNameA(nullptr, self.data(), static_cast<DWORD>(self.size())) == 0) {
        return {};
    }
    ::_putenv("WEFT_TEST_DEATH=1");
    const std::string command = std::string("\"\"") + self.data() + "\" \"--test-case=" + name + "\" 2>&1\"";
#else
    if (::readlink("/proc/self/exe", self.data(), self.size() - 1) <= 0) {
        return {};
    }
    const char *emulator = std::getenv("WEFT_TEST_EMULATOR"); // what runs this program when the system cannot
    const std::string command = std::string("WEFT_TEST_DEATH=1 timeout 30 ") + (emulator != nullptr ? emulator : "") + " '" + self.data() + "' --test-case='" + name + "' 2>&1";
#endif
    death result;
    FILE *pipe = ::popen(command.c_str(), "r");
#if defined(_WIN32)
    ::_putenv("WEFT_TEST_DEATH=");
#endif
    std::array<char, 512> line{};
    while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
        result.output += line.data();
    }
    result.aborted = ::pclose(pipe) != 0; // doctest reports the signal and fails; _Exit(0) above does not get here
    return result;
}

} // namespace test

#endif
