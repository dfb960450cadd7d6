// SPDX-License-Identifier: MIT
//
// The awaiter of every operation that completes with a result: of sockets, files and names. It is the C op: the operation lives in the frame of the coroutine that
// awaits it, and nothing is allocated.
//
// Order of events. The cancel callback is registered before the operation starts, so no request can fall between the two;
// a request that came earlier makes the start complete at once. The start either completes at once, and the coroutine goes on
// without having been suspended, or it is pending: from then on the frame may run, or be gone, on another thread, and await_suspend
// touches nothing of it. await_resume deregisters before the frame can go on, and so waits for a callback that is still
// running in another thread.
#ifndef WEFT_DETAIL_IO_AWAITER_HPP
#define WEFT_DETAIL_IO_AWAITER_HPP

#include <coroutine>

#include "../c/io.h"
#include "delay.hpp"
#include "environment.hpp"
#include "operation.hpp"
#include "resume.hpp"
#include "token_watch.hpp"
#include "tsan.hpp"

namespace weft::detail {

// Where a C structure has its op, and its status.
template <class Op>
[[nodiscard]] Op &io_part(Op &op) noexcept
{
    return op;
}
[[nodiscard]] inline weft_io &io_part(weft_datagram &datagram) noexcept { return datagram.io; }

/// Op, Cancel: the C structure, which has op and status (io_part), and how it is asked to end.
/// Start: int operator()(Op *) const noexcept, starts the operation and returns as the functions of c/io.h do.
///        static constexpr const char *doing, what error messages call it.
/// Finish: static finish(Op &, const char *doing), makes what co_await gives out of the completed operation, or throws.
template <class Start, class Finish, class Op = weft_io, int (*Cancel)(Op *) noexcept = weft_io_cancel>
class io_awaiter : private Op, public native_awaiter {
public:
    explicit io_awaiter(const Start &start) noexcept : Op{}, start_(start) {}
    io_awaiter(const io_awaiter &) = delete;
    io_awaiter &operator=(const io_awaiter &) = delete;

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept
    {
        WEFT_TEST_DELAY(io_awaiter_suspends);
        const environment where = environment_of(coroutine);
        Op &io = *this;
        home_ = where.home;
        io_part(io).op.run = complete;
        io_part(io).op.context = coroutine.address();
        watch_.begin(where.token, cancel, &io);
        WEFT_TEST_DELAY(io_awaiter_registered);
        const Start start = start_; // read before the release: what comes after it may overlap with the coroutine
        tsan_release(&io_part(io).op);
        const int started = start(&io);
        WEFT_TEST_DELAY(io_awaiter_started);
        if (started < 0) {
            io_part(io).status = started;
        }
        return started == WEFT_OK;
    }

    decltype(auto) await_resume()
    {
        Op &io = *this;
        watch_.end();
        return Finish::finish(io, Start::doing);
    }

private:
    static void cancel(void *io) noexcept { Cancel(static_cast<Op *>(io)); }

    // Runs on a worker of the descriptor's runtime, which need not be the coroutine's home.
    static void complete(weft_op *op) noexcept
    {
        tsan_acquire(op);
        const auto coroutine = std::coroutine_handle<>::from_address(op->context);
        const weft_runtime home = static_cast<io_awaiter *>(reinterpret_cast<Op *>(op))->home_;
        if (home.id == 0 || home.id == weft_runtime_current().id) [[likely]] {
            resume_guarded(coroutine);
        } else {
            resume_from_outside(home, coroutine, *op);
        }
    }

    Start start_;
    weft_runtime home_{0};
    token_watch watch_;
};

template <class Start, class Finish, class Op = weft_io, int (*Cancel)(Op *) noexcept = weft_io_cancel>
using io_operation = operation<io_awaiter<Start, Finish, Op, Cancel>, Start>;

} // namespace weft::detail

#endif
