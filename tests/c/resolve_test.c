/* SPDX-License-Identifier: MIT
 *
 * resolve_test.c: names without a network: numeric ones, those of /etc/hosts, name servers that refuse or keep silent.
 */
#include "support.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct query {
    weft_resolve_op op;
    weft_endpoint found[8];
    atomic_long done;
} query;

static void answered(weft_op *op) { atomic_fetch_add(&((query *)op)->done, 1); }

static void init(query *self)
{
    memset(self, 0, sizeof *self);
    self->op.op.run = answered;
    self->op.endpoints = self->found;
    self->op.capacity = 8;
}

static int ask(weft_runtime runtime, query *self, const char *host, const char *service, int64_t timeout_ns)
{
    int rc = weft_resolve(runtime, &self->op, host, service, timeout_ns);
    if (rc != WEFT_OK) return rc;
    wait_for(&self->done, 1);
    atomic_store(&self->done, 0);
    return self->op.status;
}

/* A UDP socket on loopback that never answers; its address as a name server's. */
static int silent_server(weft_endpoint *server)
{
    int system = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    assert_int_equal(bind(system, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(system, (struct sockaddr *)&address, &size), 0);
    *server = (weft_endpoint){.family = WEFT_IPV4, .port = ntohs(address.sin_port), .address = {127, 0, 0, 1}};
    return system;
}

static void bad_questions(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    query q;
    init(&q);
    weft_endpoint nowhere = {0};
    assert_int_equal(weft_resolve(runtime, NULL, "x", NULL, WEFT_NEVER), WEFT_EINVAL);
    assert_int_equal(weft_resolve(runtime, &q.op, NULL, NULL, WEFT_NEVER), WEFT_EINVAL);
    assert_int_equal(weft_resolve(runtime, &q.op, "", NULL, WEFT_NEVER), WEFT_EINVAL);
    q.op.server = &nowhere;
    assert_int_equal(weft_resolve(runtime, &q.op, "x", NULL, WEFT_NEVER), WEFT_EINVAL);
    q.op.server = NULL;
    assert_int_equal(weft_resolve((weft_runtime){0}, &q.op, "x", NULL, WEFT_NEVER), WEFT_EBADHANDLE);
    assert_int_equal(weft_resolve_cancel(NULL), WEFT_EINVAL);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(weft_resolve(runtime, &q.op, "127.0.0.1", NULL, WEFT_NEVER), WEFT_ESTOPPED);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_int_equal(atomic_load(&q.done), 0);
}

static void numbers_and_services(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    query q;
    init(&q);
    assert_int_equal(ask(runtime, &q, "192.0.2.7", "8080", WEFT_NEVER), WEFT_OK);
    assert_int_equal(q.op.count, 1);
    char text[WEFT_ENDPOINT_TEXT_BYTES];
    weft_endpoint_format(&q.found[0], text, sizeof text);
    assert_string_equal(text, "192.0.2.7:8080");
    assert_int_equal(ask(runtime, &q, "2001:db8::1", "http", WEFT_NEVER), WEFT_OK);
    weft_endpoint_format(&q.found[0], text, sizeof text);
    assert_string_equal(text, "[2001:db8::1]:80");
    assert_int_equal(ask(runtime, &q, "fe80::1%1", NULL, WEFT_NEVER), WEFT_OK);
    assert_int_equal(q.found[0].scope, 1);
    assert_int_equal(q.found[0].port, 0);
    q.op.capacity = 0;
    assert_int_equal(ask(runtime, &q, "192.0.2.7", "", WEFT_NEVER), WEFT_OK);
    assert_int_equal(q.op.count, 1);
    q.op.capacity = 8;
    assert_int_equal(ask(runtime, &q, "192.0.2.7", "no-such-service", WEFT_NEVER), WEFT_ENOENT);
    assert_int_equal(q.op.count, 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void names_of_the_hosts_file(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    query q;
    init(&q);
    assert_int_equal(ask(runtime, &q, "localhost", "1", WEFT_NEVER), WEFT_OK);
    assert_in_range(q.op.count, 1, 8);
    for (uint32_t i = 0; i < q.op.count; i++)
        assert_true(q.found[i].family == WEFT_IPV4 ? q.found[i].address[0] == 127 : q.found[i].address[15] == 1);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* A name server whose port is closed fails at once, and one that keeps silent when the time is over. */
static void servers_that_do_not_answer(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    query q;
    init(&q);
    weft_endpoint server;
    int silent = silent_server(&server);
    q.op.server = &server;
    assert_int_equal(ask(runtime, &q, "name.invalid", NULL, 20000000), WEFT_ETIMEDOUT);
    assert_int_equal(ask(runtime, &q, "name.invalid", NULL, 0), WEFT_ETIMEDOUT);
    close(silent);
    assert_int_equal(ask(runtime, &q, "name.invalid", NULL, WEFT_NEVER), WEFT_ENOANSWER);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void cancel_before_during_and_after(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    query q;
    init(&q);
    assert_int_equal(weft_resolve_cancel(&q.op), WEFT_OK);
    assert_int_equal(weft_resolve(runtime, &q.op, "localhost", NULL, WEFT_NEVER), 1);
    assert_int_equal(q.op.status, WEFT_ECANCELED);
    weft_endpoint server;
    int silent = silent_server(&server);
    q.op.server = &server;
    assert_int_equal(weft_resolve(runtime, &q.op, "name.invalid", NULL, WEFT_NEVER), WEFT_OK);
    assert_int_equal(weft_resolve(runtime, &q.op, "name.invalid", NULL, WEFT_NEVER), WEFT_EBUSY);
    sleep_ms(5);
    assert_int_equal(atomic_load(&q.done), 0);
    assert_int_equal(weft_resolve_cancel(&q.op), WEFT_OK);
    assert_int_equal(weft_resolve_cancel(&q.op), 1);
    wait_for(&q.done, 1);
    assert_int_equal(q.op.status, WEFT_ECANCELED);
    assert_int_equal(weft_resolve_cancel(&q.op), 1);
    atomic_store(&q.done, 0);

    assert_int_equal(weft_resolve(runtime, &q.op, "name.invalid", NULL, WEFT_NEVER), WEFT_OK);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK); /* does not wait for the server */
    assert_int_equal(atomic_load(&q.done), 1);
    assert_int_equal(q.op.status, WEFT_ECANCELED);
    close(silent);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

/* Starts, cancels and a stop at once: each accepted lookup is answered once. */
static void lookups_cancels_and_a_stop(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        weft_runtime runtime = start_runtime(2);
        static query many[20];
        weft_endpoint server;
        int silent = silent_server(&server);
        int accepted[20];
        for (int i = 0; i < 20; i++) {
            init(&many[i]);
            if (i % 3 == 0) many[i].op.server = &server;
            accepted[i] = weft_resolve(runtime, &many[i].op, i % 3 == 0 ? "name.invalid" : "localhost", NULL, WEFT_NEVER);
            if (i % 2 == 0) weft_resolve_cancel(&many[i].op);
        }
        assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(accepted[i], WEFT_OK);
            assert_int_equal(atomic_load(&many[i].done), 1);
            assert_true(many[i].op.status == WEFT_ECANCELED || (i % 3 != 0 && many[i].op.status == WEFT_OK));
        }
        close(silent);
        assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_questions),
        cmocka_unit_test(numbers_and_services),
        cmocka_unit_test(names_of_the_hosts_file),
        cmocka_unit_test(servers_that_do_not_answer),
        cmocka_unit_test(cancel_before_during_and_after),
        cmocka_unit_test(lookups_cancels_and_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
