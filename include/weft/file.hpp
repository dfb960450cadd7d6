// SPDX-License-Identifier: MIT
//
// weft/file.hpp: a file, as a move-only owner of its handle; and whole files at once.
//
//     weft::file f = co_await weft::file::open("data", weft::file_mode::read);
//     std::size_t n = co_await f.read_at(0, buffer);
//     std::string text = co_await weft::read_file("notes.txt");
//
// No worker waits: what is in memory is read at once, and all else is for io_uring, overlapped calls or the blocking pool (weft/c/file.h). For all operations:
//   Resumes    on the awaiting task's home.
//   Cancel     operation_cancelled while the operation waits for a thread, or for a terminal, but on the pool; read_exactly_at and
//              write_all_at also every megabyte.
//   Errors     weft::error; errc::not_found, already_exists, access_denied, no_space, not_supported (a directory, a FIFO).
//   Single use each call makes one operation; it starts when it is awaited, once.
//   Memory     what a buffer names must stay until the await ends.
// Any number of operations of a file may be under way at once. Moving and destroying a file need it for themselves.
#ifndef WEFT_FILE_HPP
#define WEFT_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include "buffer.hpp"
#include "c/file.h"
#include "detail/io_awaiter.hpp"
#include "detail/tcp_operations.hpp"
#include "error.hpp"
#include "scheduler.hpp"
#include "task.hpp"
#include "tcp_stream.hpp"

