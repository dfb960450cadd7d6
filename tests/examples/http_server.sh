#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The server against curl, wrk, raw bytes and our own load client, and its end under load.
. "$(dirname "$0")/functions"

# start OPTION...: sets $server and $port; its output is $work/out
start() {
    : >"$work/out"
    "$(program http_server)" --port 0 --workers 2 "$@" >"$work/out" 2>"$work/err" &
    server=$!
    background="$background $server"
    port=$(line_of "$work/out" 'listening on http://127\.0\.0\.1:([0-9]+)')
    url=http://127.0.0.1:$port
}

# stop SIGNAL: the server ends with 0 and tells its statistics
stop() {
    signal "$1" "$server"
    ended "$server" || fail "the server ended with $?"
    expect "$work/out" '^stopping$' '^requests [0-9]+$' '^ops_run [1-9][0-9]*$' '^crossings [1-9][0-9]*$' '^descriptors 0$'
    [ ! -s "$work/err" ] || fail "the server complained"
}

# status TEXT...: sends raw bytes (printf's escapes) and checks the statuses of all that comes back
status() {
    printf "$1" | "$here/raw" "$port" >"$work/raw" || fail "no end of the stream after: $1"
    got=$(grep -a '^HTTP/1.1 ' "$work/raw" | cut -d ' ' -f 2 | tr '\n' ' ')
    [ "${got% }" = "$2" ] || fail "'$1' gave '$got', not '$2'"
}

curl() { command curl -sS --max-time 10 --noproxy '*' "$@"; }

start
# ---- pages
curl "$url/" >"$work/page"
expect_text "$work/page" "Hello from weft"
curl "$url/?query" >"$work/page"
expect_text "$work/page" "Hello from weft"
curl "$url/stats" >"$work/stats"
expect "$work/stats" '^workers 2$' '^ops_run [1-9][0-9]*$' '^io_started [1-9][0-9]*$' '^descriptors [2-9]$'
curl -i "$url/nowhere" >"$work/page"
expect "$work/page" '^HTTP/1.1 404 Not Found' '^Date: [A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT'
curl -I "$url/" >"$work/page"
expect "$work/page" '^HTTP/1.1 200 OK' '^Content-Length: 16'
curl -i -X DELETE "$url/" >"$work/page"
expect "$work/page" '^HTTP/1.1 405 Method Not Allowed' '^Allow: GET, HEAD'

# ---- one connection for several requests; bodies are consumed, also one that waits for "100 Continue"
curl -v "$url/" "$url/stats" "$url/nowhere" >"$work/page" 2>"$work/verbose"
[ "$(grep -c 'Re-using existing connection' "$work/verbose")" -eq 2 ] || fail "connections were not kept"
head -c 500000 /dev/zero >"$work/body"
curl -v --data-binary "@$work/body" "$url/" --next "$url/" >"$work/page" 2>"$work/verbose"
expect "$work/verbose" '< HTTP/1.1 405' '< HTTP/1.1 200'
curl -i -H 'Expect: 100-continue' --data-binary "@$work/body" "$url/" >"$work/page"
expect "$work/page" '^HTTP/1.1 100 Continue' '^HTTP/1.1 405'
rm -f "$work/body"

# ---- pipelining, and the last answer says that it is the last
end='HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
status "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /no HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc$end" \
    '200 404 405 200'
[ "$(grep -ac '^Connection: close' "$work/raw")" -eq 1 ] || fail "more than one answer closes"
[ "$(tail -c 4 "$work/raw" | od -An -tx1 | tr -d ' \n')" = 0d0a0d0a ] || fail "HEAD had a body"
many=$(for _ in $(seq 300); do printf '%s' 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'; done)
status "$many$end" "$(for _ in $(seq 300); do printf '200 '; done)200"
status 'GET / HTTP/1.0\r\n\r\n' 200
status 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n' '200 200'

# ---- what is wrong is told, and ends the connection
status 'rubbish\r\n\r\n' 400
status '\026\003\001\002\000\001\000' 400
status 'GET / HTTP/1.1\r\n\r\n' 400
status 'GET / HTTP/1.1\nHost: x\n\n' 400
status 'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n' 400
status 'GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n' 501
status 'GET / HTTP/3.0\r\nHost: x\r\n\r\n' 505
status "GET / HTTP/1.1\r\nHost: x\r\nExpect: luck\r\n\r\n" 417
status "GET / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n$end" '200 400'
long=$(head -c 5000 /dev/zero | tr '\0' a)
status "GET /$long HTTP/1.1\r\nHost: x\r\n\r\n" 414
status "GET / HTTP/1.1\r\nHost: x\r\nA: $long\r\nB: $long\r\n\r\n" 431
[ "$(curl -o /dev/null -w '%{http_code}' -H "A: $long" -H "B: $long" "$url/")" = 431 ] || fail "large headers, by curl"
status 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n' 413

# ---- load, of a public client and of ours
wrk -t 1 -c 16 -d 1 "$url/" >"$work/wrk"
expect "$work/wrk" '^Requests/sec: +[1-9][0-9]+'
if grep -Eq 'Socket errors|Non-2xx' "$work/wrk"; then
    fail "wrk saw errors"
fi
"$(program http_load)" --connections 32 --duration 1 --pipeline 8 --workers 1 "127.0.0.1:$port/stats" >"$work/load" || fail "http_load"
expect "$work/load" '^responses +[1-9][0-9]* \(2xx [1-9][0-9]*, other 0\)' '^errors +connect 0, send 0, receive 0, malformed 0, unanswered 0$'
stop TERM

# ---- clients that are slow: an idle one is closed, one in the middle of a request is told
start --timeout-ms 300
status '' ''
status 'GET / HTTP/1.1\r\nHo' 408
status 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc' 408
status 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' 200
stop INT

# ---- the end under load: every request that was sent is answered, and the last answer on each connection says so
start --grace-ms 2000
"$(program http_load)" --connections 16 --duration 10 --workers 1 "127.0.0.1:$port" >"$work/load" &
load=$!
background="$background $load"
"$here/raw" "$port" </dev/null >"$work/idle" & # and a connection that asks for nothing is closed
idle=$!
background="$background $idle"
asked=0
until [ "$(curl "$url/stats" | tr -d '\r' | sed -nE 's/^descriptors ([0-9]+)$/\1/p')" -gt 16 ]; do # until all have come
    asked=$((asked + 1))
done
asked=$((asked + 1))
sleep 1
stop TERM
ended "$load" || fail "http_load ended with $?"
wait "$idle" || fail "the idle connection was not closed"
[ ! -s "$work/idle" ] || fail "the idle connection was sent something"
expect "$work/load" '^responses +[1-9][0-9]* \(2xx [1-9][0-9]*, other 0\)' '^errors +connect 16, send 0, receive 0, malformed 0, unanswered 0$'
answered=$(tr -d '\r' <"$work/load" | sed -nE 's/^responses +([0-9]+).*/\1/p')
served=$(tr -d '\r' <"$work/out" | sed -nE 's/^requests ([0-9]+)$/\1/p')
[ $((answered + asked)) -eq "$served" ] || fail "$served requests were served, $answered answers arrived, and $asked before"

# ---- options
code=0
"$(program http_server)" --port 65536 >"$work/usage" 2>&1 || code=$?
[ "$code" -eq 2 ] || fail "a wrong option gave $code"
expect "$work/usage" '^usage: http_server'
code=0
"$(program http_server)" --address nonsense >"$work/usage" 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "a wrong address gave $code"
expect "$work/usage" "^http_server: endpoint 'nonsense:8080': invalid argument$"
