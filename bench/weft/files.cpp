// SPDX-License-Identifier: MIT
//
// files.cpp: blocks of a file, read by so many coroutines at once.
#include <array>
#include <cstring>

#include "file.h"
#include "weft_works.hpp"

namespace {

weft::task<> reads(weft::file &from, std::uint64_t first, std::uint64_t step, std::uint64_t end, std::atomic<std::uint64_t> &sum) {
    std::array<char, bench_block_bytes> block;
    std::uint64_t mine = 0;
    for (std::uint64_t i = first; i < end; i += step) {
        co_await from.read_exactly_at(bench_block_of(i) * bench_block_bytes, block);
        std::uint64_t word = 0;
        std::memcpy(&word, block.data(), sizeof word);
        mine += word;
    }
    sum += mine;
}

weft::task<> all_reads(const char *path, std::uint64_t at_once, std::uint64_t n, std::atomic<std::uint64_t> &sum) {
    weft::file from = co_await weft::file::open(path, weft::file_mode::read);
    std::vector<weft::task<>> all;
    for (std::uint64_t i = 0; i < at_once; i++) all.push_back(reads(from, i, at_once, n, sum));
    co_await weft::when_all(std::move(all));
}

bench::result read_blocks(const bench::options &o, std::uint64_t at_once, std::uint64_t n, bool cold) {
    const char *path = bench_file();
    weft::runtime runtime = start_runtime(o);
    std::uint64_t want = bench_block_words(n);
    return bench::measure(n, [&] {
        if (cold) bench_file_forget(path);
        std::atomic<std::uint64_t> sum{0};
        weft::sync_wait(runtime.scheduler(), all_reads(path, at_once, n, sum));
        bench::check(sum, want, "sum of the blocks' words");
    });
}

bench::result file_read1(const bench::options &o) { return read_blocks(o, 1, o.count(100'000), false); }
bench::result file_read64(const bench::options &o) { return read_blocks(o, 64, o.count(100'000), false); }
bench::result file_cold64(const bench::options &o) { return read_blocks(o, 64, o.count(5'000), true); }

} // namespace

const std::vector<bench::work> file_works = {
    {"file_read1", {1, 2}, file_read1}, {"file_read64", {1, 2}, file_read64}, {"file_cold64", {1, 2}, file_cold64}};
