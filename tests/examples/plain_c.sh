#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/functions"
"$(program plain_c)" >"$work/out"
expect "$work/out" \
    '^op: running on a worker: yes$' \
    '^timer: success after 20 ms: yes$' \
    '^echo: 30 bytes came back, the same: yes$' \
    '^echo: the other end is done: yes$' \
    '^statistics: 1 timer fired, [0-9]+ I/O ops, 0 descriptors open$'
[ "$(wc -l <"$work/out")" -eq 5 ] || fail "not five lines"
