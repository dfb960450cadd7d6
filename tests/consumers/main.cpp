// SPDX-License-Identifier: MIT
//
// The smallest C++ user: a coroutine awaits another one that hops through the scheduler.
#include <cstdio>
#include <weft.hpp>

static weft::task<int> answer() {
    co_await weft::this_task::yield();
    co_return 42;
}

static weft::task<int> main_task() { co_return co_await answer(); }

int main() {
    const int result = weft::run(main_task());
    std::printf("C++, weft %s: %d\n", weft_version_text(), result);
    return result == 42 ? 0 : 1;
}
