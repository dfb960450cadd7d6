/* SPDX-License-Identifier: MIT
 *
 * faults_linux.c: how a program dies of a fault in its own code.
 *
 * Go handles SIGSEGV, SIGBUS and SIGFPE, and forwards those that C code has raised to the handler that was there when the library was loaded.
 * Had there been none, it would print its own goroutines and end the program by SIGQUIT. So one is there, which leaves the fault to the
 * system: the program dies of the signal it has raised, at the instruction that raised it. A debugger and a core dump show that.
 */
#include <signal.h>
#include <stddef.h>

/* The instruction is tried again, and raises the signal once more. */
static void lane_die_of(int signal) {
    struct sigaction none = {.sa_handler = SIG_DFL};
    sigaction(signal, &none, NULL);
}

/* Before Go's own constructor, which has no priority. Lower ones are reserved. */
__attribute__((constructor(101))) static void lane_handle_faults(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct sigaction now, ours = {.sa_handler = lane_die_of, .sa_flags = SA_ONSTACK};
        if (sigaction(faults[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            sigaction(faults[i], &ours, NULL);
    }
}
