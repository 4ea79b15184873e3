# SPDX-License-Identifier: Apache-2.0
# Shared settings, and the three functions with which every room declares its targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
add_compile_options(-pthread)  # for all alike: sources share precompiled headers only when their flags agree

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # A precompiled header is a file of which ccache cannot see what was defined where it was used; nothing here redefines.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

# LLVM's linker takes half a second where GNU's takes half a minute, which reads all of libLLVM for each program.
find_program(HONE_LINKER ld.lld PATHS /usr/lib/llvm-19/bin NO_DEFAULT_PATH)
if(HONE_LINKER)
  cmake_path(GET HONE_LINKER PARENT_PATH folder)
  add_link_options(-fuse-ld=lld -B${folder})
endif()

# agent: hone-agent and what it is made of, for boards; without LLVM, XGBoost, ONNX and SQLite.
# runtime: base, the drivers and the runtime; needs nothing but a C++ compiler.
set(HONE_PARTS everything CACHE STRING "what is built: everything, agent, or runtime")
set_property(CACHE HONE_PARTS PROPERTY STRINGS everything agent runtime)
if(NOT HONE_PARTS MATCHES "^(everything|agent|runtime)$")
  message(FATAL_ERROR "HONE_PARTS is '${HONE_PARTS}': give everything, agent or runtime")
endif()
# Eight sources of a target are compiled as one: what they include is read once, and templates are instantiated once, in
# less than half the time. So what is in unnamed namespaces has a name of its own in the whole target
# (tests/lint/unnamed), and who takes one source of a library takes eight; neither holds where a target is ALONE. Boards
# build a part, and have little memory: they compile each source by itself.
if(HONE_PARTS STREQUAL everything)
  set(CMAKE_UNITY_BUILD ON CACHE BOOL "OFF: each source is compiled alone")
endif()
set(HONE_SANITIZE "" CACHE STRING "address or thread: build everything with that sanitizer; see also the preset fuzzers")
if(HONE_SANITIZE)
  add_compile_options(-fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HONE_SANITIZE})
endif()

# -Wrestrict and -Wmaybe-uninitialized are wrong about std::string and std::variant in GCC 12 (GCC bugs 105651, 105562).
set(HONE_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-restrict -Wno-maybe-uninitialized)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # of the preset fuzzers
  # libstdc++ of GCC 12 uses what it deprecates.
  list(APPEND HONE_WARNINGS -Wno-unknown-warning-option -Wno-deprecated-declarations)
endif()

# hone_precompiled_headers(NAME KIND library|executable HEADERS h... DEPS target... [OPTIONS o...]): headers of other
# projects, read once for all the libraries, binaries or tests that are declared with HONE_HEADERS_OF_LIBRARIES,
# HONE_HEADERS_OF_BINARIES or HONE_HEADERS_OF_TESTS set to NAME. Each source still includes what it uses: HONE_PARTS=agent
# builds without, and so does -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON.
function(hone_precompiled_headers name)
  cmake_parse_arguments(ARG "" "KIND" "HEADERS;DEPS;OPTIONS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "int main() { return 0; }\n")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  if(ARG_KIND STREQUAL executable)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
  else()
    add_library(${name} OBJECT ${source})
  endif()
  target_compile_options(${name} PRIVATE ${HONE_WARNINGS} ${ARG_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# Out of a precompiled header GCC 12 sees std::string's functions as ours, and is wrong about them (GCC bug 105329).
function(hone_reuse_headers name headers)
  target_precompile_headers(${name} REUSE_FROM ${headers})
  target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:${headers},COMPILE_DEFINITIONS>)
endfunction()

# What runs once or waits is compiled with: tests, mains, commands. What optimizing them takes is never won back.
set(HONE_GLUE_OPTIONS -O1)

# hone_library(NAME [GLUE] [ALONE] SOURCES a.cc b.cc [DEPS target...]): a static library with root-relative includes.
function(hone_library name)
  cmake_parse_arguments(ARG "GLUE;ALONE" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(ARG_ALONE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${HONE_WARNINGS})
  if(ARG_GLUE)
    target_compile_options(${name} PRIVATE ${HONE_GLUE_OPTIONS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  if(HONE_HEADERS_OF_LIBRARIES)
    hone_reuse_headers(${name} ${HONE_HEADERS_OF_LIBRARIES})
  endif()
endfunction()

# hone_binary(NAME SOURCES main.cc [DEPS target...] [HEADERS h]): glue around libraries; h: its precompiled headers, where
# they are not HONE_HEADERS_OF_BINARIES.
function(hone_binary name)
  cmake_parse_arguments(ARG "" "HEADERS" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${HONE_WARNINGS} ${HONE_GLUE_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS ${HONE_HEADERS_OF_BINARIES})
  endif()
  if(ARG_HEADERS)
    hone_reuse_headers(${name} ${ARG_HEADERS})
  endif()
endfunction()

# hone_test(NAME LABEL label [ALONE] SOURCES x_test.cc [DEPS target...]): one gtest binary, registered with ctest as NAME.
function(hone_test name)
  cmake_parse_arguments(ARG "ALONE" "LABEL" "SOURCES;DEPS" ${ARGN})
  find_package(GTest REQUIRED)
  hone_binary(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} GTest::gmock GTest::gtest_main
              HEADERS ${HONE_HEADERS_OF_TESTS})
  if(ARG_ALONE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}")
endfunction()
