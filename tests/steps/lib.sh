# SPDX-License-Identifier: MIT
#
# Read by the steps. A step starts in the project's root and ends with `summary`, whose line tests/run adds up.
set -u
cd "$(dirname "$0")/../.." || exit 1
. scripts/go.sh
root=$PWD
scale=${WEFT_TEST_SCALE:-1}
passed=0
failed=0

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAIL: $*"
}

# check WHAT COMMAND...: the command must succeed; what it prints is shown when it does not.
check() {
    check_what=$1
    shift
    if check_output=$("$@" 2>&1); then
        echo "ok: $check_what"
        pass
    else
        printf '%s\n' "$check_output"
        fail "$check_what"
    fi
}

# summary: the last line of a step. A step in which nothing was tested has failed.
summary() {
    [ "$passed" -gt 0 ] || [ "$failed" -gt 0 ] || fail "nothing was tested"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

# go_test ARGUMENTS...: `go test -v`, counted. A skipped test is a failed one.
go_test() {
    go_log=$(mktemp)
    go test -v -count=1 "$@" >"$go_log" 2>&1
    go_code=$?
    cat "$go_log"
    go_passed=$(grep -c '^--- PASS' "$go_log")
    go_failed=$(grep -cE '^--- (FAIL|SKIP)|^ +--- SKIP' "$go_log")
    rm -f "$go_log"
    passed=$((passed + go_passed))
    failed=$((failed + go_failed))
    if [ "$go_code" -ne 0 ] && [ "$go_failed" -eq 0 ]; then
        fail "go test $* ended with $go_code"
    fi
    [ "$((go_passed + go_failed))" -gt 0 ] || fail "go test $* ran nothing"
}

# ctest_preset NAME ARGUMENTS...: configures, builds and runs a preset, counted. A test that did not run is a failed one.
ctest_preset() {
    preset=$1
    shift
    if ! cmake --preset "$preset" -DCMAKE_COLOR_DIAGNOSTICS=OFF || ! cmake --build --preset "$preset" -j 2; then
        fail "build of preset $preset"
        return
    fi
    ctest_log=$(mktemp)
    ctest --test-dir "build/$preset" --no-tests=error --output-on-failure "$@" >"$ctest_log" 2>&1
    ctest_code=$?
    cat "$ctest_log"
    ctest_passed=$(grep -cE '^ *[0-9]+/[0-9]+ Test .* Passed ' "$ctest_log")
    ctest_failed=$(grep -cE '^ *[0-9]+/[0-9]+ Test .*(\*\*\*|Not Run)' "$ctest_log")
    rm -f "$ctest_log"
    passed=$((passed + ctest_passed))
    failed=$((failed + ctest_failed))
    if [ "$ctest_code" -ne 0 ] && [ "$ctest_failed" -eq 0 ]; then
        fail "ctest of preset $preset ended with $ctest_code"
    fi
}
