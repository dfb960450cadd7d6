# SPDX-License-Identifier: MIT
#
# What every CMake consumer builds, however it came by the targets.

add_executable(app_cpp "${CMAKE_CURRENT_LIST_DIR}/main.cpp")
target_link_libraries(app_cpp PRIVATE weft::weft)

add_executable(app_static "${CMAKE_CURRENT_LIST_DIR}/main.cpp")
target_compile_features(app_static PRIVATE cxx_std_20)
target_link_libraries(app_static PRIVATE weft::static)

add_executable(app_c "${CMAKE_CURRENT_LIST_DIR}/main.c")
target_link_libraries(app_c PRIVATE weft::c)
