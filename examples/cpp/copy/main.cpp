// SPDX-License-Identifier: MIT
//
// copy [--jobs N] [--progress] FILE... DIRECTORY: copies files, several at once, and prints their checksums as cksum does.
//
// Each file is read a block ahead of what is being written. The workers compute checksums; the calls that block are made on the
// runtime's blocking pool. A line on standard error tells how far it is.
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <weft.hpp>

#include "checksum.hpp"

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::size_t block_bytes = 1 << 20;
constexpr double megabyte = 1e6;

struct job {
    std::string from;
    std::string to;
    checksum sum;
    std::string failure; // empty: it was copied
};

struct progress {
    std::size_t files = 0;
    std::uint64_t bytes = 0; // of all files, as far as known
    std::atomic<std::size_t> files_done{0};
    std::atomic<std::uint64_t> bytes_done{0};

    void show(const char *end) const {
        std::fprintf(stderr, "\r%zu of %zu files, %.1f of %.1f MB%s", files_done.load(), files,
                     static_cast<double>(bytes_done.load()) / megabyte, static_cast<double>(bytes) / megabyte, end);
    }
};

weft::task<> show_now_and_then(const progress &shown) {
    for (;;) {
        co_await weft::sleep_for(100ms);
        shown.show("");
    }
}

// Reads one block while the one before it is written.
weft::task<> copy_blocks(weft::file &source, weft::file &target, checksum &sum, progress &shown) {
    std::vector<char> blocks[2] = {std::vector<char>(block_bytes), std::vector<char>(block_bytes)};
    weft::io_result read = co_await source.try_read_exactly_at(0, blocks[0]);
    for (int current = 0;; current = 1 - current) {
        if (read.status != WEFT_OK && read.status != WEFT_EOF) {
            throw weft::error(read.status, "read", read.os_error);
        }
        const std::span<const char> block(blocks[current].data(), read.count);
        const std::uint64_t offset = sum.length();
        sum.add(block);
        shown.bytes_done += block.size();
        if (read.status == WEFT_EOF) { // this was the last one
            co_await target.write_all_at(offset, block);
            co_return;
        }
        const auto done = co_await weft::when_all(source.try_read_exactly_at(sum.length(), blocks[1 - current]),
                                                  target.write_all_at(offset, block));
        read = std::get<0>(done);
    }
}

weft::task<> copy_file(job &work, progress &shown) {
    weft::file source = co_await weft::file::open(work.from, weft::file_mode::read);
    if (co_await weft::blocking([&work] { return fs::exists(work.to) && fs::equivalent(work.from, work.to); },
                                weft::blocking_kind::file)) {
        throw std::runtime_error("would be copied onto itself");
    }
    const weft::file_mode anew = weft::file_mode::write | weft::file_mode::create | weft::file_mode::truncate;
    weft::file target = co_await weft::file::open(work.to, anew);
    co_await copy_blocks(source, target, work.sum, shown);
    co_await target.close(); // throws what the destructor would not tell
}

// Takes one job after the other. What fails is noted, and the others go on.
weft::task<> work_off(std::vector<job> &jobs, std::atomic<std::size_t> &next, progress &shown) {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
        try {
            co_await copy_file(jobs[i], shown);
        } catch (const std::exception &e) {
            jobs[i].failure = e.what();
        }
        ++shown.files_done;
    }
}

weft::task<int> copy_all(std::vector<job> &jobs, unsigned at_once, bool shows) {
    progress shown;
    shown.files = jobs.size();
    for (const job &each : jobs) {
        std::error_code unknown;
        const std::uintmax_t size = fs::file_size(each.from, unknown);
        shown.bytes += unknown ? 0 : size;
    }
    weft::async_scope reporter;
    if (shows) {
        reporter.spawn(show_now_and_then(shown));
    }
    std::atomic<std::size_t> next{0};
    std::vector<weft::task<>> workers;
    for (unsigned i = 0; i < at_once; ++i) {
        workers.push_back(work_off(jobs, next, shown));
    }
    co_await weft::when_all(std::move(workers));
    reporter.request_cancel();
    co_await reporter.join();
    shown.show("\n");
    int code = 0;
    for (const job &each : jobs) {
        if (each.failure.empty()) {
            std::printf("%u %llu %s\n", static_cast<unsigned>(each.sum.value()),
                        static_cast<unsigned long long>(each.sum.length()), each.from.c_str());
        } else {
            std::fprintf(stderr, "copy: %s: %s\n", each.from.c_str(), each.failure.c_str());
            code = 1;
        }
    }
    co_return code;
}

int main(int argc, char **argv) {
    unsigned at_once = 8;
    bool shows = ::isatty(STDERR_FILENO) != 0;
    std::vector<std::string> names;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--progress") {
            shows = true;
        } else if (argument == "--jobs" && i + 1 < argc) {
            const std::string_view number = argv[++i];
            const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), at_once);
            if (error != std::errc() || end != number.data() + number.size() || at_once == 0 || at_once > 1000) {
                at_once = 0;
                break;
            }
        } else {
            names.emplace_back(argument);
        }
    }
    if (at_once == 0 || names.size() < 2 || !fs::is_directory(names.back())) {
        std::fputs("usage: copy [--jobs 1..1000] [--progress] FILE... DIRECTORY\n", stderr);
        return 2;
    }
    const fs::path folder = names.back();
    names.pop_back();
    std::vector<job> jobs;
    for (const std::string &name : names) {
        jobs.push_back({name, (folder / fs::path(name).filename()).string(), {}, {}});
    }
    return weft::run(copy_all(jobs, at_once, shows));
}
