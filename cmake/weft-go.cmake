# SPDX-License-Identifier: MIT
#
# Builds the Go library. Nothing is downloaded at configure time; `go build` itself fetches the modules of go.sum if the
# module cache does not have them.
#
#   weft_find_go()                       sets WEFT_GO (checked) and weft_go_environment
#   weft_add_go_library(shared archive implib)  rules for libweft.so.X.Y.Z with its links, or for weft.dll with its import library and
#                                        weft.def, from which other tools make theirs; and for libweft.a
#
# Settings of the user: WEFT_GO, WEFT_GO_FLAGS (a list, passed to go build), WEFT_CGO_CFLAGS and WEFT_CGO_LDFLAGS.

macro(weft_find_go)
    find_program(WEFT_GO NAMES go HINTS /usr/local/go/bin /usr/lib/go/bin DOC "The go command that builds weft")
    file(STRINGS "${PROJECT_SOURCE_DIR}/go.mod" weft_go_wanted REGEX "^go [0-9.]+$")
    string(REPLACE "go " "" weft_go_wanted "${weft_go_wanted}")
    set(weft_go_help "Install Go ${weft_go_wanted} or newer from https://go.dev/dl, and put it in PATH or in /usr/local/go; or name "
        "it with -DWEFT_GO=/path/to/go. Without Go: -DWEFT_PREBUILT=DIR, where DIR is an installed weft ${WEFT_VERSION}.")
    string(CONCAT weft_go_help ${weft_go_help})
    if(NOT WEFT_GO)
        message(FATAL_ERROR "weft: Go was not found. ${weft_go_help}")
    endif()

    # In the user's home unless there is none, as in a packager's sandbox; then everything stays in the build tree.
    set(weft_go_environment GOTOOLCHAIN=local GOWORK=off GO111MODULE=on CGO_ENABLED=1 GOFLAGS=)
    if(NOT DEFINED ENV{HOME})
        if(NOT DEFINED ENV{GOCACHE})
            list(APPEND weft_go_environment "GOCACHE=${PROJECT_BINARY_DIR}/go/cache")
        endif()
        if(NOT DEFINED ENV{GOPATH} AND NOT DEFINED ENV{GOMODCACHE})
            list(APPEND weft_go_environment "GOPATH=${PROJECT_BINARY_DIR}/go/path" GOFLAGS=-modcacherw)
        endif()
    endif()

    if(CMAKE_CROSSCOMPILING)
        weft_find_go_target()
    endif()
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env ${weft_go_environment} "${WEFT_GO}" env GOVERSION
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" OUTPUT_VARIABLE weft_go_found ERROR_VARIABLE weft_go_error
        OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE weft_go_result)
    if(NOT weft_go_result EQUAL 0 OR NOT weft_go_found MATCHES "go([0-9]+\\.[0-9]+(\\.[0-9]+)?)")
        message(FATAL_ERROR "weft: ${WEFT_GO} does not tell its version (${weft_go_result}): "
            "${weft_go_found}${weft_go_error} ${weft_go_help}")
    endif()
    if(CMAKE_MATCH_1 VERSION_LESS weft_go_wanted)
        message(FATAL_ERROR "weft: ${WEFT_GO} is Go ${CMAKE_MATCH_1}, which is too old. ${weft_go_help}")
    endif()
    if(WIN32)
        set(weft_go_overlay "")
        set(weft_go_overlay_files "")
    else()
        weft_mask_go_signals()
    endif()
endmacro()

# What Go calls the system and the processor.
macro(weft_find_go_target)
    string(TOLOWER "${CMAKE_SYSTEM_NAME}" weft_go_system)
    string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" weft_go_processor)
    string(REGEX REPLACE "^x86_64$" "amd64" weft_go_processor "${weft_go_processor}")
    string(REGEX REPLACE "^aarch64$" "arm64" weft_go_processor "${weft_go_processor}")
    list(APPEND weft_go_environment "GOOS=${weft_go_system}" "GOARCH=${weft_go_processor}")
endmacro()

