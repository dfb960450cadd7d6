/* SPDX-License-Identifier: MIT
 *
 * calls.c: a byte string drives the C interface, one call a step, with arguments that are right, nearly right, or nothing. What a call returns
 * is compared with what its page says for the state that the program knows of; whatever was accepted must have run exactly once in the end.
 * Entry of libFuzzer; the step fuzz builds it with the library's C part instrumented. Steps that wait do so for an event that must come, so
 * a hang is a finding, too.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPS = 8, TIMERS = 8, PAIRS = 3, SOURCES = 2, REGISTRATIONS = 6, STEPS_MAX = 200 };

/* The input. At its end there are zeros. */
static const uint8_t *input;
static size_t left;

static void take(void *to, size_t bytes)
{
    size_t have = bytes < left ? bytes : left;
    memset(to, 0, bytes);
    memcpy(to, input, have);
    input += have;
    left -= have;
}

static uint8_t take_byte(void)
{
    uint8_t value;
    take(&value, 1);
    return value;
}

static uint64_t take_word(void)
{
    uint64_t value;
    take(&value, 8);
    return value;
}

/* What there is. */
weft_runtime runtime;
bool stopped;
static item ops[OPS], timers[TIMERS], receives[PAIRS], sends[PAIRS];
static weft_descriptor descriptors[PAIRS];
static int peers[PAIRS];
static weft_cancel_source sources[SOURCES];
static weft_cancel_registration registrations[REGISTRATIONS];
static int registered[REGISTRATIONS]; /* 0: idle; 1: waits; 2: its callback has run */
static int source_of[REGISTRATIONS];

static void fires(weft_op *op)
{
    item *i = (item *)op;
    if (i->as.timer.status == WEFT_OK) MUST(weft_now_ns() >= i->deadline);
    else MUST(i->as.timer.status == WEFT_ECANCELED);
    runs(op);
}

static void called(void *context) { registered[(int *)context - registered] = 2; }

/* A config of any size, exactly that long, so that a byte read too much is seen. */
static void create_and_destroy(void)
{
    uint8_t size = take_byte();
    unsigned char *bytes = malloc(size < 4 ? 4 : size);
    take(bytes, size);
    uint32_t claimed = size;
    if (size < 4) memset(bytes, 0, 4);
    memcpy(bytes, &claimed, sizeof claimed);
    weft_runtime_config config = {0};
    memcpy(&config, bytes, size < sizeof config ? size : sizeof config);
    char name[] = "a name that is too long";
    if (size >= sizeof config) { /* the pointer cannot be the input's */
        if (config.name != NULL) {
            config.name = &name[(uintptr_t)config.name % sizeof name];
            memcpy(bytes + offsetof(weft_runtime_config, name), &config.name, sizeof config.name);
        }
        config.on_stall = NULL; /* nor the function */
        memset(bytes + offsetof(weft_runtime_config, on_stall), 0, sizeof config.on_stall);
    } else if (size > offsetof(weft_runtime_config, name)) {
        free(bytes); /* half a pointer */
        return;
    }
    int wanted = WEFT_OK;
    if (size < 4) wanted = WEFT_EVERSION;
    for (size_t i = sizeof config; i < size; i++)
        if (bytes[i] != 0) wanted = WEFT_EVERSION;
    if (wanted == WEFT_OK && (config.workers > 256 || (config.stack_bytes != 0 && config.stack_bytes < 65536) ||
                              config.stack_bytes > UINT64_C(1) << 40 || (config.name != NULL && strlen(config.name) > 10) ||
                              config.blocking_threads > 1024 || config.max_workers > 256 ||
                              (config.max_workers != 0 && config.workers > config.max_workers) ||
                              (config.flags & ~WEFT_RUNTIME_LOG_STALLS) != 0 || config.reserved_ != 0 || config.keep_ns < 0 ||
                              config.stall_ns < 0))
        wanted = WEFT_EINVAL;
    if (wanted != WEFT_OK || (config.workers <= 4 && config.stack_bytes <= 1 << 20)) { /* more would only be slow */
        weft_runtime made = {77};
        int rc = weft_runtime_create((weft_runtime_config *)(void *)bytes, &made);
        MUST(rc == wanted);
        if (rc == WEFT_OK) {
            MUST(weft_runtime_status(made) == WEFT_OK);
            MUST(weft_runtime_destroy(made) == WEFT_OK);
            MUST(weft_runtime_destroy(made) == WEFT_EBADHANDLE);
        } else {
            MUST(made.id == 77);
        }
    }
    free(bytes);
}