namespace weft {

/// How a file is opened; combine with |.
enum class file_mode : std::uint32_t {
    read = WEFT_FILE_READ,
    write = WEFT_FILE_WRITE,
    create = WEFT_FILE_CREATE,       // make it if it is not there
    exclusive = WEFT_FILE_EXCLUSIVE, // with create: errc::already_exists if it is there
    truncate = WEFT_FILE_TRUNCATE,   // with write: make it empty
    append = WEFT_FILE_APPEND,       // with write: every write goes to the end
};

[[nodiscard]] constexpr file_mode operator|(file_mode a, file_mode b) noexcept {
    return static_cast<file_mode>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

namespace detail {

struct file_open_start {
    static constexpr const char *doing = "open";
    weft_runtime runtime;
    const char *path;
    file_mode mode;
    std::uint32_t permissions;
    int operator()(weft_file_op *op) const noexcept {
        return weft_file_open(runtime, op, path, static_cast<std::uint32_t>(mode), permissions);
    }
};

struct file_read_start {
    static constexpr const char *doing = "read";
    weft_file file;
    std::uint64_t offset;
    buffer into;
    std::uint32_t flags;
    int operator()(weft_file_op *op) const noexcept {
        return weft_file_read(op, file, into.native()->data, into.native()->length, offset, flags);
    }
};

struct file_write_start {
    static constexpr const char *doing = "write";
    weft_file file;
    std::uint64_t offset;
    const_buffer from;
    std::uint32_t flags;
    int operator()(weft_file_op *op) const noexcept {
        return weft_file_write(op, file, from.native()->data, from.native()->length, offset, flags);
    }
};

struct file_size_start {
    static constexpr const char *doing = "size";
    weft_file file;
    int operator()(weft_file_op *op) const noexcept { return weft_file_size(op, file); }
};

struct file_sync_start {
    static constexpr const char *doing = "sync";
    weft_file file;
    int operator()(weft_file_op *op) const noexcept { return weft_file_sync(op, file); }
};

struct file_close_start {
    static constexpr const char *doing = "close";
    weft_file file;
    int operator()(weft_file_op *op) const noexcept { return weft_file_close(op, file); }
};

struct gives_file_count {
    static std::uint64_t finish(const weft_file_op &op, const char *doing) {
        throw_unless_ok(op.status, doing, op.os_error);
        return op.count;
    }
};

struct gives_file_nothing {
    static void finish(const weft_file_op &op, const char *doing) { throw_unless_ok(op.status, doing, op.os_error); }
};

struct gives_file_result {
    static io_result finish(const weft_file_op &op, const char *) noexcept {
        return {op.status, op.os_error, static_cast<std::size_t>(op.count)};
    }
};

struct gives_file_handle {
    static weft_file finish(const weft_file_op &op, const char *doing) {
        throw_unless_ok(op.status, doing, op.os_error);
        return op.opened;
    }
};

template <class Start, class Finish>
using file_operation = io_operation<Start, Finish, weft_file_op, weft_file_cancel>;

} // namespace detail

class file {
public:
    file() noexcept = default;
    file(file &&other) noexcept : file_(other.release()) {}
    file &operator=(file &&other) noexcept {
        if (this != &other) {
            weft_file_abandon(file_);
            file_ = other.release();
        }
        return *this;
    }
    /// Gives the file up; close() tells whether everything was written.
    ~file() { weft_file_abandon(file_); }

    /// Takes over a file of the C interface.
    explicit file(weft_file handle) noexcept : file_(handle) {}

    /// Opens a file. Its operations use the pool of the runtime of the calling worker (on other threads: errc::not_a_worker), or of
    /// the given one. permissions: of a file that is made, less the umask.
    [[nodiscard]] static task<file> open(std::string path, file_mode mode, std::uint32_t permissions = 0666);
    [[nodiscard]] static task<file> open(scheduler on, std::string path, file_mode mode, std::uint32_t permissions = 0666);

    /// Reads what there is at an offset, up to the size of the buffer; 0 is the end of the file.
    [[nodiscard]] auto read_at(std::uint64_t offset, buffer into) noexcept { return reading<detail::gives_file_count>({file_, offset, into, 0}); }
    [[nodiscard]] auto try_read_at(std::uint64_t offset, buffer into) noexcept {
        return reading<detail::gives_file_result>({file_, offset, into, 0});
    }

    /// Fills the buffer. errc::end_of_stream if the file ends before; try_read_exactly_at tells how much there was.
    [[nodiscard]] auto read_exactly_at(std::uint64_t offset, buffer into) noexcept {
        return reading<detail::gives_file_nothing>({file_, offset, into, WEFT_IO_ALL});
    }
    [[nodiscard]] auto try_read_exactly_at(std::uint64_t offset, buffer into) noexcept {
        return reading<detail::gives_file_result>({file_, offset, into, WEFT_IO_ALL});
    }

    /// Writes as much as the system takes at once, and says how much.
    [[nodiscard]] auto write_at(std::uint64_t offset, const_buffer from) noexcept {
        return writing<detail::gives_file_count>({file_, offset, from, 0});
    }
    [[nodiscard]] auto try_write_at(std::uint64_t offset, const_buffer from) noexcept {
        return writing<detail::gives_file_result>({file_, offset, from, 0});
    }

    /// Writes everything. try_write_all_at tells how much, if it failed on the way.
    [[nodiscard]] auto write_all_at(std::uint64_t offset, const_buffer from) noexcept {
        return writing<detail::gives_file_nothing>({file_, offset, from, WEFT_IO_ALL});
    }
    [[nodiscard]] auto try_write_all_at(std::uint64_t offset, const_buffer from) noexcept {
        return writing<detail::gives_file_result>({file_, offset, from, WEFT_IO_ALL});
    }

    /// Tells how many bytes the file has.
    [[nodiscard]] auto size() noexcept { return detail::file_operation<detail::file_size_start, detail::gives_file_count>({file_}); }

    /// Waits until what was written is on the device.
    [[nodiscard]] auto sync() noexcept { return detail::file_operation<detail::file_sync_start, detail::gives_file_nothing>({file_}); }

    /// Closes, and throws what an earlier write has failed with, where the file system tells that so late. It cannot be cancelled.
    /// errc::busy while another operation is under way; else the file is closed, whatever is thrown.
    [[nodiscard]] auto close() noexcept { return detail::file_operation<detail::file_close_start, detail::gives_file_nothing>({file_}); }

    /// Gives it to the C interface, without closing it.
    [[nodiscard]] weft_file release() noexcept { return std::exchange(file_, weft_file{0}); }
    [[nodiscard]] weft_file native() const noexcept { return file_; }

private:
    template <class Finish>
    using reading = detail::file_operation<detail::file_read_start, Finish>;
    template <class Finish>
    using writing = detail::file_operation<detail::file_write_start, Finish>;

    weft_file file_{0};
};

namespace detail {

inline task<file> open_file(weft_runtime runtime, std::string path, file_mode mode, std::uint32_t permissions) {
    using opening = file_operation<file_open_start, gives_file_handle>;
    const weft_file opened = co_await opening(file_open_start{runtime, path.c_str(), mode, permissions});
    co_return file(opened);
}

} // namespace detail

inline task<file> file::open(scheduler on, std::string path, file_mode mode, std::uint32_t permissions) {
    return detail::open_file(on.native(), std::move(path), mode, permissions);
}

inline task<file> file::open(std::string path, file_mode mode, std::uint32_t permissions) {
    const weft_runtime here = detail::current_runtime("open");
    co_return co_await detail::open_file(here, std::move(path), mode, permissions);
}

/// Reads a whole file, also one whose size is not known before (of /proc, say). Home, cancel and errors as in file. Throws
/// std::bad_alloc.
[[nodiscard]] inline task<std::string> read_file(std::string path) {
    constexpr std::size_t more = 4096;
    file from = co_await file::open(std::move(path), file_mode::read);
    std::string text(static_cast<std::size_t>(co_await from.size()) + 1, '\0'); // a byte more, to see the end at once
    for (std::size_t count = 0;;) {
        const std::span<char> rest(text.data() + count, text.size() - count);
        const io_result piece = co_await from.try_read_exactly_at(count, rest);
        count += piece.count;
        if (piece.status == WEFT_EOF) {
            text.resize(count);
            co_return text;
        }
        detail::throw_unless_ok(piece.status, "read", piece.os_error);
        text.resize(text.size() * 2 + more);
    }
}

/// Makes or replaces a whole file. contents must stay until the await ends. Not atomic: who reads meanwhile sees a part.
[[nodiscard]] inline task<void> write_file(std::string path, const_buffer contents) {
    file to = co_await file::open(std::move(path), file_mode::write | file_mode::create | file_mode::truncate);
    co_await to.write_all_at(0, contents);
    co_await to.close();
}

} // namespace weft

#endif