# Go's own threads take the signals of the thread that loads the library, and SIGCHLD and SIGPROF in any case: handlers of the host's would run
# on them, and a host that waits for its children by sigwait or signalfd would lose some. Go has no setting for this, so the library is built
# with copies of two files of Go's runtime, in each of which one line differs. docs/decisions/signals.md has the reasons. Sets weft_go_overlay,
# arguments of go build, and weft_go_overlay_files.
function(weft_mask_go_signals)
    set(weft_go_overlay "" PARENT_SCOPE)
    set(weft_go_overlay_files "" PARENT_SCOPE)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env ${weft_go_environment} "${WEFT_GO}" env GOROOT
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" OUTPUT_VARIABLE root ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(overlay "${PROJECT_BINARY_DIR}/go/_overlay") # a name that ./... passes over

    # The thread that starts the runtime begins with every signal blocked, and all others take their masks from it.
    set(create "err = _cgo_try_pthread_create(&p, &attr, func, arg);")
    string(CONCAT blocked "{ sigset_t all, before; sigfillset(&all); pthread_sigmask(SIG_SETMASK, &all, &before); "
        "${create} pthread_sigmask(SIG_SETMASK, &before, NULL); }")
    weft_change_go_file("${root}/src/runtime/cgo/gcc_libinit.c" "${overlay}/gcc_libinit.c" "${create}" "${blocked}" first)

    # Two signals that Go would unblock are left blocked.
    set(unblocked "if flags&_SigUnblock != 0 {")
    set(fewer "if flags&_SigUnblock != 0 && sig != _SIGCHLD && sig != _SIGPROF {")
    weft_change_go_file("${root}/src/runtime/signal_unix.go" "${overlay}/signal_unix.go" "${unblocked}" "${fewer}" second)

    if(NOT first OR NOT second)
        message(WARNING "weft: this Go's threads cannot be kept from taking signals; some that are meant for the program may reach them")
        return()
    endif()
    file(CONFIGURE OUTPUT "${overlay}/overlay.json" CONTENT "{\"Replace\": {${first}, ${second}}}" @ONLY)
    set(weft_go_overlay "-overlay=${overlay}/overlay.json" PARENT_SCOPE)
    set(weft_go_overlay_files "${overlay}/overlay.json" "${overlay}/gcc_libinit.c" "${overlay}/signal_unix.go" PARENT_SCOPE)
endfunction()

