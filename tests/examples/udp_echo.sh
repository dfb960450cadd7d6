#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/functions"
serve udp_echo

for text in "one" "and another"; do
    "$(program udp_echo)" ask "127.0.0.1:$port" "$text" >"$work/answer" 2>"$work/asked" || fail "no answer"
    expect_text "$work/answer" "$text"
done

serves_alone udp_echo "bind to"
