// SPDX-License-Identifier: MIT
//
// ops.cpp: weft by its C interface: ops and timers in memory of the caller's, no coroutine, no allocation. What is left is the
// scheduler itself, which is what a layer for another language would build on.
#include <atomic>
#include <latch>

#include <weft.h>

#include "bench.hpp"
#include "takeover.hpp"

namespace {

void need(int code, const char *what) {
    if (code != WEFT_OK) {
        bench_fail("%s: %s", what, weft_error_text(code));
    }
}

class runtime {
public:
    explicit runtime(int workers, takeover replaced = takeover::off) {
        weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
        config.workers = static_cast<std::uint32_t>(workers);
        if (replaced == takeover::off) config.max_workers = config.workers;
        need(weft_runtime_create(&config, &handle), "weft_runtime_create");
    }
    ~runtime() { need(weft_runtime_destroy(handle), "weft_runtime_destroy"); }

    weft_runtime handle{};
};

struct micro {
    weft_op op;
    std::uint64_t i;
};

std::vector<micro> make_micro(std::uint64_t n) {
    std::vector<micro> all(n);
    for (std::uint64_t i = 0; i < n; i++) {
        all[i] = {{[](weft_op *op) { bench::tally::add(reinterpret_cast<micro *>(op)->i); }, nullptr, nullptr, 0}, i};
    }
    return all;
}

bench::result micro_outside(const bench::options &o) {
    runtime rt(o.workers);
    std::vector<micro> all = make_micro(o.count(1'000'000));
    return bench::measure(all.size(), [&] {
        for (auto &one : all) {
            need(weft_schedule(rt.handle, &one.op), "weft_schedule");
        }
        bench::tally::wait_for(all.size());
    });
}

bench::result micro_outside_batch(const bench::options &o) {
    runtime rt(o.workers);
    std::vector<micro> all = make_micro(o.count(1'000'000));
    std::vector<weft_op *> ops;
    for (auto &one : all) {
        ops.push_back(&one.op);
    }
    return bench::measure(all.size(), [&] {
        for (std::size_t from = 0; from < ops.size(); from += 1000) {
            need(weft_schedule_batch(rt.handle, &ops[from], std::min<std::size_t>(1000, ops.size() - from)),
                 "weft_schedule_batch");
        }
        bench::tally::wait_for(all.size());
    });
}

// An op that does something once, with whatever it needs.
template <class F>
struct once {
    weft_op op;
    F f;
    explicit once(F &&what) : op{[](weft_op *o) { reinterpret_cast<once *>(o)->f(); }, nullptr, nullptr, 0}, f(std::move(what)) {}
};

bench::result micro_inside(const bench::options &o) {
    runtime rt(o.workers);
    std::vector<micro> all = make_micro(o.count(1'000'000));
    return bench::measure(all.size(), [&] {
        once start([&] {
            for (auto &one : all) {
                need(weft_schedule(rt.handle, &one.op), "weft_schedule");
            }
        });
        need(weft_schedule(rt.handle, &start.op), "weft_schedule");
        bench::tally::wait_for(all.size());
    });
}

// An op that queues itself until its turns are used up.
struct repeated {
    weft_op op;
    weft_runtime runtime;
    int (*queue)(weft_runtime, weft_op *);
    std::latch *end;
    alignas(128) std::uint64_t left;
    std::uint64_t done;

