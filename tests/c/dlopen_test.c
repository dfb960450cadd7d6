/* SPDX-License-Identifier: MIT
 *
 * dlopen_test.c: a program in C that is not linked with weft and loads it when it runs, as a plug-in would come with it: from main and from
 * another thread, with handlers of its own and other threads already there. Its argument is the library, or a scenario
 * (host_support.h), which finds the library in WEFT_LIBRARY.
 */
#include "host_support.h"

#include <dlfcn.h>

/* What of the library the scenarios use, found by name. */
#define FUNCTIONS(X)                                                                     \
    X(runtime_create, int, (const weft_runtime_config *, weft_runtime *))                \
    X(runtime_destroy, int, (weft_runtime))                                              \
    X(runtime_current, weft_runtime, (void))                                             \
    X(worker_index, int, (void))                                                         \
    X(schedule, int, (weft_runtime, weft_op *))                                          \
    X(schedule_after, int, (weft_runtime, weft_timer *, int64_t))                        \
    X(version_number, uint32_t, (void))

#define DECLARE(name, result, arguments) static result(*name) arguments;
FUNCTIONS(DECLARE)

static void *library;

static void load(void)
{
    library = dlopen(getenv("WEFT_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    MUST(library != NULL);
#define FIND(name, result, arguments)                                    \
    do {                                                                 \
        void *found_ = dlsym(library, "weft_" #name);                    \
        MUST(found_ != NULL);                                            \
        memcpy(&name, &found_, sizeof found_);                           \
    } while (0);
    FUNCTIONS(FIND)
    MUST(version_number() == WEFT_VERSION_NUMBER);
}

static weft_runtime create(void)
{
    weft_runtime runtime = {0};
    MUST(runtime_create(NULL, &runtime) == WEFT_OK);
    return runtime;
}

typedef struct seen {
    weft_op op;
    atomic_long runs;
    weft_runtime in;
    int index;
} seen;

static void look(weft_op *op)
{
    seen *s = (seen *)op;
    s->in = runtime_current();
    s->index = worker_index();
    atomic_store(&s->runs, 1);
}

static void run_one(weft_runtime runtime)
{
    seen s = {.op = {.run = look}};
    MUST(schedule(runtime, &s.op) == WEFT_OK);
    while (atomic_load(&s.runs) == 0) sleep_ms(1);
    MUST(s.in.id == runtime.id && s.index >= 0);
    MUST(runtime_current().id == 0 && worker_index() == WEFT_ENOTWORKER);
}

static int from_main(void)
{
    load();
    weft_runtime runtime = create();
    run_one(runtime);
    MUST(runtime_destroy(runtime) == WEFT_OK);
    return 0;
}

static void *load_and_use(void *unused)
{
    (void)unused;
    from_main();
    return NULL;
}

static int from_thread(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, load_and_use, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    weft_runtime runtime = create(); /* the thread that loaded it is gone */
    run_one(runtime);
    MUST(runtime_destroy(runtime) == WEFT_OK);
    return 0;
}

/* Threads that were there before the library, whose thread-local storage had no place for it. */
static pthread_barrier_t loaded;
static weft_runtime shared_runtime;

static void *older(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&loaded);
    run_one(shared_runtime);
    weft_runtime own = create();
    run_one(own);
    MUST(runtime_destroy(own) == WEFT_OK);
    return NULL;
}

static int with_older_threads(void)
{
    enum { OLDER = 8 };
    pthread_t threads[OLDER];
    pthread_barrier_init(&loaded, NULL, OLDER + 1);
    for (int i = 0; i < OLDER; i++) MUST(pthread_create(&threads[i], NULL, older, NULL) == 0);
    load();
    shared_runtime = create();
    pthread_barrier_wait(&loaded);
    for (int i = 0; i < OLDER; i++) MUST(pthread_join(threads[i], NULL) == 0);
    MUST(runtime_destroy(shared_runtime) == WEFT_OK);
    return 0;
}

/* dlclose has no effect, even while a runtime lives. */
static int closed_and_opened_again(void)
{
    load();
    weft_runtime runtime = create();
    seen s = {.op = {.run = look}};
    MUST(dlclose(library) == 0);
    MUST(schedule(runtime, &s.op) == WEFT_OK);
    while (atomic_load(&s.runs) == 0) sleep_ms(1);
    load();
    run_one(runtime);
    MUST(runtime_destroy(runtime) == WEFT_OK);
    MUST(dlclose(library) == 0);
    return 0;
}

static int never_stopped(void)
{
    load();
    static weft_timer far = {.op = {.run = look}};
    MUST(schedule_after(create(), &far, INT64_C(3600000000000)) == WEFT_OK);
    return 6;
}

static void fault(weft_op *op)
{
    (void)op;
    static volatile uintptr_t nowhere = 8; /* read at run time, since compilers refuse what they can see */
    *(volatile int *)nowhere = 1;
}

static int faults(void)
{
    static weft_op op = {.run = fault};
    load();
    MUST(schedule(create(), &op) == WEFT_OK);
    for (;;) pause();
}

static void exit_9(int signal)
{
    (void)signal;
    _exit(9);
}

/* The handler was there before the library: Go forwards to it. */
static int faults_with_older_handler(void)
{
    struct sigaction action = {.sa_handler = exit_9};
    MUST(sigaction(SIGSEGV, &action, NULL) == 0);
    return faults();
}

/* Loading changes neither the mask of the thread that loads, nor what becomes of the process's signals. */
static atomic_long handled;

static void count(int signal)
{
    (void)signal;
    MUST(host_thread);
    atomic_fetch_add(&handled, 1);
}

static int older_signals(void)
{
    host_thread = true;
    const pid_t self = getpid();
    const int all[] = {SIGHUP, SIGINT, SIGUSR1, SIGTERM, SIGCHLD, SIGPROF, SIGALRM};
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGPROF, &action, NULL) == 0 && sigaction(SIGCHLD, &action, NULL) == 0);
    sigset_t blocked, before, after;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    MUST(sigprocmask(SIG_SETMASK, &blocked, &before) == 0);
    load();
    MUST(threads_that_take(all, sizeof all / sizeof *all, &self, 1) == 0);
    weft_runtime runtime = create();
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i <= SIGRTMAX; i++) MUST(sigismember(&after, i) == (i == SIGUSR1));
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    MUST(setitimer(ITIMER_PROF, &often, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        for (int j = 0; j < 100; j++) run_one(runtime);
        MUST(waitpid(child, NULL, 0) == child);
    }
    MUST(setitimer(ITIMER_PROF, &never, NULL) == 0);
    MUST(atomic_load(&handled) >= 20);
    MUST(runtime_destroy(runtime) == WEFT_OK);
    return 0;
}

