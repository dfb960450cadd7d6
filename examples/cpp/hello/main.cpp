// SPDX-License-Identifier: MIT
//
// The shortest useful program: two coroutines at once, each of which waits without blocking a thread.
#include <chrono>
#include <cstdio>
#include <string>
#include <weft.hpp>

using namespace std::chrono_literals;

weft::task<std::string> greet(std::string whom, std::chrono::milliseconds wait) {
    co_await weft::sleep_for(wait);
    co_return "hello, " + whom;
}

weft::task<> async_main() {
    auto [warp, weft] = co_await weft::when_all(greet("warp", 20ms), greet("weft", 10ms));
    std::printf("%s\n%s\n", warp.c_str(), weft.c_str());
}

int main() { weft::run(async_main()); }
