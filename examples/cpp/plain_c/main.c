/* SPDX-License-Identifier: MIT
 *
 * weft from plain C: run an op, wait for a timer, and echo over a connection. C11, and weft.h is the only header of weft.
 */
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

static void check(int code, const char *what) {
    if (code < 0) {
        fprintf(stderr, "%s: %s (%s)\n", what, weft_error_text(code), weft_error_name(code));
        exit(EXIT_FAILURE);
    }
}

/* An op is memory of ours whose run function a worker calls once. It is ours again when run begins. */
static void hello_run(weft_op *op) {
    printf("op: running on a worker: %s\n", weft_worker_index() >= 0 ? "yes" : "no");
    sem_post(op->context);
}

static void timer_run(weft_op *op) { sem_post(op->context); }

/* Echoes until the other end has sent everything. One op is used again and again, first to receive, then to send. */
typedef struct echo {
    weft_io io;
    weft_descriptor socket;
    sem_t *done;
    bool sent; /* what the op did last */
    char buffer[256];
} echo;

static void echo_run(weft_op *op) {
    echo *e = op->context;
    int started;
    do {
        if (e->io.status != WEFT_OK || (!e->sent && e->io.count == 0)) {
            printf("echo: the other end is done: %s\n", e->io.status == WEFT_OK ? "yes" : weft_error_text(e->io.status));
            weft_descriptor_close(e->socket);
            sem_post(e->done);
            return;
        }
        e->sent = !e->sent;
        if (e->sent) {
            started = weft_send(&e->io, e->socket, e->buffer, (size_t)e->io.count, WEFT_IO_ALL);
        } else {
            started = weft_recv(&e->io, e->socket, e->buffer, sizeof e->buffer, 0);
        }
        check(started, "echo");
    } while (started == 1); /* 1: the result is there. 0: it is not, and echo_run is called when it is. */
}

/* Sends a line, and waits for as many bytes. */
typedef struct client {
    weft_io io;
    sem_t *done;
} client;

static void client_run(weft_op *op) { sem_post(((client *)op->context)->done); }

static void wait_for(int started, client *c, const char *what) {
    check(started, what);
    if (started == WEFT_OK) {
        sem_wait(c->done);
    }
    check(c->io.status, what);
}

int main(void) {
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    weft_runtime runtime;
    config.workers = 2;
    check(weft_runtime_create(&config, &runtime), "create");

    sem_t done;
    sem_init(&done, 0, 0);

    weft_op hello = {.run = hello_run, .context = &done};
    check(weft_schedule(runtime, &hello), "schedule");
    sem_wait(&done);

    const int64_t begin_ns = weft_now_ns();
    weft_timer timer = {.op = {.run = timer_run, .context = &done}};
    check(weft_schedule_after(runtime, &timer, INT64_C(20000000)), "timer");
    sem_wait(&done);
    printf("timer: %s after 20 ms: %s\n", weft_error_text(timer.status),
           weft_now_ns() - begin_ns >= INT64_C(20000000) ? "yes" : "no");

    weft_endpoint at;
    weft_descriptor listener, socket;
    check(weft_endpoint_parse("127.0.0.1:0", &at), "parse");
    check(weft_tcp_listen(runtime, &at, 0, &listener), "listen");
    check(weft_local_endpoint(listener, &at), "local endpoint");
    check(weft_tcp_open(runtime, WEFT_IPV4, &socket), "open");
    client c = {.done = &done};
    c.io.op = (weft_op){.run = client_run, .context = &c};
    wait_for(weft_connect(&c.io, socket, &at), &c, "connect"); /* the listener's queue has room for it */
    wait_for(weft_accept(&c.io, listener), &c, "accept");
    weft_descriptor_close(listener);

    sem_t echoed;
    sem_init(&echoed, 0, 0);
    echo server = {.socket = c.io.accepted, .done = &echoed, .sent = true};
    server.io.op = (weft_op){.run = echo_run, .context = &server};
    check(weft_schedule(runtime, &server.io.op), "schedule");

    const char line[] = "the weft runs across the warp";
    char answer[sizeof line];
    wait_for(weft_send(&c.io, socket, line, sizeof line, WEFT_IO_ALL), &c, "send");
    wait_for(weft_recv(&c.io, socket, answer, sizeof answer, WEFT_IO_ALL), &c, "receive");
    printf("echo: %zu bytes came back, the same: %s\n", (size_t)c.io.count, memcmp(line, answer, sizeof line) == 0 ? "yes" : "no");
    weft_descriptor_close(socket);
    sem_wait(&echoed);

    weft_stats stats = {.size = sizeof stats};
    check(weft_runtime_stats(runtime, &stats), "statistics");
    printf("statistics: %llu timer fired, %llu I/O ops, %llu descriptors open\n", (unsigned long long)stats.timers_fired,
           (unsigned long long)stats.io_started, (unsigned long long)stats.descriptors);

    check(weft_runtime_destroy(runtime), "destroy");
    sem_destroy(&done);
    sem_destroy(&echoed);
    return EXIT_SUCCESS;
}
