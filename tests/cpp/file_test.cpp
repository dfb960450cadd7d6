// SPDX-License-Identifier: MIT
//
// weft/file.hpp: opening, offsets, whole files, errors, cancelling, and owning.
#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <weft.hpp>

#include "support.hpp"

using weft::file;
using weft::file_mode;
using weft::task;

namespace {

/// A folder for the length of a test.
struct scratch {
    std::string folder = std::filesystem::temp_directory_path().generic_string() + "/weft-file-XXXXXX";
    scratch() { REQUIRE(::mkdtemp(folder.data()) != nullptr); }
    ~scratch() { std::filesystem::remove_all(folder); }
    [[nodiscard]] std::string path(const std::string &name) const { return folder + "/" + name; }
};

constexpr file_mode anew = file_mode::read | file_mode::write | file_mode::create | file_mode::truncate;

/// The code with which opening fails, or none.
task<std::error_code> opening(std::string path, file_mode mode) {
    std::error_code code;
    try {
        const file opened = co_await file::open(std::move(path), mode);
    } catch (const weft::error &e) {
        code = e.code();
    }
    co_return code;
}

} // namespace

TEST_CASE("file: reads and writes at offsets, from several tasks at once") {
    const scratch in;
    test::run(2, [&in]() -> task<> {
        const std::uint64_t home = test::here();
        file f = co_await file::open(in.path("offsets"), anew);
        CHECK(test::here() == home);
        std::vector<task<>> writes;
        for (int i = 0; i < 100; ++i) {
            writes.push_back([](file &to, int at) -> task<> {
                const std::string text = std::to_string(1000 + at);
                co_await to.write_all_at(static_cast<std::uint64_t>(at) * 4, text);
            }(f, i));
        }
        co_await weft::when_all(std::move(writes));
        const std::uint64_t size = co_await f.size();
        CHECK(size == 400);
        std::array<char, 4> piece{};
        co_await f.read_exactly_at(4 * 57, piece);
        CHECK(std::string(piece.data(), 4) == "1057");
        const std::uint64_t at_end = co_await f.read_at(400, piece);
        CHECK(at_end == 0);
        const weft::io_result beyond = co_await f.try_read_exactly_at(398, piece);
        CHECK(beyond.status == WEFT_EOF);
        CHECK(beyond.count == 2);
        const std::uint64_t some = co_await f.write_at(0, std::string_view("x"));
        CHECK(some == 1);
        co_await f.sync();
        co_await f.close();
        const weft::io_result closed = co_await f.try_read_at(0, piece);
        CHECK(closed.status == WEFT_EBADHANDLE);
    });
}

TEST_CASE("file: whole files, of any size") {
    const scratch in;
    test::run(1, [&in]() -> task<> {
        for (const std::size_t size : {0U, 1U, 4096U, 3000000U}) {
            std::string contents(size, 'w');
            for (std::size_t i = 0; i < size; i += 7) {
                contents[i] = static_cast<char>(i);
            }
            co_await weft::write_file(in.path("whole"), contents);
            const std::string back = co_await weft::read_file(in.path("whole"));
            CHECK(back == contents);
        }
    });
}

#if defined(__linux__)
TEST_CASE("file: one that does not tell its size, and one that is full") {
    test::run(1, []() -> task<> {
        const std::string status = co_await weft::read_file("/proc/self/status");
        CHECK(status.find("Threads:") != std::string::npos);
        bool full = false;
        try {
            co_await weft::write_file("/dev/full", std::string_view("x"));
        } catch (const weft::error &e) {
            full = e.code() == weft::errc::no_space && e.os_error() == ENOSPC;
        }
        CHECK(full);
    });
}
#endif

TEST_CASE("file: what goes wrong is told by its code") {
    const scratch in;
    test::run(1, [&in]() -> task<> {
        const std::error_code missing = co_await opening(in.path("nothing"), file_mode::read);
        CHECK(missing == weft::errc::not_found);
        CHECK(missing == std::errc::no_such_file_or_directory);
        const std::error_code directory = co_await opening(in.folder, file_mode::read);
        CHECK(directory == weft::errc::not_supported);
        co_await weft::write_file(in.path("there"), std::string_view("x"));
        const std::error_code there = co_await opening(in.path("there"), file_mode::write | file_mode::create | file_mode::exclusive);
        CHECK(there == weft::errc::already_exists);
    });
}

TEST_CASE("file: a cancelled task opens and reads nothing") {
    const scratch in;
    test::run(1, [&in]() -> task<> {
        const weft::cancellation_source source;
        source.request();
        const auto open = [&in]() -> task<> { co_await weft::write_file(in.path("never"), std::string_view("x")); };
        bool cancelled = false;
        try {
            co_await (open() | weft::with_token(source.token()));
        } catch (const weft::operation_cancelled &) {
            cancelled = true;
        }
        CHECK(cancelled);
        CHECK(!std::filesystem::exists(in.path("never")));
    });
}

TEST_CASE("file: is closed by whoever owns it last") {
    const scratch in;
    test::run(1, [&in]() -> task<> {
        file f = co_await file::open(in.path("owned"), anew);
        const weft_file handle = f.native();
        file g = std::move(f);
        CHECK(f.native().id == 0);
        CHECK(g.native().id == handle.id);
        g = co_await file::open(in.path("owned"), file_mode::read);
        CHECK(weft_file_abandon(handle) == WEFT_EBADHANDLE);
    });
}

TEST_CASE("file: without a runtime it must be told one") {
    const scratch in;
    weft::runtime pool({.workers = 1});
    const auto opens = [&](bool told) -> task<int> {
        int code = WEFT_OK;
        try {
            file f;
            if (told) {
                f = co_await file::open(pool.scheduler(), in.path("told"), anew);
            } else {
                f = co_await file::open(in.path("told"), anew);
            }
            co_await f.close();
        } catch (const weft::error &e) {
            code = e.code().value();
        }
        co_return code;
    };
    CHECK(weft::sync_wait(opens(true)) == WEFT_OK);
    CHECK(weft::sync_wait(opens(false)) == WEFT_ENOTWORKER);
}
