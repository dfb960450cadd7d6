#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/functions"
serve echo_server

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

serves_alone echo_server "listen at"