static void schedule(item *i, uint8_t how)
{
    if (!idle(i)) return;
    memset(&i->as, 0, sizeof i->as);
    i->as.op.run = how & 1 ? NULL : runs;
    int wanted = how & 1 ? WEFT_EINVAL : stopped ? WEFT_ESTOPPED : WEFT_OK, rc;
    weft_op *one = &i->as.op;
    switch (how >> 1 & 3) {
    case 0: rc = weft_schedule(runtime, one); break;
    case 1: rc = weft_yield(runtime, one); break;
    case 2:
        if (stopped) wanted = WEFT_ESTOPPED;
        rc = weft_schedule_batch(runtime, &one, 1);
        break;
    default:
        MUST(weft_schedule_local(runtime, one, 0) == WEFT_ENOTWORKER && weft_resume_local(runtime, one) == WEFT_ENOTWORKER);
        rc = weft_resume(runtime, one);
    }
    MUST(rc == wanted);
    if (rc == WEFT_OK) i->accepted++;
}

static void schedule_timer(item *i, uint8_t how)
{
    int64_t time = (int64_t)take_word();
    if (how & 1) time >>= 40; /* soon */
    if (how & 8) {
        time = take_byte();
        time = time & 1 ? INT64_MAX - time : INT64_MIN + time;
    }
    bool was_idle = idle(i), after = (how & 2) != 0;
    if (!was_idle && i->deadline != INT64_MAX) return; /* between its firing and its run it must not be started */
    if (was_idle) {
        memset(&i->as, 0, sizeof i->as);
        i->as.timer.op.run = fires;
        int64_t now = weft_now_ns();
        i->deadline = !after ? time : time <= 0 ? 0 : __builtin_add_overflow(now, time, &i->deadline) ? INT64_MAX : now + time;
    }
    int rc = after ? weft_schedule_after(runtime, &i->as.timer, time) : weft_schedule_at(runtime, &i->as.timer, time);
    if (stopped) {
        MUST(rc == WEFT_ESTOPPED);
    } else if (was_idle) {
        MUST(rc == WEFT_OK);
        i->accepted++;
    } else {
        MUST(rc == WEFT_EBUSY);
    }
}

static void end_timer(item *i, uint8_t how)
{
    if (how & 1) {
        int rc = weft_timer_cancel(&i->as.timer);
        MUST(rc == WEFT_OK || rc == 1);
        if (rc == WEFT_OK) wait_until_idle(i);
    } else {
        int rc = weft_timer_remove(&i->as.timer);
        MUST(rc == WEFT_OK || rc == 1);
        if (rc == WEFT_OK) i->accepted--;
    }
}

static void open_pair(int n)
{
    if (descriptors[n].id != 0) return;
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    weft_descriptor again = {5};
    int rc = weft_descriptor_open(runtime, ends[0], &descriptors[n]);
    if (stopped) {
        MUST(rc == WEFT_ESTOPPED && descriptors[n].id == 0);
        close(ends[0]);
        close(ends[1]);
        return;
    }
    MUST(rc == WEFT_OK);
    MUST(weft_descriptor_open(runtime, ends[0], &again) == WEFT_EEXIST && again.id == 5);
    peers[n] = ends[1];
}

static void close_pair(int n)
{
    weft_descriptor closed = descriptors[n];
    MUST(weft_descriptor_close(closed) == WEFT_OK);
    if (closed.id == 0) return;
    MUST(weft_descriptor_close(closed) == WEFT_EBADHANDLE);
    close(peers[n]);
    descriptors[n].id = 0;
    wait_until_idle(&receives[n]);
    wait_until_idle(&sends[n]);
}

static void transfer(int n, uint8_t how)
{
    static item second; /* in place of one that is under way */
    item *i = how & 1 ? &sends[n] : &receives[n];
    if (!idle(i)) i = &second;
    uint32_t flags = how >> 1 & 3;
    size_t length = how >> 3 & 15;
    bool keep = how & 128 && i->as.io.op.run != NULL; /* used again as it is */
    if (!keep) memset(&i->as, 0, sizeof i->as);
    i->as.io.op.run = runs;
    weft_descriptor descriptor = descriptors[n];
    int rc = how & 1 ? weft_send(&i->as.io, descriptor, i->data, length, flags) : weft_recv(&i->as.io, descriptor, i->data, length, flags);
    if (flags > WEFT_IO_ALL)
        MUST(rc == WEFT_EINVAL);
    else if (descriptor.id == 0)
        MUST(rc == WEFT_EBADHANDLE);
    else if (stopped)
        MUST(rc == WEFT_ESTOPPED);
    else if (rc == WEFT_OK)
        i->accepted++;
    else if (rc == 1)
        MUST(i->as.io.count <= length);
    else
        MUST(rc == WEFT_EBUSY && i == &second);
    if (i == &second && rc == WEFT_OK) {
        MUST(weft_io_cancel(&i->as.io) != WEFT_EINVAL);
        wait_until_idle(i);
    }
}