/* ---- tests */

static void loads(void **state)
{
    (void)state;
    exits_with("from_main", 0);
    exits_with("from_thread", 0);
    exits_with("with_older_threads", 0);
    exits_with("closed_and_opened_again", 0);
    exits_with("never_stopped", 6);
}

static void signals(void **state)
{
    (void)state;
    exits_with("older_signals", 0);
    dies_of("faults", SIGSEGV);
    exits_with("faults_with_older_handler", 9);
}

static int scenario(const char *name)
{
    alarm(50); /* a hang ends as a signal, which the parent takes for a failure */
    if (strcmp(name, "from_main") == 0) return from_main();
    if (strcmp(name, "from_thread") == 0) return from_thread();
    if (strcmp(name, "with_older_threads") == 0) return with_older_threads();
    if (strcmp(name, "closed_and_opened_again") == 0) return closed_and_opened_again();
    if (strcmp(name, "never_stopped") == 0) return never_stopped();
    if (strcmp(name, "older_signals") == 0) return older_signals();
    if (strcmp(name, "faults") == 0) return faults();
    if (strcmp(name, "faults_with_older_handler") == 0) return faults_with_older_handler();
    return 122;
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("WEFT_LIBRARY") != NULL) return scenario(argv[1]);
    if (argc != 2) {
        fprintf(stderr, "usage: %s libweft.so\n", argv[0]);
        return 2;
    }
    setenv("WEFT_LIBRARY", argv[1], 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads),
        cmocka_unit_test(signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
