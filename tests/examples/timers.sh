#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What a timer promises is that it is never early.
. "$(dirname "$0")/functions"
"$(program timers)" >"$work/out"
at_least() {
    told=$(tr -d '\r' <"$work/out" | sed -nE "s/^$1\$/\\1/p")
    [ -n "$told" ] && [ "$told" -ge "$2" ] || fail "'$1' is '$told', not at least $2"
}
at_least 'a pause of 15 ms took ([0-9]+) ms' 15
at_least 'beat 1 at ([0-9]+) ms' 10
at_least 'beat 2 at ([0-9]+) ms' 20
at_least 'beat 3 at ([0-9]+) ms' 30
at_least '10000 sleeps of up to 49 ms took ([0-9]+) ms' 49
at_least 'a sleep of an hour was cancelled after ([0-9]+) ms' 30
[ "$(wc -l <"$work/out")" -eq 6 ] || fail "not six lines"