# Copies a file with one line changed, and sets result to the copy's entry in an overlay; to nothing if the line is not there exactly once.
function(weft_change_go_file from to old new result)
    set(${result} "" PARENT_SCOPE)
    if(NOT EXISTS "${from}")
        return()
    endif()
    file(READ "${from}" text)
    string(FIND "${text}" "${old}" first)
    string(FIND "${text}" "${old}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        return()
    endif()
    string(REPLACE "${old}" "${new}" text "${text}")
    string(REPLACE "#include <pthread.h>" "#include <pthread.h>\n#include <signal.h>" text "${text}")
    file(CONFIGURE OUTPUT "${to}" CONTENT "@text@" @ONLY) # writes only what differs
    set(${result} "\"${from}\": \"${to}\"" PARENT_SCOPE)
endfunction()

function(weft_add_go_library shared archive implib)
    set(source "${PROJECT_SOURCE_DIR}")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS
        "${source}/cancel/*.go" "${source}/core/*.go" "${source}/epoll/*.go" "${source}/iocp/*.go"
        "${source}/capi/*.go" "${source}/capi/*.c" "${source}/capi/*.h" "${source}/include/weft/c/*.h")
    list(FILTER sources EXCLUDE REGEX "_test\\.go$")
    list(APPEND sources "${source}/include/weft.h" "${source}/go.mod" "${source}/go.sum" "${WEFT_GO}" ${weft_go_overlay_files})

    # The go command knows the files of a package by their folder, so a change of the headers in include/ would leave it with objects from its
    # cache: their hash stands in the flags, which it does know.
    set(hashes "")
    file(GLOB headers CONFIGURE_DEPENDS "${source}/include/weft.h" "${source}/include/weft/c/*.h")
    set_property(DIRECTORY "${source}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
    foreach(header IN LISTS headers)
        file(SHA256 "${header}" hash)
        string(APPEND hashes "${hash}")
    endforeach()
    string(SHA256 hash "${hashes}")
    set(WEFT_CGO_CFLAGS "${WEFT_CGO_CFLAGS} -DWEFT_HEADERS=0x${hash}")

    # netgo: names are resolved by Go, and not by getaddrinfo, which would have to be linked to. Windows has its own way, by system calls.
    set(tags -tags=netgo)
    if(WIN32)
        set(tags "")
    endif()
    # -O2 -g stays: the default of cgo, which CGO_CFLAGS would otherwise replace.
    set(go "${CMAKE_COMMAND}" -E env ${weft_go_environment} "CC=${CMAKE_C_COMPILER}"
        "CGO_CFLAGS=-O2 -g ${WEFT_CGO_CFLAGS}" "CGO_LDFLAGS=-O2 -g ${WEFT_CGO_LDFLAGS}"
        "${WEFT_GO}" build ${tags} -trimpath -buildvcs=false ${weft_go_overlay} ${WEFT_GO_FLAGS})

    # The Go linker runs the C compiler in a folder of its own, so the paths of files are absolute; they
    # stand in quotes of their own because -ldflags and -extldflags are each split at spaces.
    get_filename_component(folder "${shared}" DIRECTORY)
    get_filename_component(file "${shared}" NAME)
    if(WIN32)
        weft_add_go_dll()
    else()
        weft_add_go_so()
    endif()

    string(REGEX REPLACE "\\.a$" ".h" header "${archive}")
    add_custom_command(OUTPUT "${archive}"
        COMMAND ${go} -buildmode=c-archive -ldflags=-buildid= -o "${archive}" ./capi/libweft
        COMMAND "${CMAKE_COMMAND}" -E rm -f "${header}"
        DEPENDS ${sources} WORKING_DIRECTORY "${source}" VERBATIM COMMENT "Go: libweft.a")
endfunction()

# Parts of weft_add_go_library.

macro(weft_add_go_so)
    set(soname "libweft.so.${WEFT_ABI_VERSION}")
    set(map "${source}/capi/weft.map")
    set(linker "-Wl,-soname,${soname} '-Wl,--version-script=${map}' -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete")
    string(REGEX REPLACE "\\.[^.]*$" ".h" header "${shared}")
    add_custom_command(OUTPUT "${shared}" "${folder}/${soname}" "${folder}/libweft.so"
        COMMAND ${go} -buildmode=c-shared "-ldflags=-buildid= \"-extldflags=${linker}\"" -o "${shared}" ./capi/libweft
        COMMAND "${CMAKE_COMMAND}" -E rm -f "${header}"
        COMMAND "${CMAKE_COMMAND}" -E create_symlink "${file}" "${folder}/${soname}"
        COMMAND "${CMAKE_COMMAND}" -E create_symlink "${soname}" "${folder}/libweft.so"
        DEPENDS ${sources} "${map}" WORKING_DIRECTORY "${source}" VERBATIM COMMENT "Go: ${file}")
endmacro()

# Go would pass the linker a list of exports of its own, unless it is told to export everything; the last word is then ours.
macro(weft_add_go_dll)
    get_filename_component(lib "${implib}" DIRECTORY)
    set(def "${lib}/weft.def")
    set(map "${source}/capi/weft.map")
    set_property(DIRECTORY "${source}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${map}")
    file(READ "${map}" exports)
    string(REGEX MATCHALL "\n +weft_[a-z0-9_]+" exports "${exports}")
    list(JOIN exports "" exports)
    file(CONFIGURE OUTPUT "${def}" CONTENT "LIBRARY ${file}\nEXPORTS@exports@\n" @ONLY)
    set(linker "-Wl,--export-all-symbols -Wl,--exclude-all-symbols -Wl,--no-insert-timestamp -static")
    string(APPEND linker " '-Wl,--out-implib,${implib}' '${def}'")
    string(REGEX REPLACE "\\.[^.]*$" ".h" header "${shared}")
    add_custom_command(OUTPUT "${shared}" "${implib}"
        COMMAND ${go} -buildmode=c-shared "-ldflags=-buildid= \"-extldflags=${linker}\"" -o "${shared}" ./capi/libweft
        COMMAND "${CMAKE_COMMAND}" -E rm -f "${header}"
        DEPENDS ${sources} "${def}" WORKING_DIRECTORY "${source}" VERBATIM COMMENT "Go: ${file}")
endmacro()
