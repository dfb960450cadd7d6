/* SPDX-License-Identifier: MIT
 *
 * stress_datagram_test.c: sockets of each kind that send each other datagrams, each receiving and sending at once, while ops are cancelled by
 * threads and by timers, and a stop or a close comes in the middle. Each op ends once; what is received is whole, was sent, and comes once; and
 * what was sent is received or still there. There is always room for it in the receiver's queue, since few are on their way to one socket.
 */
#include <errno.h>
#include <sys/socket.h>

#include "stress_support.h"

enum {
    CONNECTED = 0, /* two to each other */
    OPEN = 2,      /* four that send to any of them, themselves, too */
    OVER_IPV6 = 6,
    LOCAL = 8, /* two whose sends wait while the other's queue is full */
#if defined(_WIN32)
    PLACES = LOCAL,
    SENDS_ARE_CANCELLED = 0, /* one may have sent more than it tells */
#else
    PLACES = LOCAL + 2,
    SENDS_ARE_CANCELLED = 1,
#endif
    FLIGHT = 24, /* datagrams on their way to a place, of them one of more than SMALL bytes */
    SMALL = 1500,
    LARGE = 60000,
    LARGE_LOCAL = 9000,
    LONGEST = 65527, /* over IPv6, and over IPv4 20 less */
    ROOM = 70000,
};

/* A datagram is its number, if it has four bytes for that, and bytes that follow from the number. */
enum { SENT = 1, RECEIVED = 2 };
typedef struct letter {
    atomic_int state;
    int from, to;
    uint32_t length;
} letter;

/* One direction of a place. */
typedef struct side {
    weft_datagram datagram;
    weft_timer deadline;
    weft_op again;
    struct place *place;
    uint64_t random;
    atomic_bool under_way, ticks;
    bool plain; /* the op is of weft_recv or weft_send */
    uint32_t number, length;
    long left;       /* sends */
    char data[ROOM]; /* of a receive: all but what was received is 0x5a */
} side;

typedef struct place {
    struct storm *storm;
    weft_descriptor socket;
    weft_endpoint endpoint;
    int kept;           /* the system's own number for what the socket is, which outlives it */
    atomic_long flight; /* datagrams that are on their way here, or in the queue */
    side receives, sends;
} place;

typedef struct storm {
    weft_runtime runtime;
    place places[PLACES];
    letter *letters;
    atomic_uint numbers;
    atomic_long senders_over, over; /* sides */
    atomic_long sent, received, cancelled;
    pthread_t canceller;
    atomic_bool ends;
} storm;

static char noise[2 * ROOM];

static const char *bytes_of(uint32_t number) { return &noise[number % ROOM]; }

static int index_of(const place *p) { return (int)(p - p->storm->places); }

/* Whether the op that is started next is one of datagrams. weft_recv and weft_send do for sockets that have a peer, but move no empty ones. */
static bool by_address(side *s)
{
    int place = index_of(s->place);
    s->plain = place >= LOCAL || (place < OPEN && s->length != 0 && stress_below(&s->random, 2) == 0);
    return !s->plain;
}

static bool is_bound(const place *p) { return index_of(p) >= OPEN && index_of(p) < LOCAL; }

static void bad(const side *s, const char *what)
{
    fprintf(stderr, "%s: place %d, %s, number %u of %u bytes: status %d, %d of the system, count %llu\n", what, index_of(s->place),
            s == &s->place->sends ? "send" : "receive", s->number, s->length, s->datagram.io.status, s->datagram.io.os_error,
            (unsigned long long)s->datagram.io.count);
    abort();
}

/* What a system may say that has no memory for the moment. */
static bool is_struck(const side *s)
{
#if defined(STRESS_FAULTS)
    return s->datagram.io.status == WEFT_ENOMEM && atomic_load(&fault_struck[FAULT_no_buffers]) > 0;
#else
    (void)s;
    return false;
#endif
}

static void strike_buffers(bool strikes)
{
#if defined(STRESS_FAULTS)
    atomic_store(&fault_one_in[FAULT_no_buffers], strikes ? atomic_load(&fault_one_in[FAULT_interrupted]) : 0);
#else
    (void)strikes;
#endif
}

static bool same(const weft_endpoint *a, const weft_endpoint *b)
{
    return a->family == b->family && a->port == b->port && memcmp(a->address, b->address, a->family == WEFT_IPV4 ? 4 : 16) == 0;
}

