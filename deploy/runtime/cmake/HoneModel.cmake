# SPDX-License-Identifier: Apache-2.0
# hone_add_model(TARGET MODEL.onnx LOCK hone.lock [NAME name] [TARGET spec...] [SHAPE name=1,3,224,224...]
#                [BIND name=values...] [OPERATORS file...] [LOOP_STEPS n] [FALLBACK onnxruntime] [DEPENDS file...])
#
# Compiles the model with exactly the schedules of the lock file (`hone records lock`) when the project is built. Needs
# no records and no network. The first argument is a target of the project. It gets
#   #include "NAME.h"   in C++: namespace NAME with a class Model, the inputs and outputs as typed members
#   <hone.h>            and the runtime linked
#   NAME.hone           the package, in CMAKE_CURRENT_BINARY_DIR; its path is appended to the target's property
#                       HONE_PACKAGES. Install it beside the program.
# NAME: by default the model's file name without .onnx. Give it if a project has one model several times, for example in
# different shapes. TARGET: which of the lock file's targets to compile for. SHAPE, BIND, OPERATORS, LOOP_STEPS,
# FALLBACK: the values and files with which the model was locked; a file in BIND or OPERATORS is relative to CMAKE_CURRENT_SOURCE_DIR, as the
# model is. DEPENDS: further files that the model reads, for example its external weights.
function(hone_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "LOCK;NAME;LOOP_STEPS;FALLBACK" "TARGET;SHAPE;BIND;OPERATORS;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hone_add_model(${target} ${model}) does not take: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_LOCK)
    message(FATAL_ERROR "hone_add_model(${target} ${model}) needs LOCK FILE; `hone records lock` makes one")
  endif()
  if(NOT HONE_EXECUTABLE)
    message(FATAL_ERROR "hone_add_model(${target} ${model}) needs the hone command; install it, or set HONE_EXECUTABLE")
  endif()
  get_filename_component(model "${model}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(lock "${ARG_LOCK}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(name "${model}" NAME_WLE)
  if(ARG_NAME)
    set(name "${ARG_NAME}")
  endif()
  # Two models of a folder would write the same files. Two models of a program would define the same namespace; the
  # names "a-b" and "a.b" give the same one.
  string(MAKE_C_IDENTIFIER "${name}" namespace)
  get_property(names DIRECTORY PROPERTY HONE_MODEL_NAMES)
  get_property(namespaces TARGET ${target} PROPERTY HONE_MODEL_NAMESPACES)
  if(name IN_LIST names OR namespace IN_LIST namespaces)
    message(FATAL_ERROR "hone_add_model(${target} ${model}): another model here is called ${name}, or ${namespace} in "
                        "C++, too; give one of them another name with NAME")
  endif()
  set_property(DIRECTORY APPEND PROPERTY HONE_MODEL_NAMES "${name}")
  set_property(TARGET ${target} APPEND PROPERTY HONE_MODEL_NAMESPACES "${namespace}")
  set(options)
  foreach(option TARGET SHAPE BIND OPERATORS LOOP_STEPS FALLBACK)
    string(TOLOWER "--${option}" flag)
    string(REPLACE "_" "-" flag "${flag}")
    foreach(value IN LISTS ARG_${option})
      list(APPEND options "${flag}" "${value}")
    endforeach()
  endforeach()
  foreach(value IN LISTS ARG_BIND)
    if(value MATCHES "=([^=]*\\.npy)$")
      get_filename_component(file "${CMAKE_MATCH_1}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
      list(APPEND ARG_DEPENDS "${file}")
    endif()
  endforeach()
  foreach(value IN LISTS ARG_OPERATORS)
    get_filename_component(file "${value}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND ARG_DEPENDS "${file}")
  endforeach()
  set(package "${CMAKE_CURRENT_BINARY_DIR}/${name}.hone")
  set(headers "${CMAKE_CURRENT_BINARY_DIR}/hone_models")
  file(MAKE_DIRECTORY "${headers}")
  add_custom_command(
    OUTPUT "${package}" "${headers}/${name}.h"
    COMMAND "${HONE_EXECUTABLE}" compile "${model}" --locked "${lock}" ${options} -o "${package}"
            --header "${headers}/${name}.h" --header-name "${name}"
    DEPENDS "${model}" "${lock}" "${HONE_EXECUTABLE}" ${ARG_DEPENDS}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Compiling ${name} with Hone"
    VERBATIM)
  target_sources(${target} PRIVATE "${headers}/${name}.h")
  # -iquote: only #include "NAME.h" finds the header. <features.h> stays the system's, even if a model has that name.
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-iquote${headers}>")
  # The compilers of other languages may not know that option.
  target_include_directories(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA,HIP,OBJCXX>:${headers}>")
  target_link_libraries(${target} PRIVATE Hone::runtime)
  set_property(TARGET ${target} APPEND PROPERTY HONE_PACKAGES "${package}")
endfunction()
