/* SPDX-License-Identifier: MIT
 *
 * file.h: the file of the works that read one: blocks of 4 KiB, each of which begins with a word that tells which it is. It is made for one process and removed
 * at its end, in TMPDIR or /var/tmp, which should be on a disk.
 */
#ifndef WEFT_BENCH_FILE_H
#define WEFT_BENCH_FILE_H

#include <errno.h>
#include <fcntl.h>

#include "bench.h"

enum { bench_block_bytes = 4096, bench_blocks = 16384 };

/* The block that the i-th read is of, and the word that it begins with. */
static inline uint64_t bench_block_of(uint64_t i) { return bench_random(i) % bench_blocks; }
static inline uint64_t bench_block_word(uint64_t block) { return bench_random(block + 1000000); }

static inline uint64_t bench_block_words(uint64_t reads) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < reads; i++) sum += bench_block_word(bench_block_of(i));
    return sum;
}

static char bench_file_path_[300];

static inline void bench_file_remove_(void) { unlink(bench_file_path_); }

/* Its path. All of it is in memory, and on the disk. */
static inline const char *bench_file(void) {
    static char block[bench_block_bytes];
    const char *folder = getenv("TMPDIR");
    snprintf(bench_file_path_, sizeof bench_file_path_, "%s/weft-bench-%ld", folder != NULL ? folder : "/var/tmp", (long)getpid());
    int fd = open(bench_file_path_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) bench_fail("%s: %s", bench_file_path_, strerror(errno));
    atexit(bench_file_remove_);
    for (uint64_t i = 0; i < bench_blocks; i++) {
        uint64_t word = bench_block_word(i);
        memcpy(block, &word, sizeof word);
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block) bench_fail("%s: %s", bench_file_path_, strerror(errno));
    }
    if (fsync(fd) != 0) bench_fail("%s: %s", bench_file_path_, strerror(errno));
    close(fd);
    return bench_file_path_;
}

/* Takes it out of memory. What is read of it is read alone, without what stands beside it. */
static inline void bench_file_forget(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) bench_fail("%s cannot be taken out of memory", path);
    close(fd);
}

#endif
