/* SPDX-License-Identifier: MIT
 *
 * host_test.c: a program that uses weft stays as it was: how it exits, its signals, its threads' masks, errno, locale and
 * floating-point environment. dlopen_test.c does the same for one that loads the library when it runs.
 */
#include "host_support.h"

#include <fenv.h>
#include <locale.h>
#include <sys/socket.h>

/* ---- scenarios: each is a process */

static weft_runtime busy_runtime(void)
{
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.workers = 2;
    weft_runtime runtime = {0};
    MUST(weft_runtime_create(&config, &runtime) == WEFT_OK);
    return runtime;
}

static void again(weft_op *op) { weft_yield(weft_runtime_current(), op); }

static void nothing(weft_op *op) { (void)op; }

static void rest(weft_op *op)
{
    (void)op;
    for (;;) pause();
}

static void leave(weft_op *op) { exit(op != NULL ? 8 : 9); }

static void fault(weft_op *op)
{
    (void)op;
    static volatile uintptr_t nowhere = 8; /* read at run time, since compilers refuse what they can see */
    *(volatile int *)nowhere = 1;
}

/* Returns from main while workers compute, sleep in an op, wait for a timer, and wait for a socket. */
static int returns(void)
{
    static weft_op spin = {.run = again}, sleeper = {.run = rest};
    static weft_timer far = {.op = {.run = nothing}};
    static weft_io receive = {.op = {.run = nothing}};
    static char got[4];
    int ends[2];
    weft_descriptor descriptor;
    weft_runtime runtime = busy_runtime(), other = busy_runtime();
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    MUST(weft_descriptor_open(runtime, ends[0], &descriptor) == WEFT_OK);
    MUST(weft_recv(&receive, descriptor, got, sizeof got, 0) == WEFT_OK);
    MUST(weft_schedule_after(runtime, &far, INT64_C(3600000000000)) == WEFT_OK);
    MUST(weft_schedule(runtime, &spin) == WEFT_OK);
    MUST(weft_schedule(other, &sleeper) == WEFT_OK);
    return 5;
}

/* A worker exits while another spins, and a thread of the host's waits for the end of a runtime. */
static int exits_from_worker(void)
{
    static weft_op spin = {.run = again}, sleeper = {.run = rest}, exiter = {.run = leave};
    weft_runtime runtime = busy_runtime(), other = busy_runtime();
    MUST(weft_schedule(runtime, &spin) == WEFT_OK);
    MUST(weft_schedule(other, &sleeper) == WEFT_OK);
    MUST(weft_schedule(runtime, &exiter) == WEFT_OK);
    weft_runtime_stop(other); /* never returns */
    return 1;
}

static int faults_on_worker(void)
{
    static weft_op op = {.run = fault};
    MUST(weft_schedule(busy_runtime(), &op) == WEFT_OK);
    for (;;) pause();
}

static int faults_on_host(void)
{
    weft_runtime_destroy(busy_runtime()); /* so that Go knows this thread */
    fault(NULL);
    return 1;
}

static void exit_9(int signal)
{
    (void)signal;
    _exit(9);
}

static int faults_with_handler(int flags, int (*then)(void))
{
    struct sigaction action = {.sa_handler = exit_9, .sa_flags = flags};
    MUST(sigaction(SIGSEGV, &action, NULL) == 0);
    return then();
}

/* Ended by a signal while it waits for an op that does not end. */
static int interrupted_in_stop(void)
{
    static weft_op sleeper = {.run = rest};
    weft_runtime runtime = busy_runtime();
    MUST(weft_schedule(runtime, &sleeper) == WEFT_OK);
    puts("waits");
    fflush(stdout);
    weft_runtime_stop(runtime);
    return 1;
}

static const int taken_by_hosts[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD,
                                     SIGTSTP, SIGTTIN, SIGXCPU, SIGPROF, SIGWINCH, SIGVTALRM, 40, 64};
enum { TAKEN = sizeof taken_by_hosts / sizeof *taken_by_hosts };

/* No thread of weft's or Go's takes a signal that is meant for the host, before, during and after the life of a runtime. */
static int masks(void)
{
    const pid_t self = getpid();
    MUST(threads_that_take(taken_by_hosts, TAKEN, &self, 1) == 0);
    weft_runtime runtime = busy_runtime();
    MUST(threads_that_take(taken_by_hosts, TAKEN, &self, 1) == 0);
    static weft_op ops[1000];
    for (int i = 0; i < 1000; i++) {
        ops[i].run = nothing;
        MUST(weft_schedule(runtime, &ops[i]) == WEFT_OK);
    }
    MUST(weft_runtime_destroy(runtime) == WEFT_OK);
    MUST(threads_that_take(taken_by_hosts, TAKEN, &self, 1) == 0);
    return 0;
}

