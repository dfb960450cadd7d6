#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/functions"
"$(program echo_server)" 127.0.0.1:0 >"$work/out" 2>"$work/err" &
server=$!
background=$server
port=$(line_of "$work/out" 'listening on 127\.0\.0\.1:([0-9]+)')

printf 'one line\n' | "$here/raw" "$port" 9 >"$work/line"
expect_text "$work/line" "one line"

# Several clients at once, each with more than the server's buffer.
clients=
for i in 1 2 3 4; do
    head -c 100000 /dev/urandom >"$work/sent$i"
    "$here/raw" "$port" 100000 <"$work/sent$i" >"$work/received$i" &
    clients="$clients $!"
    background="$background $!"
done
for client in $clients; do
    wait "$client" || fail "a client did not get everything back"
done
for i in 1 2 3 4; do
    cmp "$work/sent$i" "$work/received$i" || fail "what came back differs"
done

# An address in use is an error with words, not a crash.
code=0
"$(program echo_server)" "127.0.0.1:$port" >"$work/second" 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "a second server at the same port ended with $code"
expect "$work/second" '^echo_server: listen at 127\.0\.0\.1:[0-9]+: address is in use$'

kill -0 "$server" || fail "the server is gone"
[ ! -s "$work/err" ] || fail "the server complained"
