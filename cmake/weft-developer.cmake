# SPDX-License-Identifier: MIT
#
# What tests and examples of this project share; users never see it.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# weft's headers are our own here, not a system's: their warnings count.
set(CMAKE_NO_SYSTEM_FROM_IMPORTED ON)

# Tests assert in every build type.
foreach(type RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${type} "${CMAKE_C_FLAGS_${type}}")
    string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${type} "${CMAKE_CXX_FLAGS_${type}}")
endforeach()

if(WEFT_DEVELOPER)
    add_compile_options(-Wall -Wextra -pedantic -Werror)
endif()

# Seconds that a test may take; WEFT_TEST_SCALE multiplies them, as it does the amount of work in the tests.
set(WEFT_TEST_SCALE 1)
if("$ENV{WEFT_TEST_SCALE}" MATCHES "^[1-9][0-9]*$")
    set(WEFT_TEST_SCALE "$ENV{WEFT_TEST_SCALE}")
endif()
math(EXPR WEFT_TEST_TIMEOUT "60 * ${WEFT_TEST_SCALE}")
