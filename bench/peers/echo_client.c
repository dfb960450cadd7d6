/* SPDX-License-Identifier: MIT
 *
 * echo_client.c: the one client for all echo servers: one thread, epoll, messages of 64 bytes. Each connection has one message
 * under way, and sends the next when the answer is complete and right. Every message differs from the one before it.
 *
 *   echo_client PORT CONNECTIONS SECONDS SERVER_PID [SLOW]
 *
 * With SLOW the messages are HTTP requests (bench/common/http.h), of which so many per cent make their handler block; the round trips
 * are those of the others then.
 *
 * prints "ns=... p50_ns=... p99_ns=... server_cpu_ns=... client_cpu_ns=...": time per message, round trips, and the CPU time per
 * message of the server and of itself. The first fifth of the time is not counted.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "bench.h"
#include "http.h"

enum { message_bytes = 64, events_max = 256, samples_max = 1 << 22 };

typedef struct connection {
    int fd;
    uint64_t number; /* of the message that is under way */
    int slow;        /* it is a request that blocks */
    int64_t sent;    /* ns */
    size_t got;      /* bytes of the answer */
    char answer[message_bytes];
} connection;

static int64_t samples[samples_max];
static size_t sample_count;
static int slow_percent = -1; /* -1: echo */

static void fill(char *message, uint64_t number) {
    uint64_t words[message_bytes / 8];
    for (size_t i = 0; i < message_bytes / 8; i++)
        words[i] = number + i;
    memcpy(message, words, message_bytes);
}

static void send_next(connection *c) {
    char message[message_bytes];
    c->number += UINT64_C(0x100000001);
    c->got = 0;
    if (slow_percent < 0) {
        fill(message, c->number);
    } else {
        c->slow = bench_random(c->number) % 100 < (uint64_t)slow_percent;
        memcpy(message, c->slow ? bench_http_slow : bench_http_fast, message_bytes);
    }
    c->sent = bench_now_ns();
    if (send(c->fd, message, message_bytes, MSG_NOSIGNAL) != message_bytes) bench_fail("send: %s", strerror(errno));
}

/* Returns 1 when the answer was complete, and the next message is under way. */
static int receive(connection *c) {
    char want[message_bytes];
    ssize_t n = recv(c->fd, c->answer + c->got, message_bytes - c->got, 0);
    if (n == 0) bench_fail("the server closed a connection");
    if (n < 0) {
        if (errno == EAGAIN) return 0;
        bench_fail("recv: %s", strerror(errno));
    }
    c->got += (size_t)n;
    if (c->got < message_bytes) return 0;
    if (sample_count < samples_max && !c->slow) samples[sample_count++] = bench_now_ns() - c->sent;
    if (slow_percent < 0)
        fill(want, c->number);
    else
        memcpy(want, bench_http_answer, message_bytes);
    if (memcmp(want, c->answer, message_bytes) != 0) bench_fail("wrong answer");
    send_next(c);
    return 1;
}

static void open_connection(connection *c, int loop, int port, uint64_t number) {
    struct sockaddr_in address;
    struct epoll_event e;
    int on = 1;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->number = number;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) bench_fail("connect: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    e.events = EPOLLIN;
    e.data.ptr = c;
    if (epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &e) != 0) bench_fail("epoll_ctl: %s", strerror(errno));
}

/* Answers messages until the clock says `end`; returns how many. */
static uint64_t run_until(int loop, int64_t end) {
    struct epoll_event events[events_max];
    uint64_t messages = 0;
    int64_t heard = bench_now_ns();
    for (;;) {
        int n = epoll_wait(loop, events, events_max, 1000);
        int64_t now = bench_now_ns();
        if (now >= end) return messages;
        if (n > 0)
            heard = now;
        else if (now - heard > 5000000000)
            bench_fail("no answer for 5 seconds");
        for (int i = 0; i < n; i++)
            messages += (uint64_t)receive(events[i].data.ptr);
    }
}

int main(int argc, char **argv) {
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: %s PORT CONNECTIONS SECONDS SERVER_PID [SLOW]\n", argv[0]);
        return 2;
    }
    if (argc == 6) slow_percent = atoi(argv[5]);
    int port = atoi(argv[1]), count = atoi(argv[2]), loop = epoll_create1(EPOLL_CLOEXEC);
    int64_t window = (int64_t)(atof(argv[3]) * 1e9);
    clockid_t server;
    bench_raise_file_limit();
    if (clock_getcpuclockid(atoi(argv[4]), &server) != 0) bench_fail("no process %s", argv[4]);
    connection *connections = calloc((size_t)(count > 0 ? count : 1), sizeof *connections);
    if (loop < 0 || connections == NULL) bench_fail("cannot start");
    for (int i = 0; i < count; i++)
        open_connection(&connections[i], loop, port, (uint64_t)i << 48);
    for (int i = 0; i < count; i++)
        send_next(&connections[i]);

    run_until(loop, bench_now_ns() + window / 5);
    sample_count = 0;
    int64_t server_cpu = bench_clock_ns(server), own_cpu = bench_cpu_ns(), begin = bench_now_ns();
    uint64_t messages = run_until(loop, begin + window - window / 5);
    double took = (double)(bench_now_ns() - begin);
    server_cpu = bench_clock_ns(server) - server_cpu;
    own_cpu = bench_cpu_ns() - own_cpu;
    if (messages == 0) bench_fail("no message was answered");
    bench_sort(samples, sample_count);
    printf("ns=%.6g p50_ns=%lld p99_ns=%lld server_cpu_ns=%.6g client_cpu_ns=%.6g\n", took / (double)messages,
           (long long)bench_percentile(samples, sample_count, 0.5), (long long)bench_percentile(samples, sample_count, 0.99),
           (double)server_cpu / (double)messages, (double)own_cpu / (double)messages);
    return 0;
}
