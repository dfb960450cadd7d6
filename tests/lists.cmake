# SPDX-License-Identifier: MIT
#
# Compares the lists of tests/CMakeLists.txt (CPP, C, EXAMPLES: words) with the files that there are.

cmake_minimum_required(VERSION 3.25)

function(compare what listed pattern suffix)
    separate_arguments(listed)
    file(GLOB files RELATIVE "${CMAKE_CURRENT_LIST_DIR}" "${CMAKE_CURRENT_LIST_DIR}/${pattern}")
    foreach(file IN LISTS files)
        get_filename_component(name "${file}" NAME)
        string(REGEX REPLACE "${suffix}$" "" name "${name}")
        if(NOT name IN_LIST listed)
            message(SEND_ERROR "tests/${file} is not in the list of ${what} in tests/CMakeLists.txt")
        endif()
    endforeach()
endfunction()

compare("C++ tests" "${CPP}" "cpp/*_test.cpp" "_test\\.cpp")
compare("C tests" "${C}" "c/*.c" "_test\\.c")
compare("examples" "${EXAMPLES}" "examples/*.sh" "\\.sh")
