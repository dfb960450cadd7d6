# SPDX-License-Identifier: MIT
#
# What `cmake --install` puts where. The prefix may be moved afterwards: no absolute path is written.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
set(weft_shared_dir "${CMAKE_INSTALL_LIBDIR}")
set(weft_shared_beside "${weft_lib}/${weft_soname}" "${weft_lib}/libweft.so")
if(WIN32)
    set(weft_shared_dir "${CMAKE_INSTALL_BINDIR}")
    set(weft_shared_beside "${weft_implib}" "${weft_lib}/weft.def")
endif()
install(FILES "${weft_shared}" DESTINATION "${weft_shared_dir}"
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(FILES ${weft_shared_beside} "${weft_archive}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

set(weft_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weft")
configure_package_config_file(cmake/weftConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/weftConfig.cmake"
    INSTALL_DESTINATION "${weft_package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR weft_shared_dir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/weftConfigVersion.cmake"
    VERSION "${WEFT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/weftConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/weftConfigVersion.cmake"
    cmake/weft-targets.cmake DESTINATION "${weft_package_dir}")

# pkg-config finds the prefix from the place of weft.pc itself.
file(RELATIVE_PATH weft_pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" weft_pc_prefix "${weft_pc_prefix}")
set(weft_pc_private "-pthread")
if(WIN32)
    set(weft_pc_private "-lsynchronization -lntdll -lws2_32 -lmswsock")
endif()
configure_file(cmake/weft.pc.in "${PROJECT_BINARY_DIR}/cmake/weft.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cmake/weft.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