/* Sees to a datagram that has come whole, or was cut off, and to what the op has told of it, if it has. */
static void check(side *s, uint64_t room, uint64_t count, const char *data, const weft_datagram *told)
{
    storm *all = s->place->storm;
    if (count > room) bad(s, "too much");
    if (count < sizeof s->number) return;
    memcpy(&s->number, data, sizeof s->number);
    if (s->number == 0 || s->number >= atomic_load(&all->numbers)) bad(s, "a number that nobody has");
    letter *l = &all->letters[s->number];
    bool cut = l->length > room;
    if (count != (cut ? room : l->length) || (told != NULL && told->truncated != cut)) bad(s, "a wrong length");
    if (memcmp(data + sizeof s->number, bytes_of(s->number), count - sizeof s->number) != 0) bad(s, "wrong bytes");
    if (l->to != index_of(s->place)) bad(s, "another's");
    if (told != NULL && !same(&told->peer, &all->places[l->from].endpoint)) bad(s, "a wrong sender");
    if (atomic_fetch_or(&l->state, RECEIVED) & RECEIVED) bad(s, "twice");
}

static void side_over(side *s)
{
    if (s == &s->place->sends) atomic_fetch_add(&s->place->storm->senders_over, 1);
    atomic_fetch_add(&s->place->storm->over, 1);
}

/* A deadline in the manner of C: a timer that cancels. Its run is called, or it was not accepted. */
static void deadline_passes(weft_op *op)
{
    side *s = op->context;
    weft_io_cancel(&s->datagram.io);
    atomic_store(&s->ticks, false);
}

static void set_deadline(side *s)
{
    if (stress_below(&s->random, 4) != 0 || atomic_exchange(&s->ticks, true)) return;
    s->deadline.op = (weft_op){.run = deadline_passes, .context = s};
    int rc = weft_schedule_after(s->place->storm->runtime, &s->deadline, (int64_t)stress_below(&s->random, 300000));
    if (rc != WEFT_OK) atomic_store(&s->ticks, false);
}

/* Before a start. Once that has returned WEFT_OK the op may be over, and started again. */
static void begins(side *s)
{
    set_deadline(s);
    memset(&s->datagram.io.status, 0x77, sizeof s->datagram.io.status);
    if (atomic_exchange(&s->under_way, true)) bad(s, "two at once");
}

static void ends(side *s)
{
    if (!atomic_exchange(&s->under_way, false)) bad(s, "completed twice");
}

/* Whether a side goes on whose op has moved nothing. */
static bool goes_on(side *s)
{
    int status = s->datagram.io.status;
    if (status == WEFT_ECANCELED)
        atomic_fetch_add(&s->place->storm->cancelled, 1);
    else if (status != WEFT_ECLOSED && !is_struck(s))
        bad(s, "failed");
    return status != WEFT_ECLOSED;
}

/* For starts that have not returned WEFT_OK. */
static bool was_started(side *s, int rc)
{
    if (rc == 1) return true;
    ends(s);
    if (rc != WEFT_ESTOPPED && rc != WEFT_EBADHANDLE) bad(s, "not started");
    return false;
}

/* False when no other receive is to follow. */
static bool received(side *s)
{
    weft_io *io = &s->datagram.io;
    storm *all = s->place->storm;
    const weft_datagram *told = s->plain ? NULL : &s->datagram;
    ends(s);
    for (uint64_t i = io->count; i < ROOM; i += i < io->count + 64 ? 1 : 509)
        if (s->data[i] != 0x5a) bad(s, "a byte behind the end");
    if (io->status == WEFT_OK) {
        check(s, s->length, io->count, s->data, told);
        memset(s->data, 0x5a, io->count);
        atomic_fetch_sub(&s->place->flight, 1);
        atomic_fetch_add(&all->received, 1);
        stress_progress(); /* a cancel is none: it would go on for ever */
        return true;
    }
    if (io->count != 0) bad(s, "bytes without a datagram");
    return goes_on(s);
}

static void receive_on(side *s)
{
    for (;;) {
        uint64_t dice = stress_below(&s->random, 16);
        s->length = dice == 0 ? (uint32_t)stress_below(&s->random, 12) : dice < 3 ? ROOM : SMALL;
        if (index_of(s->place) >= LOCAL && s->length == 0) s->length = 1;
        begins(s);
        weft_descriptor socket = s->place->socket;
        int rc = by_address(s) ? weft_recv_from(&s->datagram, socket, s->data, s->length)
                               : weft_recv(&s->datagram.io, socket, s->data, s->length, 0);
        if (rc == WEFT_OK) return;
        if (!was_started(s, rc) || !received(s)) break;
    }
    side_over(s);
}

