// SPDX-License-Identifier: MIT
//
// The main function of all C++ tests. Each test file is one noun of include/weft.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