    static void run(weft_op *op) {
        auto *self = reinterpret_cast<repeated *>(op);
        self->done++;
        if (--self->left > 0) {
            need(self->queue(self->runtime, op), "queueing");
        } else {
            self->end->count_down();
        }
    }
};

bench::result repeat(const bench::options &o, std::uint64_t ops, std::uint64_t each, int (*queue)(weft_runtime, weft_op *)) {
    runtime rt(o.workers);
    return bench::measure(ops * each, [&] {
        std::latch end(static_cast<std::ptrdiff_t>(ops));
        std::vector<repeated> all(ops);
        for (auto &one : all) {
            one.op.run = repeated::run;
            one.runtime = rt.handle;
            one.queue = queue;
            one.end = &end;
            one.left = each;
            need(weft_schedule(rt.handle, &one.op), "weft_schedule");
        }
        end.wait();
        for (auto &one : all) {
            bench::check(one.done, each, "turns");
        }
    });
}

bench::result chain(const bench::options &o) { return repeat(o, 1, o.count(100'000), weft_schedule); }
bench::result yield2(const bench::options &o) { return repeat(o, 2, o.count(500'000), weft_yield); }
bench::result yield1000(const bench::options &o) { return repeat(o, 1000, o.count(1000), weft_yield); }

// One timer after the other, started and removed on a worker: its run is never called, as with Go's Stop and libuv's uv_timer_stop.
bench::result timer_cancel(const bench::options &o) {
    runtime rt(o.workers);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        std::latch end(1);
        std::uint64_t removed = 0;
        once work([&] {
            weft_timer timer{};
            timer.op.run = [](weft_op *) { bench_fail("a removed timer fired"); };
            for (std::uint64_t i = 0; i < n; i++) {
                need(weft_schedule_after(rt.handle, &timer, 10'000'000'000 + static_cast<std::int64_t>(i) * 1000),
                     "weft_schedule_after");
                removed += weft_timer_remove(&timer) == WEFT_OK;
            }
            end.count_down();
        });
        need(weft_schedule(rt.handle, &work.op), "weft_schedule");
        end.wait();
        bench::check(removed, n, "removed timers");
    });
}

bench::result wake(const bench::options &o) {
    runtime rt(o.workers);
    weft_op op{};
    op.run = [](weft_op *self) { static_cast<std::atomic<std::int64_t> *>(self->context)->store(bench_now_ns()); };
    return bench::wake(o, [&](std::atomic<std::int64_t> *began) {
        op.context = began;
        need(weft_schedule(rt.handle, &op), "weft_schedule");
    });
}

// An op that blocks its worker, as a careless one does.
struct blocker {
    weft_op op;
    std::int64_t span_ns;
    std::atomic<int> *entered;
    std::atomic<int> *left;
    int last;             // whoever enters as this one queues the op behind itself
    weft_runtime handle;
    weft_op *behind;
    std::int64_t *queued; // ns

    static void run(weft_op *op) {
        auto *self = reinterpret_cast<blocker *>(op);
        if (self->entered->fetch_add(1) + 1 == self->last) {
            *self->queued = bench_now_ns();
            need(weft_schedule(self->handle, self->behind), "weft_schedule");
        }
        bench_sleep_ns(self->span_ns);
        self->left->fetch_add(1);
    }
};

// From the moment at which the last of so many workers blocks until the op that it has queued behind itself begins.
bench::result recovery(const bench::options &o, int blocked) {
    constexpr std::int64_t span_ns = 10'000'000;
    runtime rt(o.workers, takeover::on);
    std::vector<std::int64_t> samples(o.count(200));
    for (auto &sample : samples) {
        std::atomic<int> entered{0}, left{0};
        std::atomic<std::int64_t> began{0};
        std::int64_t queued = 0;
        weft_op behind{[](weft_op *op) { static_cast<std::atomic<std::int64_t> *>(op->context)->store(bench_now_ns()); }, &began,
                       nullptr, 0};
        std::vector<blocker> all(static_cast<std::size_t>(blocked));
        for (auto &one : all) {
            one = {{blocker::run, nullptr, nullptr, 0}, span_ns, &entered, &left, blocked, rt.handle, &behind, &queued};
            need(weft_schedule(rt.handle, &one.op), "weft_schedule");
        }
        while (left.load() != blocked || began.load() == 0) bench_sleep_ns(500'000);
        sample = began.load() - queued;
    }
    return bench::percentiles(samples);
}

bench::result recovery_one(const bench::options &o) { return recovery(o, 1); }
bench::result recovery_all(const bench::options &o) { return recovery(o, o.workers); }

// 1,000 timers, due while every worker sleeps for a second: by how much they fire late.
bench::result blocked_lateness(const bench::options &o) {
    struct late_timer {
        weft_timer timer;
        std::int64_t due, fired;
        std::atomic<int> *count;
    };
    runtime rt(o.workers, takeover::on);
    std::vector<late_timer> timers(o.count(1000));
    std::atomic<int> entered{0}, left{0}, fired{0};
    std::vector<blocker> all(static_cast<std::size_t>(o.workers));
    for (auto &one : all) {
        one = {{blocker::run, nullptr, nullptr, 0}, 1'000'000'000, &entered, &left, -1, rt.handle, nullptr, nullptr};
        need(weft_schedule(rt.handle, &one.op), "weft_schedule");
    }
    while (entered.load() != o.workers) bench_sleep_ns(100'000);
    for (std::size_t i = 0; i < timers.size(); i++) {
        timers[i].count = &fired;
        timers[i].timer.op.run = [](weft_op *op) {
            auto *self = reinterpret_cast<late_timer *>(op);
            self->fired = bench_now_ns();
            self->count->fetch_add(1);
        };
        timers[i].due = weft_now_ns() + 10'000'000 + static_cast<std::int64_t>(bench_random(i) % 800'000'000);
        need(weft_schedule_at(rt.handle, &timers[i].timer, timers[i].due), "weft_schedule_at");
    }
    while (fired.load() != static_cast<int>(timers.size())) bench_sleep_ns(10'000'000);
    while (left.load() != o.workers) bench_sleep_ns(10'000'000);
    std::vector<std::int64_t> samples;
    for (auto &one : timers) samples.push_back(one.fired - one.due);
    return bench::percentiles(samples);
}

const std::vector<bench::work> works = {
    {"recovery_one", {2}, recovery_one},
    {"recovery_all", {1, 2}, recovery_all},
    {"blocked_lateness", {1, 2}, blocked_lateness},
    {"micro_outside", {1, 2}, micro_outside},
    {"micro_outside_batch", {1, 2}, micro_outside_batch},
    {"micro_inside", {1, 2}, micro_inside},
    {"chain", {1, 2}, chain},
    {"yield2", {1, 2}, yield2},
    {"yield1000", {1, 2}, yield1000},
    {"timer_cancel", {1, 2}, timer_cancel},
    {"wake", {1, 2}, wake},
};

} // namespace

int main(int argc, char **argv) { return bench::run_program(argc, argv, {works}); }