static void receive_done(weft_op *op)
{
    side *s = (side *)op;
    if (received(s))
        receive_on(s);
    else
        side_over(s);
}

static void give_up(const side *s)
{
    letter *l = &s->place->storm->letters[s->number];
    atomic_fetch_sub(&s->place->storm->places[l->to].flight, 1);
}

static bool sent(side *s)
{
    weft_io *io = &s->datagram.io;
    storm *all = s->place->storm;
    letter *l = &all->letters[s->number];
    bool fits = s->length <= LONGEST;
    ends(s);
    if (io->status == WEFT_OK) {
        if (!fits || io->count != s->length) bad(s, "a wrong count");
        atomic_fetch_or(&l->state, SENT);
        atomic_fetch_add(&all->sent, 1);
        return true;
    }
    give_up(s);
    if (io->count != 0) bad(s, "bytes without a datagram");
    return (io->status == WEFT_EINVAL && !fits) || goes_on(s);
}

/* Writes a datagram for somebody who has room for it; false when nobody has. */
static bool writes(side *s)
{
    storm *all = s->place->storm;
    int from = index_of(s->place), to = from ^ 1;
    uint64_t dice = stress_below(&s->random, 64);
    bool local = from >= LOCAL; /* where the system has who sends wait */
    if (is_bound(s->place)) to = from < OVER_IPV6 ? OPEN + (int)stress_below(&s->random, OVER_IPV6 - OPEN) : OVER_IPV6 + (int)(dice & 1);
    long before = atomic_fetch_add(&all->places[to].flight, 1);
    if (before >= FLIGHT && !local) {
        atomic_fetch_sub(&all->places[to].flight, 1);
        return false;
    }
    uint64_t below = dice < 8 ? 1 : dice < 16 ? 8 : dice < 20 && local ? LARGE_LOCAL : dice < 20 && before == 0 ? LARGE : SMALL;
    s->length = dice == 63 ? LONGEST + 1 + (uint32_t)stress_below(&s->random, ROOM - LONGEST) : (uint32_t)stress_below(&s->random, below);
    if (local && s->length == 0) s->length = 1;
    s->number = atomic_fetch_add(&all->numbers, 1);
    all->letters[s->number] = (letter){.from = from, .to = to, .length = s->length};
    memcpy(s->data, &s->number, sizeof s->number);
    if (s->length > sizeof s->number) memcpy(s->data + sizeof s->number, bytes_of(s->number), s->length - sizeof s->number);
    return true;
}

static void send_on(side *s)
{
    storm *all = s->place->storm;
    while (s->left > 0) {
        if (!writes(s)) {
            if (weft_yield(all->runtime, &s->again) == WEFT_OK) return;
            break;
        }
        s->left--;
        begins(s);
        weft_descriptor socket = s->place->socket;
        const weft_endpoint *to = &all->places[all->letters[s->number].to].endpoint;
        int rc = by_address(s) ? weft_send_to(&s->datagram, socket, s->data, s->length, to)
                               : weft_send(&s->datagram.io, socket, s->data, s->length, 0);
        if (rc == WEFT_OK) return;
        if (!was_started(s, rc)) {
            give_up(s);
            break;
        }
        if (!sent(s)) break;
    }
    side_over(s);
}

static void send_done(weft_op *op)
{
    side *s = (side *)op;
    if (sent(s))
        send_on(s);
    else
        side_over(s);
}

static void send_again(weft_op *op) { send_on(op->context); }

static void *cancels(void *argument)
{
    storm *all = argument;
    uint64_t random = stress.seed | 1;
    while (!atomic_load(&all->ends)) {
        place *p = &all->places[stress_below(&random, PLACES)];
        side *s = !SENDS_ARE_CANCELLED || stress_below(&random, 2) ? &p->receives : &p->sends;
        weft_io_cancel(&s->datagram.io);
        stress_wait(&random, 30000);
    }
    return NULL;
}

static int system_of(weft_descriptor descriptor)
{
    intptr_t system;
    assert_int_equal(weft_descriptor_system(descriptor, &system), WEFT_OK);
    return (int)system;
}

static void open_at(weft_runtime runtime, const char *text, weft_descriptor *socket, weft_endpoint *endpoint)
{
    weft_endpoint wanted;
    const int much = 1 << 20; /* the system takes what it allows */
    assert_int_equal(weft_endpoint_parse(text, &wanted), WEFT_OK);
    assert_int_equal(weft_udp_open(runtime, &wanted, socket), WEFT_OK);
    assert_int_equal(weft_local_endpoint(*socket, endpoint), WEFT_OK);
    assert_int_equal(setsockopt(system_of(*socket), SOL_SOCKET, SO_RCVBUF, (const char *)&much, sizeof much), 0);
}

