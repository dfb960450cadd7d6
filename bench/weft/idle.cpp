// SPDX-License-Identifier: MIT
//
// idle.cpp: weft when nothing happens: waking it, what idling costs, what parked coroutines weigh.
#include <chrono>

#include "weft_works.hpp"

namespace {

weft::task<> stamp(std::atomic<std::int64_t> *began) {
    began->store(bench_now_ns());
    co_return;
}

bench::result wake(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    return bench::wake(o, [&](std::atomic<std::int64_t> *began) { weft::spawn(runtime.scheduler(), stamp(began)); });
}

bench::result idle_cpu(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    return bench::idle(o);
}

weft::task<> far_timer() { co_await weft::sleep_for(std::chrono::hours(1)); }

bench::result idle_cpu_timer(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    weft::spawn(runtime.scheduler(), far_timer());
    return bench::idle(o);
}

// The same coroutine as a task and as a type that tells the size of its frame, for the promise is of the same size.
template <class Task>
Task waiter(weft::event &gate) {
    co_await gate.wait();
}

struct measured_task {
    struct promise_type : weft::detail::task_promise_base<void> {
        static inline std::size_t frame_bytes = 0;
        static void *operator new(std::size_t size) { return ::operator new(frame_bytes = size); }
        static void operator delete(void *memory) { ::operator delete(memory); }
        measured_task get_return_object() { return measured_task(std::coroutine_handle<promise_type>::from_promise(*this)); }
        void return_void() const noexcept {}
    };
    static_assert(sizeof(promise_type) == sizeof(weft::task<>::promise_type));

    explicit measured_task(std::coroutine_handle<promise_type> made) : coroutine(made) {}
    measured_task(const measured_task &) = delete;
    ~measured_task() { coroutine.destroy(); }
    std::coroutine_handle<promise_type> coroutine;
};

weft::task<> park_all(std::uint64_t n, weft::async_scope &scope, weft::event &gate) {
    for (std::uint64_t i = 0; i < n; i++)
        scope.spawn(waiter<weft::task<>>(gate));
    co_return;
}

weft::task<> join(weft::async_scope &scope) { co_await scope.join(); }

bench::result parked(const bench::options &o) {
    weft::runtime runtime = start_runtime(o);
    std::uint64_t n = o.count(1'000'000);
    weft::event gate;
    weft::async_scope scope(runtime.scheduler());
    bench::result r = bench::parked(
        n, [&] { weft::sync_wait(runtime.scheduler(), park_all(n, scope, gate)); },
        [&] {
            gate.set();
            weft::sync_wait(runtime.scheduler(), join(scope));
        });
    measured_task made = waiter<measured_task>(gate);
    auto frame_bytes = static_cast<double>(measured_task::promise_type::frame_bytes);
    r.extra.emplace_back("frame_bytes", frame_bytes);
    r.extra.emplace_back("beyond_frame_bytes", r.extra[0].second - frame_bytes); // bytes comes first
    return r;
}

} // namespace

const std::vector<bench::work> idle_works = {{"wake", {1, 2}, wake},
                                             {"idle_cpu", {1, 2}, idle_cpu},
                                             {"idle_cpu_timer", {1, 2}, idle_cpu_timer},
                                             {"parked", {1, 2}, parked}};
