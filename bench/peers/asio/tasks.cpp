// SPDX-License-Identifier: MIT
//
// tasks.cpp: micro tasks, chain and yields in Asio. Tasks are posted function objects; yields are coroutines that post
// themselves.
#include <latch>

#include "pool.hpp"

namespace {

struct micro {
    std::uint64_t i;
    void operator()() const { bench::tally::add(i); }
};

bench::result micro_outside(const bench::options &o) {
    asio_pool pool(o.workers);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        for (std::uint64_t i = 0; i < n; i++)
            asio::post(pool.context, micro{i});
        bench::tally::wait_for(n);
    });
}

// Asio has no batch; the nearest is one post of a handler that posts the others from inside.
bench::result micro_outside_batch(const bench::options &o) {
    asio_pool pool(o.workers);
    std::uint64_t n = o.count(1'000'000), batch = 1000;
    return bench::measure(n, [&] {
        for (std::uint64_t from = 0; from < n; from += batch)
            asio::post(pool.context, [&pool, from, to = std::min(from + batch, n)] {
                for (std::uint64_t i = from; i < to; i++)
                    asio::post(pool.context, micro{i});
            });
        bench::tally::wait_for(n);
    });
}

bench::result micro_inside(const bench::options &o) {
    asio_pool pool(o.workers);
    std::uint64_t n = o.count(1'000'000);
    return bench::measure(n, [&] {
        asio::post(pool.context, [&pool, n] {
            for (std::uint64_t i = 0; i < n; i++)
                asio::post(pool.context, micro{i});
        });
        bench::tally::wait_for(n);
    });
}

struct link {
    asio::io_context *context;
    std::uint64_t left;
    std::uint64_t *hops;
    std::latch *end;
    void operator()() const {
        ++*hops;
        if (left > 1)
            asio::post(*context, link{context, left - 1, hops, end});
        else
            end->count_down();
    }
};

bench::result chain(const bench::options &o) {
    asio_pool pool(o.workers);
    std::uint64_t n = o.count(100'000);
    return bench::measure(n, [&] {
        std::uint64_t hops = 0;
        std::latch end(1);
        asio::post(pool.context, link{&pool.context, n, &hops, &end});
        end.wait();
        bench::check(hops, n, "hops");
    });
}

awaitable yielder(asio::io_context &context, std::uint64_t times, std::uint64_t &done, std::latch &end) {
    for (std::uint64_t i = 0; i < times; i++) {
        co_await asio::post(context, use_awaitable);
        done++;
    }
    end.count_down();
}

bench::result yields(const bench::options &o, std::uint64_t coroutines) {
    asio_pool pool(o.workers);
    std::uint64_t each = o.count(1'000'000 / coroutines);
    return bench::measure(each * coroutines, [&] {
        struct alignas(128) count {
            std::uint64_t done = 0;
        };
        std::vector<count> counts(coroutines);
        std::latch end(static_cast<std::ptrdiff_t>(coroutines));
        for (auto &c : counts)
            asio::co_spawn(pool.context, yielder(pool.context, each, c.done, end), asio::detached);
        end.wait();
        for (auto &c : counts)
            bench::check(c.done, each, "yields");
    });
}

bench::result yield2(const bench::options &o) { return yields(o, 2); }
bench::result yield1000(const bench::options &o) { return yields(o, 1000); }

} // namespace

const std::vector<bench::work> task_works = {
    {"micro_outside", {1, 2}, micro_outside},
    {"micro_outside_batch", {1, 2}, micro_outside_batch},
    {"micro_inside", {1, 2}, micro_inside},
    {"chain", {1, 2}, chain},
    {"yield2", {1, 2}, yield2},
    {"yield1000", {1, 2}, yield1000},
};
