#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Copies are the same as what was copied, their checksums those of cksum, and what goes wrong is told and stops nothing else.
. "$(dirname "$0")/functions"
copy=$(program copy)
mkdir "$work/from" "$work/to"
cd "$work/from"
: >empty
printf x >one
head -c 1048576 /dev/urandom >block
head -c 1048577 /dev/urandom >more
head -c 5000000 /dev/urandom >large
i=0
while [ $i -lt 40 ]; do
    head -c $((i * 777)) /dev/urandom >"small$i"
    i=$((i + 1))
done

for jobs in 1 6; do
    rm -f ../to/*
    "$copy" --jobs "$jobs" --progress ./* ../to >../out 2>../err || fail "copy ended with $?"
    for file in *; do
        cmp "$file" "../to/$file" || fail "$file differs"
    done
    cksum ./* >../wanted
    tr -d "\r" <../out | cmp ../wanted - || fail "the checksums are not those of cksum"
    tr '\r' '\n' <../err >../progress
    expect ../progress '^45 of 45 files, ([0-9.]+) of \1 MB$' # all bytes were counted
done

code=0
"$copy" one nothing "$work/to" large one "$work/from" >../out 2>../err || code=$?
[ "$code" -eq 1 ] || fail "onto itself gave $code"
expect ../err '^copy: nothing: open: no such file' '^copy: large: would be copied onto itself$' "^copy: $work/to: open: not supported"
cmp large ../to/large || fail "large was harmed"
[ -s one ] || fail "one was harmed"

code=0
"$copy" --jobs 0 one "$work/to" 2>../err || code=$?
[ "$code" -eq 2 ] || fail "a wrong number gave $code"
code=0
"$copy" one nowhere 2>../err || code=$?
[ "$code" -eq 2 ] || fail "no directory gave $code"
