# SPDX-License-Identifier: MIT
#
# The targets that users link. This one file defines them for the build tree (add_subdirectory, FetchContent) and, installed
# beside weftConfig.cmake, for find_package: so they cannot differ.
#
#   weft::c       the C interface, shared library
#   weft::weft    the C++20 layer, headers only; links weft::c
#   weft::static  the same library as an archive, with the C and C++ headers; instead of weft::c, not beside it

# weft_define_targets(INCLUDE <dir> SHARED <file> [SONAME <name>] [IMPLIB <file>] [STATIC <file>] [GLOBAL])
function(weft_define_targets)
    cmake_parse_arguments(PARSE_ARGV 0 arg "GLOBAL" "INCLUDE;SHARED;SONAME;IMPLIB;STATIC" "")
    set(scope "")
    if(arg_GLOBAL)
        set(scope GLOBAL)
    endif()

    add_library(weft::c SHARED IMPORTED ${scope})
    set_target_properties(weft::c PROPERTIES
        IMPORTED_LOCATION "${arg_SHARED}"
        INTERFACE_INCLUDE_DIRECTORIES "${arg_INCLUDE}")
    if(arg_SONAME)
        set_target_properties(weft::c PROPERTIES IMPORTED_SONAME "${arg_SONAME}")
    endif()
    if(arg_IMPLIB)
        set_target_properties(weft::c PROPERTIES IMPORTED_IMPLIB "${arg_IMPLIB}")
    endif()

    add_library(weft::weft INTERFACE IMPORTED ${scope})
    set_target_properties(weft::weft PROPERTIES
        INTERFACE_LINK_LIBRARIES weft::c
        INTERFACE_COMPILE_FEATURES cxx_std_20)

    if(arg_STATIC)
        add_library(weft::static STATIC IMPORTED ${scope})
        set_target_properties(weft::static PROPERTIES
            IMPORTED_LOCATION "${arg_STATIC}"
            IMPORTED_LINK_INTERFACE_LANGUAGES C
            INTERFACE_INCLUDE_DIRECTORIES "${arg_INCLUDE}"
            INTERFACE_COMPILE_DEFINITIONS WEFT_STATIC)
        if(WIN32)
            set_target_properties(weft::static PROPERTIES INTERFACE_LINK_LIBRARIES "synchronization;ntdll;ws2_32;mswsock")
        else()
            set_target_properties(weft::static PROPERTIES INTERFACE_LINK_OPTIONS -pthread)
        endif()
    endif()
endfunction()
