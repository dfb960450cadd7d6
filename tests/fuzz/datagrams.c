/* SPDX-License-Identifier: MIT
 *
 * datagrams.c: the fuzzer's steps with UDP sockets. What was sent to a socket that is not connected has been received by an op, or is still there
 * when it is closed.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"

enum { PLACES = 2 };

/* A UDP socket, and what is on its way to it. A datagram of n bytes is n times the same one, which tells n. */
typedef struct place {
    weft_descriptor descriptor;
    weft_endpoint endpoint; /* it stays when the socket is closed */
    item receive, send;
    int kept; /* the system's own number for the socket, which outlives it */
    atomic_long sent, received;
    bool connected; /* what others send is lost now, and they may fail */
} place;

static place places[PLACES];

static void open_place(place *p)
{
    weft_endpoint wanted = {.family = WEFT_IPV4, .address = {127, 0, 0, 1}};
    weft_descriptor again = {5};
    intptr_t system;
    if (p->descriptor.id != 0) {
        MUST(weft_udp_open(runtime, &p->endpoint, &again) == (stopped ? WEFT_ESTOPPED : WEFT_EADDRINUSE) && again.id == 5);
        return;
    }
    int rc = weft_udp_open(runtime, &wanted, &p->descriptor);
    MUST(rc == (stopped ? WEFT_ESTOPPED : WEFT_OK));
    if (stopped) return;
    MUST(weft_local_endpoint(p->descriptor, &p->endpoint) == WEFT_OK && weft_descriptor_system(p->descriptor, &system) == WEFT_OK);
    p->kept = dup((int)system);
    MUST(p->kept >= 0);
    p->connected = false;
    p->sent = p->received = 0;
}

/* What was sent here has been received, or is still there. */
static void close_place(place *p)
{
    weft_descriptor closed = p->descriptor;
    MUST(weft_descriptor_close(closed) == WEFT_OK);
    if (closed.id == 0) return;
    MUST(weft_descriptor_close(closed) == WEFT_EBADHANDLE);
    p->descriptor.id = 0;
    wait_until_idle(&p->receive);
    wait_until_idle(&p->send);
    long there = 0;
    char byte;
    while (recv(p->kept, &byte, 1, MSG_DONTWAIT) >= 0) there++;
    MUST(p->connected ? p->received + there <= p->sent : p->received + there == p->sent);
    close(p->kept);
}

static void has_moved(item *i)
{
    const weft_datagram *d = &i->as.datagram;
    bool sends = d->io.op.context != NULL, cut = d->truncated != 0;
    int status = d->io.status;
    if (status != WEFT_OK) {
        MUST(d->io.count == 0);
        MUST(status == WEFT_ECANCELED || status == WEFT_ECLOSED || (status == WEFT_ECONNREFUSED && i->place->connected) ||
             (status == WEFT_EINVAL && sends && i->room > sizeof i->data));
    } else if (sends) {
        MUST(d->io.count == i->room);
        if (i->to != NULL) i->to->sent++;
    } else {
        size_t length = d->io.count == 0 ? cut : (size_t)i->data[0];
        MUST(d->io.count == (cut ? i->room : length) && cut == (length > i->room) && d->peer.family == WEFT_IPV4);
        for (size_t k = 1; k < d->io.count; k++) MUST(i->data[k] == i->data[0]);
        i->place->received++;
    }
}

static void datagram_runs(weft_op *op)
{
    has_moved((item *)op);
    runs(op);
}

static void move_datagram(place *p, place *to, bool sends, uint8_t how)
{
    static item second; /* in place of one that is under way */
    static char too_long[70000];
    item *i = sends ? &p->send : &p->receive;
    if (!idle(i)) i = &second;
    size_t length = how & 15;
    bool fits = length < 15 || !sends, cancelled = (how & 16) != 0;
    memset(&i->as, 0, sizeof i->as);
    memset(i->data, (int)length, sizeof i->data);
    i->as.io.op = (weft_op){.run = datagram_runs, .context = sends ? p : NULL};
    i->place = p;
    i->room = fits ? length : sizeof too_long;
    i->to = NULL;
    for (int n = 0; n < PLACES; n++)
        if (places[n].descriptor.id != 0 && places[n].endpoint.port == to->endpoint.port) i->to = &places[n];
    if (cancelled) MUST(weft_io_cancel(&i->as.io) == WEFT_OK);
    int rc = sends ? weft_send_to(&i->as.datagram, p->descriptor, fits ? i->data : too_long, i->room, &to->endpoint)
                   : weft_recv_from(&i->as.datagram, p->descriptor, i->data, length);
    MUST(!cancelled || rc < 0 || i->as.io.status == WEFT_ECANCELED);
    if (sends && to->endpoint.family == 0) /* it was never opened */
        MUST(rc == WEFT_EINVAL);
    else if (p->descriptor.id == 0)
        MUST(rc == WEFT_EBADHANDLE);
    else if (stopped)
        MUST(rc == WEFT_ESTOPPED);
    else if (rc == WEFT_OK)
        i->accepted++;
    else if (rc == 1)
        has_moved(i);
    else
        MUST(rc == WEFT_EBUSY && i == &second);
    if (i == &second && rc == WEFT_OK) {
        MUST(weft_io_cancel(&i->as.io) != WEFT_EINVAL);
        wait_until_idle(i);
    }
}

void datagrams(uint8_t which, uint8_t how)
{
    place *p = &places[which % PLACES], *to = &places[which / PLACES % PLACES];
    bool sends = (which & 8) != 0;
    item *i = sends ? &p->send : &p->receive;
    int rc;
    switch (how >> 5) {
    case 0: open_place(p); break;
    case 1: close_place(p); break;
    case 2:
        rc = weft_io_cancel(&i->as.io);
        MUST(rc == WEFT_OK || rc == 1);
        if (rc == WEFT_OK && how & 1) wait_until_idle(i);
        break;
    case 3:
        rc = weft_udp_connect(p->descriptor, &to->endpoint);
        MUST(rc == (to->endpoint.family == 0 ? WEFT_EINVAL : p->descriptor.id == 0 ? WEFT_EBADHANDLE : WEFT_OK));
        if (rc == WEFT_OK) p->connected = true;
        break;
    default: move_datagram(p, to, sends, how);
    }
}

void datagrams_begin(void) { memset(places, 0, sizeof places); }

void datagrams_end(void)
{
    for (int n = 0; n < PLACES; n++) close_place(&places[n]);
}

bool is_datagrams(uint64_t id)
{
    for (int n = 0; n < PLACES; n++)
        if (id == places[n].descriptor.id) return true;
    return false;
}
