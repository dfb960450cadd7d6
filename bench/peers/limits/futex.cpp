// SPDX-License-Identifier: MIT
//
// futex.cpp: the limit for waking: a thread that sleeps on a futex, and one system call that wakes it.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>

#include "bench.hpp"

namespace {

long futex(std::atomic<std::uint32_t> &word, int operation, std::uint32_t value) {
    return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

bench::result wake(const bench::options &o) {
    std::atomic<std::uint32_t> word{0}; // 0 nothing to do, 1 stamp, 2 end
    std::atomic<std::atomic<std::int64_t> *> where{nullptr};
    std::thread sleeper([&] {
        for (;;) {
            while (word.load() == 0)
                futex(word, FUTEX_WAIT, 0);
            if (word.load() == 2) return;
            word.store(0);
            where.load()->store(bench_now_ns());
        }
    });
    bench::result r = bench::wake(o, [&](std::atomic<std::int64_t> *began) {
        where.store(began);
        word.store(1);
        futex(word, FUTEX_WAKE, 1);
    });
    word.store(2);
    futex(word, FUTEX_WAKE, 1);
    sleeper.join();
    return r;
}

const std::vector<bench::work> works = {{"wake", {1}, wake}};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
