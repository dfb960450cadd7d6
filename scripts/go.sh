# SPDX-License-Identifier: MIT
#
# Read by other scripts, from the project's root: puts Go into PATH, or says what is needed and ends.

command -v go >/dev/null || PATH="$PATH:/usr/local/go/bin"
export GOTOOLCHAIN=local GOWORK=off GOFLAGS=-buildvcs=false
go_wanted=$(sed -n 's/^go //p' go.mod)
go_found=$(go env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//') || true
if [ "$(printf '%s\n' "$go_wanted" "${go_found:-0}" | sort -V | head -n 1)" != "$go_wanted" ]; then
    echo "weft needs Go $go_wanted or newer in PATH or in /usr/local/go/bin; found: ${go_found:-none}." >&2
    echo "Get it from https://go.dev/dl and unpack it with: tar -C /usr/local -xzf go$go_wanted.linux-ARCH.tar.gz" >&2
    exit 1
fi