static void peer_acts(int n, uint8_t how)
{
    if (descriptors[n].id == 0) return;
    char bytes[16] = {0};
    ssize_t moved = 0;
    switch (how & 3) {
    case 0: moved = send(peers[n], bytes, how >> 2 & 15, MSG_DONTWAIT | MSG_NOSIGNAL); break;
    case 1: moved = recv(peers[n], bytes, sizeof bytes, MSG_DONTWAIT); break;
    case 2: shutdown(peers[n], how >> 2 & 1); break;
    default: weft_shutdown(descriptors[n], 1 + (how >> 2) % 3);
    }
    (void)moved;
}

static void use_handle(void)
{
    uint64_t id = take_word();
    weft_descriptor descriptor = {id};
    weft_runtime other = {id};
    for (int n = 0; n < PAIRS; n++)
        if (id == descriptors[n].id) return;
    if (id == runtime.id || id == 0 || is_datagrams(id)) return;
    weft_io io = {.op = {.run = runs}};
    weft_timer timer = {.op = {.run = runs}};
    weft_op op = {.run = runs};
    weft_stats stats = {.size = sizeof stats};
    weft_endpoint endpoint = {.family = WEFT_IPV4};
    intptr_t system;
    char got[4];
    MUST(weft_recv(&io, descriptor, got, 4, 0) == WEFT_EBADHANDLE && weft_send(&io, descriptor, got, 4, 0) == WEFT_EBADHANDLE);
    weft_datagram datagram = {.io = io};
    MUST(weft_recv_from(&datagram, descriptor, got, 4) == WEFT_EBADHANDLE);
    MUST(weft_send_to(&datagram, descriptor, got, 4, &endpoint) == WEFT_EBADHANDLE && weft_udp_connect(descriptor, &endpoint) == WEFT_EBADHANDLE);
    MUST(weft_accept(&io, descriptor) == WEFT_EBADHANDLE && weft_connect(&io, descriptor, &endpoint) == WEFT_EBADHANDLE);
    MUST(weft_descriptor_close(descriptor) == WEFT_EBADHANDLE && weft_descriptor_system(descriptor, &system) == WEFT_EBADHANDLE);
    MUST(weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND) == WEFT_EBADHANDLE);
    MUST(weft_local_endpoint(descriptor, &endpoint) == WEFT_EBADHANDLE && weft_remote_endpoint(descriptor, &endpoint) == WEFT_EBADHANDLE);
    MUST(weft_schedule(other, &op) == WEFT_EBADHANDLE && weft_schedule_at(other, &timer, 0) == WEFT_EBADHANDLE);
    MUST(weft_runtime_stats(other, &stats) == WEFT_EBADHANDLE && weft_runtime_status(other) == WEFT_EBADHANDLE);
    MUST(weft_runtime_stop(other) == WEFT_EBADHANDLE && weft_runtime_destroy(other) == WEFT_EBADHANDLE);
    MUST(weft_descriptor_open(other, 0, &descriptor) == WEFT_EBADHANDLE);
}

static void read_stats(void)
{
    uint64_t claimed = take_byte();
    uint32_t worker = take_byte();
    unsigned char *bytes = malloc(claimed < 8 ? 8 : claimed);
    memcpy(bytes, &claimed, 8);
    int wanted = claimed < 16 ? WEFT_EVERSION : WEFT_OK;
    MUST(weft_runtime_stats(runtime, (weft_stats *)(void *)bytes) == wanted);
    MUST(weft_worker_stats(runtime, worker, (weft_stats *)(void *)bytes) == (wanted != WEFT_OK ? wanted : worker < 4 ? WEFT_OK : WEFT_EINVAL));
    free(bytes);
}

static void endpoints(void)
{
    size_t size = take_byte() % 80;
    char *text = malloc(size + 1);
    take(text, size);
    text[size] = 0;
    weft_endpoint endpoint, again;
    int rc = weft_endpoint_parse(text, &endpoint);
    MUST(rc == WEFT_OK || rc == WEFT_EINVAL);
    if (rc == WEFT_OK) {
        size_t room = take_byte() % (WEFT_ENDPOINT_TEXT_BYTES + 1);
        char *out = malloc(WEFT_ENDPOINT_TEXT_BYTES), *tight = malloc(room + 1);
        int length = weft_endpoint_format(&endpoint, out, WEFT_ENDPOINT_TEXT_BYTES);
        MUST(length > 0 && (size_t)length == strlen(out));
        MUST(weft_endpoint_parse(out, &again) == WEFT_OK && memcmp(&endpoint, &again, sizeof again) == 0);
        MUST(weft_endpoint_format(&endpoint, tight, room) == ((size_t)length < room ? length : WEFT_EINVAL));
        free(out);
        free(tight);
    }
    free(text);
    take(&endpoint, sizeof endpoint);
    char out[WEFT_ENDPOINT_TEXT_BYTES];
    rc = weft_endpoint_format(&endpoint, out, sizeof out);
    MUST(rc > 0 ? endpoint.family == WEFT_IPV4 || endpoint.family == WEFT_IPV6 : rc == WEFT_EINVAL);
}

