/* SPDX-License-Identifier: MIT
 *
 * faults.h: a system that refuses. A program of one file that includes this defines the functions of the C library that libweft calls, so
 * they are found before the system's: at seeded random points they fail in ways that the system may, else they do what they always do.
 * Only calls that come from libweft are struck, and only while faults are on.
 */
#ifndef WEFT_TESTS_C_FAULTS_H
#define WEFT_TESTS_C_FAULTS_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The sanitizers have an allocator of their own, which must not be replaced. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAULTS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define FAULTS_MEMORY 0
#endif
#endif
#ifndef FAULTS_MEMORY
#define FAULTS_MEMORY 1
#endif

/* ThreadSanitizer's functions stand in the program itself, and must go on seeing the calls. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAULTS_REAL(name) __interceptor_##name
#define FAULTS_DECLARE(name) extern __typeof__(name) __interceptor_##name;
FAULTS_DECLARE(recv)
FAULTS_DECLARE(recvmsg)
FAULTS_DECLARE(send)
FAULTS_DECLARE(sendmsg)
FAULTS_DECLARE(accept4)
FAULTS_DECLARE(socket)
FAULTS_DECLARE(connect)
FAULTS_DECLARE(write)
FAULTS_DECLARE(epoll_wait)
FAULTS_DECLARE(pthread_create)
#endif
#endif

#define FAULTS(X)                                                                       \
    X(interrupted)  /* EINTR from anything */                                           \
    X(short_receive) /* of a socket whose receives may be short although more is there */ \
    X(short_send)                                                                       \
    X(no_buffers)   /* ENOMEM or ENOBUFS from a receive or send */                      \
    X(no_number)    /* EMFILE, ENFILE or ENOMEM from accept or socket */                \
    X(aborted)      /* ECONNABORTED from accept */                                      \
    X(spurious)     /* an event that has no cause: the op's call is then refused */     \
    X(woken)        /* a sleep that ends for no reason */                               \
    X(not_cached)   /* EAGAIN from a read that may not wait, or fewer bytes */           \
    X(short_move)   /* of a file */                                                     \
    X(no_ring)      /* io_uring is refused */                                           \
    X(no_flight)    /* the ring takes no entry */                                       \
    X(no_thread)    /* EAGAIN from pthread_create */                                    \
    X(no_memory)    /* NULL from what makes runtimes and records */                     \
    X(no_growth)    /* NULL from malloc; Go, too, ends the program then */

typedef enum fault {
#define FAULT_(name) FAULT_##name,
    FAULTS(FAULT_)
#undef FAULT_
    FAULT_COUNT
} fault;

static const char *const fault_names[FAULT_COUNT] = {
#define FAULT_(name) #name,
    FAULTS(FAULT_)
#undef FAULT_
};

static _Atomic uint32_t fault_one_in[FAULT_COUNT]; /* one call of so many is struck; 0: none */
static atomic_long fault_struck[FAULT_COUNT];
static _Atomic uint64_t fault_seed = 1;
static uintptr_t library_begin, library_end; /* where libweft's code is */

static int find_library(struct dl_phdr_info *info, size_t size, void *address)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || (uintptr_t)address < begin || (uintptr_t)address >= end) continue;
        library_begin = begin;
        library_end = end;
        return 1;
    }
    return 0;
}

/* Where a function of libweft is; it must not be called yet. */
static inline void faults_know(void *function) { dl_iterate_phdr(find_library, function); }

