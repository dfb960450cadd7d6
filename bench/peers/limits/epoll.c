/* SPDX-License-Identifier: MIT
 *
 * epoll.c: an echo server by hand: one level-triggered epoll loop per thread, connections dealt out in turn, read and write
 * at once, no framework at all. What a TCP server can reach on this machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "bench.h"

enum { threads_max = 64, events_max = 256, buffer_bytes = 4096 };

/* Per connection: only what a short write left over, which a client that waits for its answer never causes. */
typedef struct connection {
    int fd;
    size_t begin, end;
    char rest[buffer_bytes];
} connection;

static int loops[threads_max], loop_count, listener;

static void watch(int loop, int fd, uint32_t events, int operation, void *data) {
    struct epoll_event e;
    e.events = events;
    e.data.ptr = data;
    if (epoll_ctl(loop, operation, fd, &e) != 0) bench_fail("epoll_ctl: %s", strerror(errno));
}

static void accept_all(void) {
    static int turn;
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        connection *c = malloc(sizeof *c);
        if (c == NULL) bench_fail("out of memory");
        c->fd = fd;
        c->begin = c->end = 0;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(loops[turn], fd, EPOLLIN, EPOLL_CTL_ADD, c);
        turn = (turn + 1) % loop_count;
    }
}

static void drop(connection *c) {
    close(c->fd);
    free(c);
}

/* Sends from begin to end; waits for room with EPOLLOUT when there is none. Returns 0 when the peer has gone. */
static int flush(int loop, connection *c, const char *data) {
    while (c->begin < c->end) {
        ssize_t n = send(c->fd, data + c->begin, c->end - c->begin, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) return 0;
        if (n < 0) {
            if (data != c->rest) {
                memcpy(c->rest + c->begin, data + c->begin, c->end - c->begin);
                watch(loop, c->fd, EPOLLOUT, EPOLL_CTL_MOD, c);
            }
            return 1;
        }
        c->begin += (size_t)n;
    }
    if (data == c->rest) watch(loop, c->fd, EPOLLIN, EPOLL_CTL_MOD, c);
    return 1;
}

static void serve(int loop, connection *c, uint32_t events) {
    char data[buffer_bytes];
    ssize_t n;
    if (events & EPOLLOUT) {
        if (!flush(loop, c, c->rest)) drop(c);
        return;
    }
    n = recv(c->fd, data, sizeof data, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        drop(c);
    } else if (n > 0) {
        c->begin = 0;
        c->end = (size_t)n;
        if (!flush(loop, c, data)) drop(c);
    }
}

static void *run(void *argument) {
    int loop = *(int *)argument;
    struct epoll_event events[events_max];
    for (;;) {
        int n = epoll_wait(loop, events, events_max, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL)
                accept_all();
            else
                serve(loop, events[i].data.ptr, events[i].events);
        }
    }
    return NULL;
}

static void echo(int threads) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        bench_fail("cannot listen: %s", strerror(errno));
    loop_count = threads;
    for (int i = 0; i < threads; i++)
        if ((loops[i] = epoll_create1(EPOLL_CLOEXEC)) < 0) bench_fail("epoll_create1: %s", strerror(errno));
    watch(loops[0], listener, EPOLLIN, EPOLL_CTL_ADD, NULL);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, &loops[i]) != 0) bench_fail("cannot start a thread");
    }
    bench_serve_until_told(ntohs(address.sin_port));
}

int main(int argc, char **argv) {
    bench_raise_file_limit();
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        printf("echo 1\necho 2\n");
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "run") == 0 && strcmp(argv[2], "echo") == 0 && atoi(argv[3]) > 0 &&
        atoi(argv[3]) <= threads_max) {
        echo(atoi(argv[3]));
        return 0;
    }
    fprintf(stderr, "usage: %s list | run echo WORKERS SCALE\n", argv[0]);
    return 2;
}