static void cancellation(uint8_t which, uint8_t how)
{
    int s = which % SOURCES, r = which / SOURCES % REGISTRATIONS;
    bool requested = weft_cancel_requested(&sources[s]) == 1;
    int rc;
    switch (how % 3) {
    case 0:
        rc = weft_cancel_request(&sources[s]);
        MUST(rc == (requested ? 1 : WEFT_OK));
        for (int i = 0; i < REGISTRATIONS; i++) MUST(registered[i] != 1 || source_of[i] != s); /* all have been called */
        break;
    case 1:
        rc = weft_cancel_register(&sources[s], &registrations[r], called, &registered[r]);
        if (registered[r] == 1) {
            MUST(rc == WEFT_EBUSY);
        } else if (requested) {
            MUST(rc == 1 || rc == WEFT_EBUSY); /* called before, and not deregistered since */
        } else if (rc == WEFT_OK) {
            registered[r] = 1;
            source_of[r] = s;
        } else {
            MUST(rc == WEFT_EBUSY && registered[r] == 2);
        }
        break;
    default:
        rc = weft_cancel_deregister(&registrations[r]);
        MUST(registered[r] == 1 ? rc == WEFT_OK : registered[r] == 2 ? rc == 1 : rc == WEFT_OK || rc == 1);
        registered[r] = 0;
    }
}

static void stop(void)
{
    MUST(weft_runtime_stop(runtime) == WEFT_OK);
    stopped = true;
    MUST(weft_runtime_status(runtime) == WEFT_ESTOPPED);
}

static void begin(void)
{
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.workers = 2;
    config.max_workers = 4;
    MUST(weft_runtime_create(&config, &runtime) == WEFT_OK);
    stopped = false;
}

/* Everything that was accepted has run when stop returns, and not once more. */
static void end(void)
{
    if (!stopped) stop();
    for (int n = 0; n < PAIRS; n++) close_pair(n);
    datagrams_end();
    for (int i = 0; i < OPS; i++) MUST(idle(&ops[i]));
    for (int i = 0; i < TIMERS; i++) MUST(idle(&timers[i]));
    MUST(weft_runtime_destroy(runtime) == WEFT_OK);
    MUST(weft_runtime_status(runtime) == WEFT_EBADHANDLE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = data;
    left = size;
    memset(ops, 0, sizeof ops);
    memset(timers, 0, sizeof timers);
    memset(receives, 0, sizeof receives);
    memset(sends, 0, sizeof sends);
    memset(descriptors, 0, sizeof descriptors);
    datagrams_begin();
    memset(sources, 0, sizeof sources);
    memset(registrations, 0, sizeof registrations);
    memset(registered, 0, sizeof registered);
    begin();
    for (int steps = 0; left > 0 && steps < STEPS_MAX; steps++) {
        uint8_t what = take_byte(), which = take_byte(), how = take_byte();
        switch (what % 16) {
        case 0: create_and_destroy(); break;
        case 1:
        case 2: schedule(&ops[which % OPS], how); break;
        case 3:
        case 4: schedule_timer(&timers[which % TIMERS], how); break;
        case 5: end_timer(&timers[which % TIMERS], how); break;
        case 6: open_pair(which % PAIRS); break;
        case 7: close_pair(which % PAIRS); break;
        case 8:
        case 9: transfer(which % PAIRS, how); break;
        case 10: peer_acts(which % PAIRS, how); break;
        case 11: {
            item *i = how & 1 ? &sends[which % PAIRS] : &receives[which % PAIRS];
            int rc = weft_io_cancel(&i->as.io);
            MUST(rc == WEFT_OK || rc == 1);
            if (how & 2) wait_until_idle(i);
            break;
        }
        case 12: use_handle(); break;
        case 13: how & 1 ? read_stats() : endpoints(); break;
        case 14: cancellation(which, how); break;
        default:
            if (how == 255)
                stop();
            else
                datagrams(which, how);
        }
    }
    end();
    return 0;
}
