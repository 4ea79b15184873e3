# Shared settings, and the three functions with which every room declares its targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# agent: hone-agent and what it is made of, for boards; without LLVM, XGBoost, ONNX and SQLite.
# runtime: base, the drivers and the runtime; needs nothing but a C++ compiler.
set(HONE_PARTS everything CACHE STRING "what is built: everything, agent, or runtime")
set_property(CACHE HONE_PARTS PROPERTY STRINGS everything agent runtime)
if(NOT HONE_PARTS MATCHES "^(everything|agent|runtime)$")
  message(FATAL_ERROR "HONE_PARTS is '${HONE_PARTS}': give everything, agent or runtime")
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

# hone_library(NAME SOURCES a.cc b.cc [DEPS target...]): a static library with root-relative includes.
function(hone_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${HONE_WARNINGS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# hone_binary(NAME SOURCES main.cc [DEPS target...])
function(hone_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${HONE_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# hone_test(NAME LABEL label SOURCES x_test.cc [DEPS target...]): one gtest binary, registered with ctest as NAME.
function(hone_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPS" ${ARGN})
  find_package(GTest REQUIRED)
  hone_binary(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}")
endfunction()
