# SPDX-License-Identifier: Apache-2.0
# Settings of all targets, and the functions with which every room declares its targets: hone_library, hone_binary, hone_test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
add_compile_options(-pthread)  # for all targets, because they share precompiled headers only if their flags are equal
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  # 64-bit file sizes. Not _TIME_BITS=64: Debian 12's libraries for 32-bit Arm are built with 32-bit times, and glibc 2.31 has
  # no others.
  add_compile_definitions(_FILE_OFFSET_BITS=64)
  add_compile_options(-Wno-psabi)  # GCC's notes that 32-bit Arm passes some parameters otherwise than before GCC 7
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # ccache cannot see which macros were defined before a precompiled header was used. No source here defines any.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

# LLVM's linker takes half a second for a program. GNU's takes half a minute, because it reads all of libLLVM.
find_program(HONE_LINKER ld.lld PATHS /usr/lib/llvm-19/bin NO_DEFAULT_PATH)
if(HONE_LINKER)
  cmake_path(GET HONE_LINKER PARENT_PATH folder)
  add_link_options(-fuse-ld=lld -B${folder})
endif()

# agent: hone-agent and its libraries, for boards; needs no LLVM, XGBoost, ONNX and SQLite.
# runtime: base, the drivers and the runtime; needs only a C++ compiler.
set(HONE_PARTS everything CACHE STRING "which part is built: everything, agent, or runtime")
set_property(CACHE HONE_PARTS PROPERTY STRINGS everything agent runtime)
if(NOT HONE_PARTS MATCHES "^(everything|agent|runtime)$")
  message(FATAL_ERROR "HONE_PARTS is '${HONE_PARTS}': give everything, agent or runtime")
endif()
# Unity build: eight sources of a target are compiled as one, in less than half the time, because their headers are read once and
# their templates instantiated once. Therefore names in unnamed namespaces must be unique within a target (tests/lint/unnamed),
# and a program that links one source of a library links eight. Targets marked ALONE are not built so, and neither are boards,
# because they have little memory.
if(HONE_PARTS STREQUAL everything)
  set(CMAKE_UNITY_BUILD ON CACHE BOOL "OFF: each source is compiled alone")
  # GCC collects its garbage whenever 128 MB have grown to twice as much, and then walks the precompiled headers too, which alone
  # are larger. Not to do so takes 10 to 20 percent less time and 25 percent more memory (1.3 GB for the largest source).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=600000>)
  endif()
endif()
set(HONE_SANITIZE "" CACHE STRING "address or thread: build everything with that sanitizer; see also the preset fuzzers")
if(HONE_SANITIZE)
  add_compile_options(-fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HONE_SANITIZE})
endif()

# GCC 12 gives false warnings of -Wrestrict and -Wmaybe-uninitialized for std::string and std::variant (GCC bugs 105651, 105562).
set(HONE_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-restrict -Wno-maybe-uninitialized)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # the preset fuzzers
  # The headers of libstdc++ 12 use functions that they declare as deprecated.
  list(APPEND HONE_WARNINGS -Wno-unknown-warning-option -Wno-deprecated-declarations)
endif()

# hone_precompiled_headers(NAME KIND library|executable HEADERS h... DEPS target... [OPTIONS o...]): precompiles headers of
# other projects. Targets that are declared while HONE_HEADERS_OF_LIBRARIES, HONE_HEADERS_OF_BINARIES or HONE_HEADERS_OF_TESTS
# is NAME use them. Sources must still include each header that they use, because HONE_PARTS=agent and
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON build without precompiled headers.
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

# hone_reuse_headers(NAME HEADERS): compiles the target NAME with the precompiled headers HEADERS. GCC 12 gives false warnings for
# std::string from a precompiled header, because it takes its functions for code of this project (GCC bug 105329).
function(hone_reuse_headers name headers)
  target_precompile_headers(${name} REUSE_FROM ${headers})
  target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:${headers},COMPILE_DEFINITIONS>)
endfunction()

# Options for code that runs once or waits: tests, main functions, commands. More optimization costs more time than it saves.
set(HONE_GLUE_OPTIONS -O1)

# hone_library(NAME [GLUE] [ALONE] SOURCES a.cc b.cc [DEPS target...]): declares a static library. Includes are relative to the
# root of the repository. GLUE compiles with HONE_GLUE_OPTIONS, ALONE compiles each source by itself.
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

# hone_binary(NAME SOURCES main.cc [DEPS target...] [HEADERS h]): declares a program. It uses the precompiled headers h, or
# HONE_HEADERS_OF_BINARIES without h.
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

# hone_test(NAME LABEL label [ALONE] SOURCES x_test.cc [DEPS target...]): declares a GoogleTest program, which ctest runs as NAME.
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