/* A host that blocks SIGCHLD and waits for it gets each one, although it was pending while threads began. */
static int waits_for_children(void)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    MUST(sigprocmask(SIG_BLOCK, &children, NULL) == 0);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        siginfo_t info;
        if (i % 2 == 0) { /* pending by now */
            MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
        }
        weft_runtime runtime = busy_runtime();
        MUST(sigtimedwait(&children, &info, &(struct timespec){10, 0}) == SIGCHLD);
        MUST(weft_runtime_destroy(runtime) == WEFT_OK);
        MUST(waitpid(child, NULL, 0) == child);
    }
    return 0;
}

/* Handlers of the host's, installed with and without SA_ONSTACK, before and after there is a runtime, under a storm of signals. */

static atomic_long handled, strangers, chain;

static void handler(int signal)
{
    (void)signal;
    volatile char much[6000]; /* more than there is on a small stack */
    for (size_t i = 0; i < sizeof much; i += 512) much[i] = (char)i;
    atomic_fetch_add(&handled, 1);
    if (!host_thread) atomic_fetch_add(&strangers, 1);
}

static void handle(int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags | SA_RESTART};
    MUST(sigaction(SIGPROF, &action, NULL) == 0 && sigaction(SIGCHLD, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
}

static void count_on(weft_op *op)
{
    atomic_fetch_add(&chain, 1);
    weft_yield(weft_runtime_current(), op); /* refused in the end */
}

static atomic_bool enough;

/* A thread of the host's that goes in and out of Go. It begins with its signals blocked, until it has said who it is. */
static void *crosses(void *argument)
{
    host_thread = true;
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    weft_runtime runtime = *(weft_runtime *)argument;
    while (!atomic_load(&enough)) {
        int ends[2];
        weft_descriptor descriptor;
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        MUST(weft_descriptor_open(runtime, ends[0], &descriptor) == WEFT_OK);
        MUST(weft_descriptor_close(descriptor) == WEFT_OK);
        close(ends[1]);
        weft_runtime_destroy(busy_runtime());
    }
    return NULL;
}

static int storm(int flags, bool before)
{
    host_thread = true;
    if (before) handle(flags);
    weft_runtime runtime = busy_runtime();
    if (!before) handle(flags);
    static weft_op ops[4];
    for (int i = 0; i < 4; i++) {
        ops[i].run = count_on;
        MUST(weft_schedule(runtime, &ops[i]) == WEFT_OK);
    }
    pthread_t threads[2];
    sigset_t all, before_threads;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_threads);
    for (int i = 0; i < 2; i++) MUST(pthread_create(&threads[i], NULL, crosses, &runtime) == 0);
    pthread_sigmask(SIG_SETMASK, &before_threads, NULL);
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    MUST(setitimer(ITIMER_PROF, &often, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        kill(getpid(), SIGUSR1);
        pthread_kill(threads[i % 2], SIGUSR1);
        MUST(waitpid(child, NULL, 0) == child);
        sleep_ms(5);
    }
    MUST(setitimer(ITIMER_PROF, &never, NULL) == 0);
    atomic_store(&enough, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    MUST(weft_runtime_destroy(runtime) == WEFT_OK);
    MUST(atomic_load(&handled) >= 60);
    MUST(atomic_load(&strangers) == 0);
    MUST(atomic_load(&chain) > 0);
    return 0;
}

/* A thread of the host's, in an unusual state, calls everything and is asked afterwards what has changed. */

typedef struct environment {
    sigset_t signals;
    int rounding, exceptions, traps, error;
    locale_t locale;
} environment;

enum { EXCEPTIONS = FE_DIVBYZERO | FE_OVERFLOW };

static void unusual(environment *e, bool all_signals)
{
    if (all_signals)
        sigfillset(&e->signals);
    else
        sigemptyset(&e->signals);
    sigaddset(&e->signals, SIGWINCH);
    pthread_sigmask(SIG_SETMASK, &e->signals, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &e->signals); /* some cannot be blocked */
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(EXCEPTIONS);
    feenableexcept(FE_INVALID | FE_INEXACT | FE_UNDERFLOW);
    e->traps = fegetexcept();
    e->rounding = fegetround();
    e->exceptions = fetestexcept(FE_ALL_EXCEPT);
    e->locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (e->locale == (locale_t)0) e->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    uselocale(e->locale);
    e->error = errno = EXDEV;
}

static void unchanged(const environment *e)
{
    MUST(errno == e->error);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; i <= SIGRTMAX; i++) MUST(sigismember(&now, i) == sigismember(&e->signals, i));
    MUST(fegetround() == e->rounding);
    MUST(fetestexcept(FE_ALL_EXCEPT) == e->exceptions);
    MUST(fegetexcept() == e->traps);
    MUST(uselocale((locale_t)0) == e->locale);
    errno = e->error;
}

#define CALL(call, expected)         \
    do {                             \
        int got_ = (int)(call);      \
        unchanged(&e);               \
        MUST(got_ == (expected));    \
    } while (0)

static void *calls_everything(void *all_signals)
{
    environment e;
    unusual(&e, all_signals != NULL);
    weft_runtime_config config = WEFT_RUNTIME_CONFIG_INIT;
    config.workers = 2;
    weft_runtime runtime = {0}, refused = {0};
    CALL(weft_runtime_create(&config, &runtime), WEFT_OK);
    config.workers = 1000;
    CALL(weft_runtime_create(&config, &refused), WEFT_EINVAL);
    static weft_op op;
    op.run = nothing;
    CALL(weft_schedule(runtime, &op), WEFT_OK);
    weft_timer timer = {.op = {.run = nothing}};
    CALL(weft_schedule_after(runtime, &timer, INT64_C(3600000000000)), WEFT_OK);
    CALL(weft_timer_remove(&timer), WEFT_OK);

    int ends[2], full[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && pipe(full) == 0);
    weft_descriptor descriptor, none, writer;
    CALL(weft_descriptor_open(runtime, ends[0], &descriptor), WEFT_OK);
    CALL(weft_descriptor_open(runtime, ends[0], &none), WEFT_EEXIST);
    CALL(weft_descriptor_open(runtime, 1 << 28, &none), WEFT_EINVAL);
    CALL(weft_descriptor_open(runtime, full[1], &writer), WEFT_OK);
    char got[4];
    weft_io io = {.op = {.run = nothing}};
    MUST(write(ends[1], "x", 1) == 1);
    CALL(weft_recv(&io, descriptor, got, 4, 0), 1);
    CALL(weft_recv(&io, descriptor, got, 4, 0), WEFT_OK); /* waits: EAGAIN */
    CALL(weft_io_cancel(&io), WEFT_OK);
    close(full[0]);
    weft_io broken = {.op = {.run = nothing}};
    CALL(weft_send(&broken, writer, "x", 1, 0), 1);
    MUST(broken.status == WEFT_EPIPE);
    CALL(weft_shutdown(descriptor, WEFT_SHUTDOWN_SEND), WEFT_OK);
    CALL(weft_shutdown(writer, WEFT_SHUTDOWN_SEND), WEFT_ENOTSUP);
    weft_endpoint endpoint;
    CALL(weft_local_endpoint(writer, &endpoint), WEFT_ENOTSUP);
    CALL(weft_endpoint_parse("127.0.0.1:0", &endpoint), WEFT_OK);
    weft_descriptor listener, client;
    CALL(weft_tcp_listen(runtime, &endpoint, 0, &listener), WEFT_OK);
    CALL(weft_local_endpoint(listener, &endpoint), WEFT_OK);
    CALL(weft_tcp_open(runtime, WEFT_IPV4, &client), WEFT_OK);
    CALL(weft_remote_endpoint(client, &endpoint), WEFT_ENOTCONN);
    CALL(weft_descriptor_close(listener), WEFT_OK);
    CALL(weft_descriptor_close(client), WEFT_OK);
    CALL(weft_descriptor_close(descriptor), WEFT_OK);
    CALL(weft_descriptor_close(descriptor), WEFT_EBADHANDLE);
    CALL(weft_runtime_stop(runtime), WEFT_OK);
    CALL(weft_runtime_destroy(runtime), WEFT_OK);
    close(ends[1]);
    uselocale(LC_GLOBAL_LOCALE);
    freelocale(e.locale);
    return NULL;
}

/* What an op leaves in errno and in the floating-point environment the next op on that worker finds, whatever the worker did in
 * between: it parks, and fires timers in Go. */
typedef struct step {
    weft_timer timer;
    weft_runtime runtime;
    atomic_long done;
    bool first;
    int raised, trapped; /* what there is after FE_OVERFLOW was raised and FE_INEXACT trapped: processors for arm64 raise both, and few trap */
} step;

#define IS_AS_LEFT(s) \
    (fegetround() == FE_DOWNWARD && fetestexcept(FE_ALL_EXCEPT) == (s)->raised && fegetexcept() == (s)->trapped && errno == EXDEV)

static void take_step(weft_op *op)
{
    step *s = (step *)op;
    if (s->first) {
        fesetround(FE_DOWNWARD);
        feclearexcept(FE_ALL_EXCEPT);
        feraiseexcept(FE_OVERFLOW);
        s->raised = fetestexcept(FE_ALL_EXCEPT);
        s->trapped = feenableexcept(FE_INEXACT) == -1 ? 0 : FE_INEXACT;
        errno = EXDEV;
        s->first = false;
    }
    MUST(IS_AS_LEFT(s));
    int ends[2];
    weft_descriptor descriptor;
    MUST(pipe(ends) == 0 && weft_descriptor_open(s->runtime, ends[0], &descriptor) == WEFT_OK);
    MUST(weft_descriptor_close(descriptor) == WEFT_OK && close(ends[1]) == 0);
    MUST(IS_AS_LEFT(s));
    if (atomic_load(&s->done) + 1 < 20) MUST(weft_schedule_after(s->runtime, &s->timer, 2000000) == WEFT_OK);
    atomic_fetch_add(&s->done, 1);
}

/* ---- tests */

static void exits(void **state)
{
    (void)state;
    exits_with("returns", 5);
    exits_with("exits_from_worker", 8);
}

static void faults(void **state)
{
    (void)state;
    dies_of("faults_on_worker", SIGSEGV);
    dies_of("faults_on_host", SIGSEGV);
    exits_with("faults_on_worker_handled", 9);
    exits_with("faults_on_worker_handled_onstack", 9);
    exits_with("faults_on_host_handled", 9);
    exits_with("faults_on_host_handled_onstack", 9);
}

static void interrupt_while_stopping(void **state)
{
    (void)state;
    int out[2];
    assert_int_equal(pipe(out), 0);
    int saved = dup(1);
    dup2(out[1], 1);
    pid_t child = begin_scenario("interrupted_in_stop");
    dup2(saved, 1);
    close(saved);
    close(out[1]);
    char got[8];
    assert_true(read(out[0], got, sizeof got) > 0); /* it is about to wait */
    int status;
    for (int i = 0; i < 100; i++) { /* one that comes too early would end it, too */
        sleep_ms(20);
        if (i == 5) assert_int_equal(kill(child, SIGINT), 0);
        if (waitpid(child, &status, WNOHANG) == child) {
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
            assert_true(i >= 5);
            close(out[0]);
            return;
        }
    }
    kill(child, SIGKILL);
    fail_msg("SIGINT did not end a program that waits in weft_runtime_stop");
}

static void signals(void **state)
{
    (void)state;
    exits_with("masks", 0);
    exits_with("waits_for_children", 0);
}

static void handlers(void **state)
{
    (void)state;
    exits_with("storm_before", 0);
    exits_with("storm_after", 0);
    exits_with("storm_before_onstack", 0);
    exits_with("storm_after_onstack", 0);
}

static void threads_stay_as_they_are(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, calls_everything, all ? state : NULL), 0);
        pthread_join(thread, NULL);
    }
}

