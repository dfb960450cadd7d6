/* SPDX-License-Identifier: MIT
 *
 * os_linux.c: os.h on Linux.
 */
#include "crossing.h"
#include "delay.h"
#include "lane_internal.h"
#include "tsan.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A forked child has none of the threads: it must not queue anything, and its calls say so. */
static void lane_after_fork(void) {
    lane_self = NULL;
    atomic_store_explicit(&lane_forked, 1, memory_order_relaxed);
}

__attribute__((constructor)) static void lane_load(void) {
    lane_asymmetric = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    pthread_atfork(NULL, NULL, lane_after_fork);
}

int64_t lane_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t weft_now_ns(void) { return lane_now(); }

void lane_barrier_of_all(void) { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }

void lane_yield(void) { sched_yield(); }

void lane_nap(int64_t ns) {
    int saved = errno;
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    errno = saved;
}

/* Sleeps while *word == expected, until a wake, about the deadline, a signal, or for no reason. errno is kept: sleeps happen between ops, whose
 * code may look at it. */
void lane_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns) {
    int saved = errno;
    if (deadline_ns != INT64_MAX) {
        int64_t now = lane_now();
        if (deadline_ns > now) deadline_ns = now + lane_ask_for(deadline_ns - now, 0);
    }
    struct timespec until = {.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline_ns == INT64_MAX ? NULL : &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
    errno = saved;
}

void lane_futex_wake(_Atomic uint32_t *word) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

/* Locks. */

void lane_mutex_begin(lane_mutex *mutex) { pthread_mutex_init(mutex, NULL); }
void lane_mutex_end(lane_mutex *mutex) { pthread_mutex_destroy(mutex); }
void lane_mutex_lock(lane_mutex *mutex) { pthread_mutex_lock(mutex); }
void lane_mutex_unlock(lane_mutex *mutex) { pthread_mutex_unlock(mutex); }

void lane_condition_begin(lane_condition *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void lane_condition_end(lane_condition *condition) { pthread_cond_destroy(condition); }

void lane_condition_wait(lane_condition *condition, lane_mutex *mutex, int64_t deadline_ns) {
    struct timespec until = {.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000};
    if (deadline_ns == INT64_MAX)
        pthread_cond_wait(condition, mutex);
    else
        pthread_cond_timedwait(condition, mutex, &until);
}

void lane_condition_wake_one(lane_condition *condition) { pthread_cond_signal(condition); }
void lane_condition_wake_all(lane_condition *condition) { pthread_cond_broadcast(condition); }

/* Threads. */

bool lane_thread_make(lane_thread *thread, uint64_t stack_bytes, lane_thread_result (*main)(void *), void *argument) {
    sigset_t before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    long least = sysconf(_SC_THREAD_STACK_MIN); /* 128 KiB on arm64 */
    if (least > 0 && stack_bytes < (uint64_t)least) stack_bytes = (uint64_t)least;
    int rc = pthread_attr_setstacksize(&attributes, (size_t)(stack_bytes + 4095) & ~(size_t)4095);
    lane_block_signals(&before);
    if (rc == 0) rc = pthread_create(thread, &attributes, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc == 0;
}

void lane_thread_join(lane_thread thread) { pthread_join(thread, NULL); }
void lane_thread_detach(lane_thread thread) { pthread_detach(thread); }
void lane_thread_name(const char *name) { pthread_setname_np(pthread_self(), name); }

uint32_t lane_thread_number(void) { return (uint32_t)syscall(SYS_gettid); }

/* Thread-local variables, the program's too, and the guard page are taken from the size that was asked for. */
size_t lane_thread_stack_left(void) {
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    int rc = pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    return rc == 0 ? (uintptr_t)__builtin_frame_address(0) - (uintptr_t)lowest : 0;
}

/* The clock's number is made as the kernel defines it (pthread_getcpuclockid does the same). A thread that has ended has no clock; a pthread_t of
 * it could not even be asked. */
int64_t lane_thread_cpu(uint32_t number) {
    struct timespec used;
    if (clock_gettime((clockid_t)(~number << 3 | 6), &used) != 0) return 0;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* The state stands behind the name, which is in parentheses and may hold any. Where there is no /proc, a thread that computes nothing is taken for
 * a sleeping one. */
bool lane_thread_sleeps(uint32_t number) {
    char text[160];
    snprintf(text, sizeof text, "/proc/self/task/%u/stat", number);
    int file = open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0) return true;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    const char *state = strrchr(text, ')');
    return state == NULL || (state[1] == ' ' && state[2] != 'R');
}

/* Linux lets the sleeps of a thread end 50 us late, to bundle wakes. */
void lane_sleep_sharply(void) { prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); }

/* Memory. */

void *lane_allocate(size_t bytes) { return aligned_alloc(128, (bytes + 127) & ~(size_t)127); }
void *lane_allocate_words(size_t count) { return malloc(count * sizeof(uint64_t)); }

/* What one thread made, another may free: a queue that a giver has grown, its owner. */
void lane_free(void *memory) {
    tsan_acquire(memory);
    free(memory);
}

/* LeakSanitizer does not look for pointers in mappings of which it was not told. */
extern __attribute__((weak)) void __lsan_register_root_region(const void *, size_t);

void *lane_map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    if (__lsan_register_root_region != NULL) __lsan_register_root_region(memory, bytes);
    return memory;
}

void lane_map_clear(void *memory, size_t bytes) { madvise(memory, bytes, MADV_DONTNEED); }

void lane_locate(uint64_t function, lane_place *place) {
    *place = (lane_place){0};
    Dl_info info;
    if (dladdr((void *)(uintptr_t)function, &info) == 0) return;
    place->name = info.dli_sname;
    place->module = info.dli_fname;
    place->offset = function - (uint64_t)(uintptr_t)info.dli_fbase;
}
