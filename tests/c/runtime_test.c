/* SPDX-License-Identifier: MIT
 *
 * runtime_test.c: the life of runtimes, their configuration and statistics, and what bad input gets.
 */
#if !defined(_WIN32)
#include "again.h"
#endif
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#if defined(_WIN32)
#include <process.h>
#else
#include <sys/wait.h>
#endif
#include <unistd.h>

static void default_config_runs(void **state)
{
    (void)state;
    weft_runtime runtime;
    assert_int_equal(weft_runtime_create(NULL, &runtime), WEFT_OK);
    assert_true(stats_of(runtime).workers >= 1);
    assert_int_equal(weft_runtime_status(runtime), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void config_sizes(void **state)
{
    (void)state;
    struct {
        weft_runtime_config config;
        char beyond[64];
    } larger = {{.size = sizeof larger, .workers = 1}, {0}};
    weft_runtime runtime;
    assert_int_equal(weft_runtime_create(&larger.config, &runtime), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    larger.beyond[63] = 1;
    assert_int_equal(weft_runtime_create(&larger.config, &runtime), WEFT_EVERSION);

    weft_runtime_config shorter = {.size = 8, .workers = 3, .stack_bytes = 1, .name = (const char *)1}; /* only size and workers count */
    assert_int_equal(weft_runtime_create(&shorter, &runtime), WEFT_OK);
    assert_int_equal(stats_of(runtime).workers, 3);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    for (uint32_t size = 0; size < 4; size++) {
        shorter.size = size;
        assert_int_equal(weft_runtime_create(&shorter, &runtime), WEFT_EVERSION);
    }
}

static void config_values(void **state)
{
    (void)state;
    weft_runtime runtime = {77};
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    assert_int_equal(weft_runtime_create(&config, NULL), WEFT_EINVAL);
    config.workers = 257;
    assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_EINVAL);
    config.workers = 1;
    config.stack_bytes = 65535;
    assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_EINVAL);
    config.stack_bytes = UINT64_MAX;
    assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_EINVAL);
    config.stack_bytes = 0;
    config.name = "elevenbytes";
    assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_EINVAL);
    assert_int_equal(runtime.id, 77); /* written on success only */
}

static void read_thread(weft_op *op)
{
    char *name = op->context;
    pthread_getname_np(pthread_self(), name, 16);
    size_t stack = 0;
#if defined(_WIN32)
    ULONG_PTR low, high;
    GetCurrentThreadStackLimits(&low, &high);
    stack = high - low;
#else
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGCHLD) || sigismember(&blocked, SIGSEGV)) strcpy(name, "signals");
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
#endif
    if (stack < 3000000 || stack > 3100000) snprintf(name, 16, "stack %zu", stack);
}

static void threads_have_name_stack_and_mask(void **state)
{
    (void)state;
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.workers = 1;
    config.name = "tenletters";
    config.stack_bytes = 3000000; /* more than a stack that the system may have kept for reuse */
    weft_runtime runtime;
    assert_int_equal(weft_runtime_create(&config, &runtime), WEFT_OK);
    char name[16] = "";
    weft_op op = {.run = read_thread, .context = name};
    assert_int_equal(weft_schedule(runtime, &op), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK); /* drains */
    assert_string_equal(name, "tenletters-0");
}

