// SPDX-License-Identifier: MIT
//
// Waits for the user, or the system, to ask the program to end: SIGINT or SIGTERM; on Windows Ctrl-C, Ctrl-Break or the end of the
// console. One object at a time. The second request ends the program the hard way.
#ifndef HTTP_SERVER_INTERRUPT_HPP
#define HTTP_SERVER_INTERRUPT_HPP

#if defined(_WIN32)

#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

namespace http {

class interrupt {
public:
    interrupt() {
        asked() = CreateEventA(nullptr, TRUE, FALSE, nullptr);
        SetConsoleCtrlHandler(handle, TRUE);
    }
    interrupt(const interrupt&) = delete;
    interrupt& operator=(const interrupt&) = delete;

    void wait() { WaitForSingleObject(asked(), INFINITE); }

private:
    static HANDLE& asked() {
        static HANDLE event = nullptr;
        return event;
    }

    // On a thread of the system's.
    static BOOL WINAPI handle(DWORD) {
        const bool first = WaitForSingleObject(asked(), 0) == WAIT_TIMEOUT;
        SetEvent(asked());
        return first ? TRUE : FALSE;
    }
};

} // namespace http

#else

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace http {

// A handler that writes to a pipe, and not sigwait: that would need the signals blocked in every thread of the process,
// and other libraries' threads were there before main. The handler may run on any of them, so it has SA_ONSTACK: Go's threads
// have small stacks.
class interrupt {
public:
    interrupt() {
        if (pipe(ends()) != 0) {
            std::perror("pipe");
            std::exit(1);
        }
        struct sigaction action {};
        action.sa_handler = [](int) {
            const int saved = errno;
            if (write(ends()[1], "", 1) != 1) {
                std::abort();
            }
            errno = saved;
        };
        action.sa_flags = SA_ONSTACK | SA_RESTART | static_cast<int>(SA_RESETHAND);
        sigaction(SIGINT, &action, nullptr);
        sigaction(SIGTERM, &action, nullptr);
    }
    interrupt(const interrupt&) = delete;
    interrupt& operator=(const interrupt&) = delete;

    void wait() {
        char byte;
        while (read(ends()[0], &byte, 1) != 1) {
        }
    }

private:
    static int* ends() {
        static int descriptors[2];
        return descriptors;
    }
};

} // namespace http

#endif

#endif
