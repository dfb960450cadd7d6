#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/functions"
"$(program udp_echo)" 127.0.0.1:0 >"$work/out" 2>"$work/err" &
server=$!
background=$server
port=$(line_of "$work/out" 'listening on 127\.0\.0\.1:([0-9]+)')

for text in "one" "and another"; do
    "$(program udp_echo)" ask "127.0.0.1:$port" "$text" >"$work/answer" 2>"$work/asked" || fail "no answer"
    expect_text "$work/answer" "$text"
done

# An address in use is an error with words, not a crash.
code=0
"$(program udp_echo)" "127.0.0.1:$port" >"$work/second" 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "a second server at the same port ended with $code"
expect "$work/second" '^udp_echo: bind to 127\.0\.0\.1:[0-9]+: address is in use$'

kill -0 "$server" || fail "the server is gone"
[ ! -s "$work/err" ] || fail "the server complained"
