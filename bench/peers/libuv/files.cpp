// SPDX-License-Identifier: MIT
//
// files.cpp: libuv's reads of files, which its thread pool makes: as many threads as reads at once, 64 at most.
#include <uv.h>

#include <cstring>

#include "bench.hpp"
#include "file.h"

namespace {

struct reader {
    uv_fs_t request;
    uv_file file;
    std::uint64_t next, step, end;
    std::uint64_t *sum;
    char block[bench_block_bytes];
};

void read_next(uv_loop_t *loop, reader &r);

void have_read(uv_fs_t *request) {
    auto &r = *static_cast<reader *>(request->data);
    if (request->result != bench_block_bytes) bench_fail("uv_fs_read: %s", uv_strerror(static_cast<int>(request->result)));
    std::uint64_t word = 0;
    std::memcpy(&word, r.block, sizeof word);
    *r.sum += word;
    uv_loop_t *loop = request->loop;
    uv_fs_req_cleanup(request);
    read_next(loop, r);
}

void read_next(uv_loop_t *loop, reader &r) {
    if (r.next >= r.end) return;
    uv_buf_t into = uv_buf_init(r.block, sizeof r.block);
    auto at = static_cast<std::int64_t>(bench_block_of(r.next) * bench_block_bytes);
    r.next += r.step;
    if (uv_fs_read(loop, &r.request, r.file, &into, 1, at, have_read) != 0) bench_fail("uv_fs_read");
}

bench::result read_blocks(std::uint64_t at_once, std::uint64_t n, bool cold) {
    setenv("UV_THREADPOOL_SIZE", std::to_string(at_once).c_str(), 1);
    const char *path = bench_file();
    std::uint64_t want = bench_block_words(n);
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) bench_fail("uv_loop_init");
    std::vector<reader> readers(at_once);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bench::result r = bench::measure(n, [&] {
        if (cold) bench_file_forget(path);
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < at_once; i++) {
            reader &one = readers[i];
            one.request.data = &one;
            one.file = file;
            one.next = i;
            one.step = at_once;
            one.end = n;
            one.sum = &sum;
            read_next(&loop, one);
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        bench::check(sum, want, "sum of the blocks' words");
    });
    close(file);
    uv_loop_close(&loop);
    return r;
}

bench::result file_read1(const bench::options &o) { return read_blocks(1, o.count(100'000), false); }
bench::result file_read64(const bench::options &o) { return read_blocks(64, o.count(100'000), false); }
bench::result file_cold64(const bench::options &o) { return read_blocks(64, o.count(5'000), true); }

} // namespace

extern const std::vector<bench::work> file_works;
const std::vector<bench::work> file_works = {
    {"file_read1", {1}, file_read1}, {"file_read64", {1}, file_read64}, {"file_cold64", {1}, file_cold64}};
