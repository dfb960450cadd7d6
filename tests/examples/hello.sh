#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/functions"
"$(program hello)" >"$work/out"
expect_text "$work/out" "hello, warp
hello, weft"
