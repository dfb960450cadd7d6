// SPDX-License-Identifier: MIT
#include "weft_works.hpp"

int main(int argc, char **argv) {
    return bench::run_program(argc, argv, {task_works, forkjoin_works, calls_works, handover_works, timer_works, idle_works, echo_works, file_works});
}
