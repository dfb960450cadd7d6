# SPDX-License-Identifier: MIT
#
# Reads the version from the header, the only place where it stands. Sets WEFT_VERSION, WEFT_VERSION_MAJOR, _MINOR,
# _PATCH and WEFT_ABI_VERSION. It runs before project(), which wants the version.

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/weft/c/version.h" weft_version_lines REGEX "^#define WEFT_[A-Z_]+ [0-9]+$")

foreach(name VERSION_MAJOR VERSION_MINOR VERSION_PATCH ABI_VERSION)
    if(NOT "${weft_version_lines}" MATCHES "#define WEFT_${name} ([0-9]+)")
        message(FATAL_ERROR "weft: WEFT_${name} is not in include/weft/c/version.h")
    endif()
    set(WEFT_${name} "${CMAKE_MATCH_1}")
endforeach()

set(WEFT_VERSION "${WEFT_VERSION_MAJOR}.${WEFT_VERSION_MINOR}.${WEFT_VERSION_PATCH}")
unset(weft_version_lines)