static void ops_find_what_ops_left(void **state)
{
    (void)state;
    step s = {.timer = {.op = {.run = take_step}}, .runtime = start_runtime(1), .first = true};
    assert_int_equal(weft_schedule_after(s.runtime, &s.timer, 0), WEFT_OK);
    wait_for(&s.done, 20);
    assert_int_equal(weft_runtime_destroy(s.runtime), WEFT_OK);
}

static int scenario(const char *name)
{
    alarm(50); /* a hang ends as a signal, which the parent takes for a failure */
    if (strcmp(name, "returns") == 0) return returns();
    if (strcmp(name, "exits_from_worker") == 0) return exits_from_worker();
    if (strcmp(name, "faults_on_worker") == 0) return faults_on_worker();
    if (strcmp(name, "faults_on_host") == 0) return faults_on_host();
    if (strcmp(name, "faults_on_worker_handled") == 0) return faults_with_handler(0, faults_on_worker);
    if (strcmp(name, "faults_on_worker_handled_onstack") == 0) return faults_with_handler(SA_ONSTACK, faults_on_worker);
    if (strcmp(name, "faults_on_host_handled") == 0) return faults_with_handler(0, faults_on_host);
    if (strcmp(name, "faults_on_host_handled_onstack") == 0) return faults_with_handler(SA_ONSTACK, faults_on_host);
    if (strcmp(name, "interrupted_in_stop") == 0) return interrupted_in_stop();
    if (strcmp(name, "masks") == 0) return masks();
    if (strcmp(name, "waits_for_children") == 0) return waits_for_children();
    if (strcmp(name, "storm_before") == 0) return storm(0, true);
    if (strcmp(name, "storm_after") == 0) return storm(0, false);
    if (strcmp(name, "storm_before_onstack") == 0) return storm(SA_ONSTACK, true);
    if (strcmp(name, "storm_after_onstack") == 0) return storm(SA_ONSTACK, false);
    return 122;
}

int main(int argc, char **argv)
{
    if (argc == 2) return scenario(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exits),
        cmocka_unit_test(faults),
        cmocka_unit_test(interrupt_while_stopping),
        cmocka_unit_test(signals),
        cmocka_unit_test(handlers),
        cmocka_unit_test(threads_stay_as_they_are),
        cmocka_unit_test(ops_find_what_ops_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