static void null_stale_and_foreign_handles(void **state)
{
    (void)state;
    weft_runtime stale = start_runtime(1);
    assert_int_equal(weft_runtime_destroy(stale), WEFT_OK);
    const weft_runtime bad[] = {{0}, {1}, {255}, {UINT64_MAX}, {stale.id ^ 0x1234500}, stale};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft_op op = {.run = read_thread};
        weft_timer timer = {.op = {.run = read_thread}};
        weft_stats stats = {.size = sizeof stats};
        weft_descriptor descriptor;
        assert_int_equal(weft_schedule(bad[i], &op), WEFT_EBADHANDLE);
        assert_int_equal(weft_yield(bad[i], &op), WEFT_EBADHANDLE);
        assert_int_equal(weft_resume(bad[i], &op), WEFT_EBADHANDLE);
        assert_int_equal(weft_schedule_batch(bad[i], (weft_op *[]){&op}, 1), WEFT_EBADHANDLE);
        assert_int_equal(weft_schedule_local(bad[i], &op, 0), WEFT_ENOTWORKER);
        assert_int_equal(weft_resume_local(bad[i], &op), WEFT_ENOTWORKER);
        assert_int_equal(weft_schedule_at(bad[i], &timer, 0), WEFT_EBADHANDLE);
        assert_int_equal(weft_schedule_after(bad[i], &timer, 0), WEFT_EBADHANDLE);
        assert_int_equal(weft_runtime_stop(bad[i]), WEFT_EBADHANDLE);
        if (bad[i].id != 0) assert_int_equal(weft_runtime_destroy(bad[i]), WEFT_EBADHANDLE);
        assert_int_equal(weft_runtime_status(bad[i]), WEFT_EBADHANDLE);
        assert_int_equal(weft_runtime_stats(bad[i], &stats), WEFT_EBADHANDLE);
        assert_int_equal(weft_worker_stats(bad[i], 0, &stats), WEFT_EBADHANDLE);
        assert_int_equal(weft_descriptor_open(bad[i], 0, &descriptor), WEFT_EBADHANDLE);
        assert_int_equal(weft_tcp_open(bad[i], WEFT_IPV4, &descriptor), WEFT_EBADHANDLE);
    }
    assert_int_equal(weft_runtime_destroy((weft_runtime){0}), WEFT_OK); /* destroy of nothing is a no-op */
}

static void many_runtimes_up_to_the_limit(void **state)
{
    (void)state;
    weft_runtime runtimes[64], more;
    for (int i = 0; i < 64; i++) runtimes[i] = start_runtime(1);
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    assert_int_equal(weft_runtime_create(&config, &more), WEFT_ELIMIT);
    for (int i = 0; i < 64; i++) assert_int_equal(weft_runtime_destroy(runtimes[i]), WEFT_OK);
    more = start_runtime(1);
    assert_int_equal(weft_runtime_destroy(more), WEFT_OK);
}

static void stop_twice_then_schedule(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(weft_runtime_stop(runtime), WEFT_OK);
    assert_int_equal(weft_runtime_status(runtime), WEFT_ESTOPPED);
    weft_op op = {.run = read_thread};
    weft_timer timer = {.op = {.run = read_thread}};
    weft_descriptor descriptor;
    assert_int_equal(weft_schedule(runtime, &op), WEFT_ESTOPPED);
    assert_int_equal(weft_yield(runtime, &op), WEFT_ESTOPPED);
    assert_int_equal(weft_resume(runtime, &op), WEFT_ESTOPPED);
    assert_int_equal(weft_schedule_batch(runtime, (weft_op *[]){&op}, 1), WEFT_ESTOPPED);
    assert_int_equal(weft_schedule_at(runtime, &timer, 0), WEFT_ESTOPPED);
    assert_int_equal(weft_tcp_open(runtime, WEFT_IPV4, &descriptor), WEFT_ESTOPPED);
    assert_int_equal(stats_of(runtime).workers, 2); /* counters stay until destroy */
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_EBADHANDLE);
}

typedef struct ender {
    weft_op op;
    weft_runtime runtime;
    int (*end)(weft_runtime);
    atomic_long result;
} ender;

static void end_from_worker(weft_op *op)
{
    ender *self = (ender *)op;
    int first = self->end(self->runtime);
    weft_op refused = {.run = read_thread};
    int then = weft_schedule(self->runtime, &refused);
    atomic_store(&self->result, first == WEFT_OK && then == WEFT_ESTOPPED ? 1 : 100);
}

static void stop_and_destroy_from_a_worker(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        ender stopper = {.op = {.run = end_from_worker}, .runtime = start_runtime(2), .end = weft_runtime_stop};
        assert_int_equal(weft_schedule(stopper.runtime, &stopper.op), WEFT_OK);
        wait_for(&stopper.result, 1);
        assert_int_equal(atomic_load(&stopper.result), 1);
        assert_int_equal(weft_runtime_destroy(stopper.runtime), WEFT_OK);

        ender destroyer = {.op = {.run = end_from_worker}, .runtime = start_runtime(2), .end = weft_runtime_destroy};
        assert_int_equal(weft_schedule(destroyer.runtime, &destroyer.op), WEFT_OK);
        wait_for(&destroyer.result, 1);
        assert_int_equal(atomic_load(&destroyer.result), 1);
        for (int i = 0; weft_runtime_status(destroyer.runtime) != WEFT_EBADHANDLE; i++) {
            assert_true(i < 20000);
            sleep_ms(1);
        }
    }
}