static uint64_t fault_random(void)
{
    uint64_t x = atomic_fetch_add(&fault_seed, UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64: any thread, one state */
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool struck(fault which, const void *caller)
{
    /* acquire: who reads that faults are on knows where the library is, too. */
    uint32_t one_in = atomic_load_explicit(&fault_one_in[which], memory_order_acquire);
    if (one_in == 0 || (uintptr_t)caller - library_begin >= library_end - library_begin || fault_random() % one_in != 0) return false;
    atomic_fetch_add(&fault_struck[which], 1);
    return true;
}

#define IS_ON(which) (atomic_load_explicit(&fault_one_in[FAULT_##which], memory_order_relaxed) != 0)
#define STRUCK(which) struck(FAULT_##which, __builtin_return_address(0))
#define NEXT(name)                                                              \
    static _Atomic(__typeof__(&name)) next_;                                    \
    __typeof__(&name) real = atomic_load_explicit(&next_, memory_order_relaxed); \
    if (real == NULL) {                                                         \
        void *found_ = dlsym(RTLD_NEXT, #name);                                 \
        memcpy(&real, &found_, sizeof found_);                                  \
        atomic_store_explicit(&next_, real, memory_order_relaxed);              \
    }
#ifdef FAULTS_REAL
#define REAL(name) __typeof__(&name) real = FAULTS_REAL(name);
#else
#define REAL(name) NEXT(name)
#endif

static ssize_t fails(int error)
{
    errno = error;
    return -1;
}

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    getsockopt(fd, SOL_SOCKET, option, &value, &size);
    return value;
}

/* Datagrams and messages are not cut. */
static bool is_stream(int fd) { return option_of(fd, SO_TYPE) == SOCK_STREAM; }

/* A TCP receive is short only when there is no more: weft relies on it. */
static bool may_be_short(int fd) { return is_stream(fd) && option_of(fd, SO_DOMAIN) == AF_UNIX; }

ssize_t recv(int fd, void *data, size_t length, int flags)
{
    REAL(recv)
    if (STRUCK(interrupted)) return fails(EINTR);
    if (STRUCK(no_buffers)) return fails(ENOMEM);
    if (length > 1 && IS_ON(short_receive) && may_be_short(fd) && STRUCK(short_receive)) length = 1 + fault_random() % (length - 1);
    return real(fd, data, length, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    REAL(recvmsg)
    if (STRUCK(interrupted)) return fails(EINTR);
    if (STRUCK(no_buffers)) return fails(ENOMEM);
    return real(fd, message, flags);
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
    REAL(send)
    if (STRUCK(interrupted)) return fails(EINTR);
    if (STRUCK(no_buffers)) return fails(ENOBUFS);
    if (length > 1 && IS_ON(short_send) && is_stream(fd) && STRUCK(short_send)) length = 1 + fault_random() % (length - 1);
    return real(fd, data, length, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(sendmsg)
    if (STRUCK(interrupted)) return fails(EINTR);
    if (STRUCK(no_buffers)) return fails(ENOBUFS);
    if (message->msg_iovlen > 1 && IS_ON(short_send) && is_stream(fd) && STRUCK(short_send)) {
        struct msghdr first = *message;
        first.msg_iovlen = 1;
        return real(fd, &first, flags);
    }
    return real(fd, message, flags);
}

int accept4(int fd, __SOCKADDR_ARG address, socklen_t *length, int flags)
{
    REAL(accept4)
    static const int numbers[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS};
    if (STRUCK(interrupted)) return (int)fails(EINTR);
    if (STRUCK(aborted)) return (int)fails(ECONNABORTED);
    if (STRUCK(no_number)) return (int)fails(numbers[fault_random() % 4]);
    return real(fd, address, length, flags);
}

int socket(int domain, int type, int protocol)
{
    REAL(socket)
    if (STRUCK(no_number)) return (int)fails(fault_random() % 2 ? EMFILE : ENFILE);
    return real(domain, type, protocol);
}

/* Interrupted, a connect goes on by itself. */
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    REAL(connect)
    int rc = real(fd, address, length);
    return rc < 0 && errno == EINPROGRESS && STRUCK(interrupted) ? (int)fails(EINTR) : rc;
}

ssize_t write(int fd, const void *data, size_t length)
{
    REAL(write)
    return STRUCK(interrupted) ? fails(EINTR) : real(fd, data, length);
}

/* An event for one that has been seen before: its descriptor may be closed by now, or its number another's. */
static _Atomic uint64_t seen[64];

static int events_of(int n, struct epoll_event *events, int most, const void *caller)
{
    for (int i = 0; i < n; i++)
        if (events[i].data.u64 != UINT64_MAX) atomic_store(&seen[fault_random() % 64], events[i].data.u64);
    for (int i = 0; n >= 0 && n < most && i < 3; i++) {
        uint64_t data = atomic_load(&seen[fault_random() % 64]);
        if (data != 0 && struck(FAULT_spurious, caller)) events[n++] = (struct epoll_event){.events = EPOLLIN | EPOLLOUT, .data.u64 = data};
    }
    return n;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    REAL(epoll_wait)
    if (STRUCK(interrupted)) return (int)fails(EINTR);
    return events_of(real(epoll, events, most, timeout), events, most, __builtin_return_address(0));
}

long syscall(long number, ...)
{
    NEXT(syscall)
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_uring_setup && STRUCK(no_ring)) {
        static const int refusals[] = {ENOMEM, EPERM, EMFILE};
        return fails(refusals[fault_random() % 3]);
    }
    if (number == SYS_io_uring_enter && STRUCK(no_flight)) return fails(fault_random() % 2 ? EAGAIN : EBUSY);
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2) {
        if (STRUCK(interrupted)) return fails(EINTR);
        long n = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        return events_of((int)n, (struct epoll_event *)a[1], (int)a[2], __builtin_return_address(0));
    }
#endif
    if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
        if (STRUCK(interrupted)) return fails(EINTR);
        if (STRUCK(woken)) return 0;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Files. A transfer that is cut short goes on where it stopped. */

static size_t cut(size_t length, const void *caller)
{
    return length > 1 && struck(FAULT_short_move, caller) ? 1 + fault_random() % (length - 1) : length;
}

ssize_t pread(int fd, void *data, size_t length, off_t offset)
{
    NEXT(pread)
    return STRUCK(interrupted) ? fails(EINTR) : real(fd, data, cut(length, __builtin_return_address(0)), offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
    NEXT(pwrite)
    return STRUCK(interrupted) ? fails(EINTR) : real(fd, data, cut(length, __builtin_return_address(0)), offset);
}

ssize_t preadv2(int fd, const struct iovec *pieces, int count, off_t offset, int flags)
{
    NEXT(preadv2)
    struct iovec first = pieces[0];
    if (first.iov_len > 1 && STRUCK(not_cached)) {
        if (fault_random() % 2) return fails(EAGAIN);
        first.iov_len = 1 + fault_random() % (first.iov_len - 1);
        return real(fd, &first, 1, offset, flags);
    }
    return real(fd, pieces, count, offset, flags);
}

int fsync(int fd)
{
    NEXT(fsync)
    return STRUCK(interrupted) ? (int)fails(EINTR) : real(fd);
}

/* Go asks again when it is refused; weft does not. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    REAL(pthread_create)
    return STRUCK(no_thread) ? EAGAIN : real(thread, attributes, start, argument);
}

#if FAULTS_MEMORY
extern void *__libc_calloc(size_t count, size_t size); /* dlsym itself allocates */

extern void *__libc_malloc(size_t size);

void *malloc(size_t size) { return STRUCK(no_growth) ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { return STRUCK(no_memory) ? NULL : __libc_calloc(count, size); }

void *aligned_alloc(size_t alignment, size_t size)
{
    NEXT(aligned_alloc)
    return STRUCK(no_memory) ? NULL : real(alignment, size);
}
#endif

/* Faults of which a user sees next to nothing. one_in 0: none. */
static inline void faults_unseen(int one_in, uint64_t seed)
{
    static const fault kinds[] = {FAULT_interrupted, FAULT_woken,      FAULT_spurious,  FAULT_short_receive, FAULT_short_send,
                                  FAULT_not_cached,  FAULT_short_move, FAULT_no_flight, FAULT_no_thread};
    if (library_begin == 0) faults_know((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "weft_now_ns"));
    atomic_store(&fault_seed, seed);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) atomic_store(&fault_one_in[kinds[i]], (uint32_t)one_in);
}

#endif
