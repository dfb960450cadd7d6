// SPDX-License-Identifier: MIT
//
// pread.cpp: the limit for reading files: threads that call pread, and do nothing else. As many as there are workers when all is in memory; as many as
// there are reads at once when it is not.
#include <cstring>
#include <thread>

#include "bench.hpp"
#include "file.h"

namespace {

void reads(const char *path, std::uint64_t first, std::uint64_t step, std::uint64_t end, std::atomic<std::uint64_t> &sum) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char block[bench_block_bytes];
    std::uint64_t mine = 0;
    for (std::uint64_t i = first; i < end; i += step) {
        if (pread(fd, block, sizeof block, static_cast<off_t>(bench_block_of(i) * bench_block_bytes)) != sizeof block)
            bench_fail("pread: %s", strerror(errno));
        std::uint64_t word = 0;
        std::memcpy(&word, block, sizeof word);
        mine += word;
    }
    close(fd);
    sum += mine;
}

bench::result read_blocks(std::uint64_t threads, std::uint64_t n, bool cold) {
    const char *path = bench_file();
    std::uint64_t want = bench_block_words(n);
    return bench::measure(n, [&] {
        if (cold) bench_file_forget(path);
        std::atomic<std::uint64_t> sum{0};
        std::vector<std::thread> all;
        for (std::uint64_t i = 0; i < threads; i++) all.emplace_back([=, &sum] { reads(path, i, threads, n, sum); });
        for (auto &one : all) one.join();
        bench::check(sum, want, "sum of the blocks' words");
    });
}

bench::result file_read1(const bench::options &o) { return read_blocks(1, o.count(100'000), false); }
bench::result file_read64(const bench::options &o) { return read_blocks(static_cast<std::uint64_t>(o.workers), o.count(100'000), false); }
bench::result file_cold64(const bench::options &o) { return read_blocks(64, o.count(5'000), true); }

const std::vector<bench::work> works = {
    {"file_read1", {1, 2}, file_read1}, {"file_read64", {1, 2}, file_read64}, {"file_cold64", {1, 2}, file_cold64}};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