static void stats_bad_input(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(2);
    weft_stats stats = {.size = 15};
    assert_int_equal(weft_runtime_stats(runtime, NULL), WEFT_EINVAL);
    assert_int_equal(weft_runtime_stats(runtime, &stats), WEFT_EVERSION);
    assert_int_equal(weft_worker_stats(runtime, 0, &stats), WEFT_EVERSION);
    assert_int_equal(weft_worker_stats(runtime, 0, NULL), WEFT_EINVAL);
    stats.size = sizeof stats;
    assert_int_equal(weft_worker_stats(runtime, 256, &stats), WEFT_EINVAL);
    assert_int_equal(weft_worker_stats(runtime, 255, &stats), WEFT_OK);
    assert_int_equal(stats.workers, 0); /* it never began */
    assert_int_equal(weft_worker_stats(runtime, 1, &stats), WEFT_OK);
    assert_int_equal(stats.workers, 1);
    memset(&stats, 0xaa, sizeof stats);
    stats.size = 16; /* as many bytes as it says, and no more */
    assert_int_equal(weft_runtime_stats(runtime, &stats), WEFT_OK);
    assert_int_equal(stats.size, 16);
    assert_int_equal(stats.crossings, UINT64_C(0xaaaaaaaaaaaaaaaa));
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

static void current_is_known_on_workers_only(void **state)
{
    (void)state;
    assert_int_equal(weft_runtime_current().id, 0);
    assert_int_equal(weft_worker_index(), WEFT_ENOTWORKER);
}

#if !defined(_WIN32)
static void forked_child_is_told(void **state)
{
    (void)state;
    weft_runtime runtime = start_runtime(1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        weft_op op = {.run = read_thread};
        weft_timer timer = {.op = {.run = read_thread}};
        weft_runtime another;
        int right = weft_schedule(runtime, &op) == WEFT_EFORKED && weft_schedule_at(runtime, &timer, 0) == WEFT_EFORKED &&
                    weft_runtime_create(NULL, &another) == WEFT_EFORKED && weft_runtime_stop(runtime) == WEFT_EFORKED &&
                    weft_runtime_destroy(runtime) == WEFT_EFORKED;
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(weft_runtime_destroy(runtime), WEFT_OK);
}

#endif

static void program_that_never_stops_exits_at_once(void **state)
{
    (void)state;
#if defined(_WIN32)
    assert_int_equal(_spawnl(_P_WAIT, _pgmptr, "runtime_test", "never-stops", (char *)NULL), 7);
#else
    /* exec, so that the child is a process of its own: see the end of main. */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        exec_again("never-stops", NULL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
#endif
}

static void exit_now(weft_op *op)
{
    (void)op;
    exit(7); /* from a worker, with atexit handlers and all */
}

static int never_stops(void)
{
    weft_runtime runtime;
    weft_op op = {.run = exit_now};
    if (weft_runtime_create(NULL, &runtime) != WEFT_OK || weft_schedule(runtime, &op) != WEFT_OK) return 3;
    sleep_ms(20000);
    return 4; /* it hangs */
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "never-stops") == 0) return never_stops();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_config_runs),
        cmocka_unit_test(config_sizes),
        cmocka_unit_test(config_values),
        cmocka_unit_test(threads_have_name_stack_and_mask),
        cmocka_unit_test(null_stale_and_foreign_handles),
        cmocka_unit_test(many_runtimes_up_to_the_limit),
        cmocka_unit_test(stop_twice_then_schedule),
        cmocka_unit_test(stop_and_destroy_from_a_worker),
        cmocka_unit_test(stats_bad_input),
        cmocka_unit_test(current_is_known_on_workers_only),
#if !defined(_WIN32)
        cmocka_unit_test(forked_child_is_told),
#endif
        cmocka_unit_test(program_that_never_stops_exits_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
