// SPDX-License-Identifier: MIT
//
// libuv.cpp: libuv. One loop on one thread (1 worker); its thread pool, which only takes work from the loop's thread, stands for
// the micro tasks from outside. libuv counts time in whole milliseconds, so its timers may fire up to one too early; therefore
// it has no part in the lateness of timers.
#include <uv.h>

#include <cstddef>
#include <cstring>
#include <thread>

#include "bench.hpp"

namespace {

void need(int code, const char *what) {
    if (code != 0) bench_fail("libuv: %s: %s", what, uv_strerror(code));
}

void close_loop(uv_loop_t &loop) {
    uv_walk(
        &loop,
        [](uv_handle_t *handle, void *) {
            if (!uv_is_closing(handle)) uv_close(handle, nullptr);
        },
        nullptr);
    uv_run(&loop, UV_RUN_DEFAULT);
    need(uv_loop_close(&loop), "uv_loop_close");
}

bench::result micro_outside(const bench::options &o) {
    setenv("UV_THREADPOOL_SIZE", std::to_string(o.workers).c_str(), 1);
    std::uint64_t n = o.count(200'000);
    std::vector<uv_work_t> requests(n);
    uv_loop_t loop;
    need(uv_loop_init(&loop), "uv_loop_init");
    bench::result r = bench::measure(n, [&] {
        for (std::uint64_t i = 0; i < n; i++) {
            requests[i].data = reinterpret_cast<void *>(i);
            need(uv_queue_work(
                     &loop, &requests[i], [](uv_work_t *w) { bench::tally::add(reinterpret_cast<std::uintptr_t>(w->data)); },
                     [](uv_work_t *, int) {}),
                 "uv_queue_work");
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        bench::tally::wait_for(n);
    });
    close_loop(loop);
    return r;
}

struct sleeper {
    uv_timer_t timer;
    std::int64_t due;
    std::uint64_t *early;
};

bench::result sleeps(std::uint64_t n, std::uint64_t most) {
    uv_loop_t loop;
    need(uv_loop_init(&loop), "uv_loop_init");
    std::vector<sleeper> sleepers(n);
    for (auto &s : sleepers)
        need(uv_timer_init(&loop, &s.timer), "uv_timer_init");
    bench::result r = bench::measure(1, [&] {
        std::uint64_t early = 0, fired = 0;
        uv_update_time(&loop);
        for (std::uint64_t i = 0; i < n; i++) {
            sleeper &s = sleepers[i];
            std::int64_t span = bench_sleep_of(i, n, most);
            s.due = bench_now_ns() + span;
            s.early = &early;
            s.timer.data = &fired;
            need(uv_timer_start(
                     &s.timer,
                     [](uv_timer_t *t) {
                         auto *self = reinterpret_cast<sleeper *>(t);
                         ++*static_cast<std::uint64_t *>(t->data);
                         if (bench_now_ns() < self->due - 1'000'000) ++*self->early;
                     },
                     static_cast<std::uint64_t>(span / 1'000'000), 0),
                 "uv_timer_start");
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        bench::check(fired, n, "sleepers that woke");
    });
    close_loop(loop);
    return r;
}

bench::result sleep1000(const bench::options &o) { return sleeps(o.count(1000), 100); }
bench::result sleep100k(const bench::options &o) { return sleeps(o.count(100'000), 50); }

bench::result timer_cancel(const bench::options &o) {
    uv_loop_t loop;
    need(uv_loop_init(&loop), "uv_loop_init");
    std::uint64_t n = o.count(1'000'000);
    uv_timer_t timer;
    need(uv_timer_init(&loop, &timer), "uv_timer_init");
    bench::result r = bench::measure(n, [&] {
        for (std::uint64_t i = 0; i < n; i++) {
            need(uv_timer_start(
                     &timer, [](uv_timer_t *) { bench_fail("a cancelled timer fired"); }, 10'000 + i % 1000, 0),
                 "uv_timer_start");
            need(uv_timer_stop(&timer), "uv_timer_stop");
        }
        uv_run(&loop, UV_RUN_DEFAULT);
    });
    close_loop(loop);
    return r;
}

// A loop on a thread of its own, and an async handle that reaches it.
class loop_thread {
public:
    explicit loop_thread(bool far_timer = false) {
        need(uv_loop_init(&loop_), "uv_loop_init");
        need(uv_async_init(&loop_, &stop_, [](uv_async_t *a) { uv_stop(a->loop); }), "uv_async_init");
        need(uv_async_init(&loop_, &wake,
                           [](uv_async_t *a) { static_cast<std::atomic<std::int64_t> *>(a->data)->store(bench_now_ns()); }),
             "uv_async_init");
        if (far_timer) {
            need(uv_timer_init(&loop_, &far_), "uv_timer_init");
            need(uv_timer_start(&far_, [](uv_timer_t *) {}, 3'600'000, 0), "uv_timer_start");
        }
        thread_ = std::thread([this] { uv_run(&loop_, UV_RUN_DEFAULT); });
    }

    ~loop_thread() {
        uv_async_send(&stop_);
        thread_.join();
        close_loop(loop_);
    }

    uv_async_t wake;

private:
    uv_loop_t loop_;
    uv_async_t stop_;
    uv_timer_t far_;
    std::thread thread_;
};

bench::result wake(const bench::options &o) {
    loop_thread loop;
    return bench::wake(o, [&](std::atomic<std::int64_t> *began) {
        loop.wake.data = began;
        uv_async_send(&loop.wake);
    });
}

bench::result idle_cpu(const bench::options &o) {
    loop_thread loop;
    return bench::idle(o);
}

bench::result idle_cpu_timer(const bench::options &o) {
    loop_thread loop(true);
    return bench::idle(o);
}

// One connection: reads into its own buffer, and reads no more until that is written.
struct connection {
    uv_tcp_t socket;
    uv_write_t write;
    char data[4096];

    void read() {
        uv_read_start(
            reinterpret_cast<uv_stream_t *>(&socket),
            [](uv_handle_t *handle, std::size_t, uv_buf_t *buffer) {
                auto *self = reinterpret_cast<connection *>(handle);
                *buffer = uv_buf_init(self->data, sizeof self->data);
            },
            [](uv_stream_t *stream, ssize_t n, const uv_buf_t *) {
                auto *self = reinterpret_cast<connection *>(stream);
                if (n < 0)
                    uv_close(reinterpret_cast<uv_handle_t *>(stream),
                             [](uv_handle_t *handle) { delete reinterpret_cast<connection *>(handle); });
                else if (n > 0)
                    self->answer(static_cast<unsigned>(n));
            });
    }

    void answer(unsigned n) {
        uv_buf_t buffer = uv_buf_init(data, n);
        int sent = uv_try_write(reinterpret_cast<uv_stream_t *>(&socket), &buffer, 1);
        if (sent == static_cast<int>(n)) return;
        uv_read_stop(reinterpret_cast<uv_stream_t *>(&socket));
        unsigned begin = sent > 0 ? static_cast<unsigned>(sent) : 0;
        buffer = uv_buf_init(data + begin, n - begin);
        write.data = this;
        uv_write(&write, reinterpret_cast<uv_stream_t *>(&socket), &buffer, 1, [](uv_write_t *w, int failed) {
            if (!failed) static_cast<connection *>(w->data)->read();
        });
    }
};

bench::result echo(const bench::options &) {
    uv_loop_t loop;
    uv_tcp_t listener;
    sockaddr_in address;
    need(uv_loop_init(&loop), "uv_loop_init");
    need(uv_tcp_init(&loop, &listener), "uv_tcp_init");
    need(uv_ip4_addr("127.0.0.1", 0, &address), "uv_ip4_addr");
    need(uv_tcp_bind(&listener, reinterpret_cast<sockaddr *>(&address), 0), "uv_tcp_bind");
    need(uv_listen(reinterpret_cast<uv_stream_t *>(&listener), 4096,
                   [](uv_stream_t *server, int failed) {
                       if (failed) return;
                       auto *c = new connection;
                       need(uv_tcp_init(server->loop, &c->socket), "uv_tcp_init");
                       need(uv_accept(server, reinterpret_cast<uv_stream_t *>(&c->socket)), "uv_accept");
                       need(uv_tcp_nodelay(&c->socket, 1), "uv_tcp_nodelay");
                       c->read();
                   }),
         "uv_listen");
    int length = sizeof address;
    need(uv_tcp_getsockname(&listener, reinterpret_cast<sockaddr *>(&address), &length), "uv_tcp_getsockname");
    std::thread loop_thread([&] { uv_run(&loop, UV_RUN_DEFAULT); });
    bench_serve_until_told(ntohs(address.sin_port));
    fflush(nullptr);
    _exit(0); // the loop serves until the process ends
}

const std::vector<bench::work> works = {
    {"micro_outside", {1, 2}, micro_outside}, {"sleep1000", {1}, sleep1000}, {"sleep100k", {1}, sleep100k},
    {"timer_cancel", {1}, timer_cancel},      {"wake", {1}, wake},           {"idle_cpu", {1}, idle_cpu},
    {"idle_cpu_timer", {1}, idle_cpu_timer},  {"echo", {1}, echo},
};

} // namespace

extern const std::vector<bench::work> file_works; // files.cpp

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works, file_works}); }
