#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/functions"
"$(program cancellation)" >"$work/out"
expect_text "$work/out" "  slow has cleaned up
timeout wins: timed out
  fast has cleaned up
timeout loses: 42
  hare has cleaned up
  tortoise has cleaned up
race: number 0 wins with 42
by hand: cancelled after some rounds"
