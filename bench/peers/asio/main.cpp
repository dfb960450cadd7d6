// SPDX-License-Identifier: MIT
#include "pool.hpp"

int main(int argc, char **argv) {
    return bench::run_program(argc, argv, {task_works, channel_works, timer_works, idle_works, echo_works});
}
