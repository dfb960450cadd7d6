#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The load client: what it counts, and what it says when there is nobody, or nobody who speaks HTTP.
. "$(dirname "$0")/functions"
load=$(program http_load)

"$(program http_server)" --port 0 --workers 1 >"$work/out" 2>"$work/err" &
background=$!
port=$(line_of "$work/out" 'listening on http://127\.0\.0\.1:([0-9]+)')
for pipeline in 1 16; do
    "$load" --connections 8 --duration 1 --pipeline "$pipeline" --workers 1 "http://127.0.0.1:$port/" >"$work/load"
    expect "$work/load" \
        "^8 connections, pipeline $pipeline, [1-9][0-9]*\\.[0-9] s, [1-9][0-9]* workers$" \
        '^requests/s +[1-9][0-9]*$' \
        '^responses +([1-9][0-9]*) \(2xx \1, other 0\), [0-9.]+ MB/s$' \
        '^latency us +p50 [0-9.]+  p90 [0-9.]+  p99 [0-9.]+  p99\.9 [0-9.]+  max [0-9.]+$' \
        '^errors +connect 0, send 0, receive 0, malformed 0, unanswered 0$' \
        '^scheduler +ops [1-9][0-9]*, crossings [1-9]'
    tr -d '\r' <"$work/load" | sed -nE 's/^latency us +p50 ([0-9.]+)  p90 ([0-9.]+)  p99 ([0-9.]+)  p99\.9 ([0-9.]+)  max ([0-9.]+)$/\1 \2 \3 \4 \5/p' |
        awk '$1 > 0 && $1 <= $2 && $2 <= $3 && $3 <= $4 && $4 <= $5 {ok = 1} END {exit !ok}' || fail "percentiles are out of order"
done
"$load" --connections 2 --duration 1 --workers 1 "localhost:$port/" >"$work/load" || fail "a name"

code=0
"$load" --connections 2 --duration 1 "127.0.0.1:$port/nowhere" >"$work/load" || code=$?
[ "$code" -eq 1 ] || fail "404s gave $code"
expect "$work/load" '^responses +([1-9][0-9]*) \(2xx 0, other \1\)'

signal TERM "$background"
ended "$background" || fail "the server ended with $?"
code=0
"$load" --connections 3 --duration 5 "127.0.0.1:$port/" >"$work/load" || code=$?
[ "$code" -eq 1 ] || fail "nobody gave $code"
expect "$work/load" '^errors +connect 3, send 0, receive 0, malformed 0, unanswered 0$' '^requests/s +0$'

"$(program echo_server)" 127.0.0.1:0 >"$work/echo" &
background=$!
port=$(line_of "$work/echo" 'listening on 127\.0\.0\.1:([0-9]+)')
code=0
"$load" --connections 2 --duration 1 "127.0.0.1:$port/" >"$work/load" || code=$?
[ "$code" -eq 1 ] || fail "an echo gave $code"
expect "$work/load" '^errors +connect 0, send 0, receive 0, malformed [1-9][0-9]*, unanswered 0$'

code=0
"$load" --connections 0 127.0.0.1:1 >"$work/usage" 2>&1 || code=$?
[ "$code" -eq 2 ] || fail "a wrong option gave $code"