static void open_places(storm *all)
{
    for (int i = 0; i < LOCAL; i++)
        open_at(all->runtime, i < OVER_IPV6 ? "127.0.0.1:0" : "[::1]:0", &all->places[i].socket, &all->places[i].endpoint);
    for (int i = CONNECTED; i < OPEN; i++)
        assert_int_equal(weft_udp_connect(all->places[i].socket, &all->places[i ^ 1].endpoint), WEFT_OK);
#if !defined(_WIN32)
    int ends[2];
    const int little = 8192;
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &little, sizeof little), 0);
        assert_int_equal(weft_descriptor_open(all->runtime, ends[i], &all->places[LOCAL + i].socket), WEFT_OK);
    }
    for (int i = 0; i < PLACES; i++) assert_true((all->places[i].kept = dup(system_of(all->places[i].socket))) >= 0);
#endif
}

static storm *begin(weft_runtime runtime, uint64_t *random, long left)
{
    storm *all = calloc(1, sizeof *all);
    all->runtime = runtime;
    all->letters = calloc((size_t)(PLACES * left + 1), sizeof *all->letters);
    atomic_store(&all->numbers, 1);
    open_places(all);
    for (int i = 0; i < PLACES; i++) {
        place *p = &all->places[i];
        p->storm = all;
        p->receives.place = p->sends.place = p;
        p->receives.datagram.io.op.run = receive_done;
        p->sends.datagram.io.op.run = send_done;
        p->sends.again = (weft_op){.run = send_again, .context = &p->sends};
        p->sends.left = left;
        p->receives.random = stress_random(random);
        p->sends.random = stress_random(random);
        memset(p->receives.data, 0x5a, ROOM);
    }
    strike_buffers(true);
    assert_int_equal(pthread_create(&all->canceller, NULL, cancels, all), 0);
    for (int i = 0; i < PLACES; i++) {
        receive_on(&all->places[i].receives);
        send_on(&all->places[i].sends);
    }
    return all;
}

/* When all is over, and the runtime has ended. */
static void end(storm *all)
{
    assert_int_equal(atomic_load(&all->over), 2 * PLACES);
    atomic_store(&all->ends, true);
    pthread_join(all->canceller, NULL);
    strike_buffers(false);
    long there = 0;
#if !defined(_WIN32)
    for (int i = 0; i < PLACES; i++) {
        side *s = &all->places[i].receives;
        for (ssize_t count; (count = recv(all->places[i].kept, s->data, ROOM, MSG_DONTWAIT)) >= 0; there++)
            check(s, ROOM, (uint64_t)count, s->data, NULL);
        assert_int_equal(close(all->places[i].kept), 0);
    }
    assert_int_equal(atomic_load(&all->received) + there, atomic_load(&all->sent));
#endif
    for (uint32_t n = 1; n < atomic_load(&all->numbers); n++) assert_int_not_equal(atomic_load(&all->letters[n].state), RECEIVED);
    assert_true(atomic_load(&all->received) <= atomic_load(&all->sent));
    (void)there;
    free(all->letters);
    free(all);
}

/* All that is sent is received, by ops alone; then the sockets are closed while all of them wait. */
static void storms(uint32_t workers, uint64_t *random)
{
    weft_runtime runtime = stressed(workers);
    storm *all = begin(runtime, random, 600 * stress_scale());
    wait_until(&all->senders_over, PLACES);
    wait_until(&all->received, atomic_load(&all->sent));
    for (int i = 0; i < PLACES; i++) assert_int_equal(weft_descriptor_close(all->places[i].socket), WEFT_OK);
    wait_until(&all->over, 2 * PLACES);
    printf("    %ld datagrams, %ld cancelled\n", atomic_load(&all->received), atomic_load(&all->cancelled));
    assert_true(atomic_load(&all->cancelled) > 0);
    assert_int_equal(stats_of(runtime).descriptors, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    end(all);
}

static void stops(uint32_t workers, uint64_t *random)
{
    for (long round = 0; round < 25 * stress_scale(); round++) {
        weft_runtime runtime = stressed(workers);
        storm *all = begin(runtime, random, 1000);
        stress_wait(random, 3000000);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
        end(all);
        stress_progress();
    }
}

STRESS(storms)
STRESS(stops)

int main(void)
{
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)stress_random(&random);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storms_everywhere),
        cmocka_unit_test(stops_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
