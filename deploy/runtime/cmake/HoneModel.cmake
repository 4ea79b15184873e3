# hone_add_model(TARGET MODEL.onnx LOCK hone.lock [TARGET spec...] [SHAPE name=1,3,224,224...] [BIND name=values...]
#                [DEPENDS file...])
#
# Compiles the model with exactly the schedules of the lock file (`hone records lock`) when the project is built: no
# records and no network are needed. The first argument is a target of the project. It gets
#   #include "NAME.h"   namespace NAME with a class Model: the inputs and outputs as typed members
#   <hone.h>            and the runtime linked
#   NAME.hone           the package, in CMAKE_CURRENT_BINARY_DIR and in the target's property HONE_PACKAGES, to be
#                       installed beside the program
# NAME is the model's file name without .onnx. TARGET picks among the lock file's targets; SHAPE and BIND are those that
# the model was locked with. DEPENDS names what the model reads besides, say its external weights.
function(hone_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "LOCK" "TARGET;SHAPE;BIND;DEPENDS")
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
  set(options)
  foreach(option TARGET SHAPE BIND)
    string(TOLOWER "--${option}" flag)
    foreach(value IN LISTS ARG_${option})
      list(APPEND options "${flag}" "${value}")
    endforeach()
  endforeach()
  set(package "${CMAKE_CURRENT_BINARY_DIR}/${name}.hone")
  set(headers "${CMAKE_CURRENT_BINARY_DIR}/hone_models")
  file(MAKE_DIRECTORY "${headers}")
  add_custom_command(
    OUTPUT "${package}" "${headers}/${name}.h"
    COMMAND "${HONE_EXECUTABLE}" compile "${model}" --locked "${lock}" ${options} -o "${package}"
            --header "${headers}/${name}.h"
    DEPENDS "${model}" "${lock}" "${HONE_EXECUTABLE}" ${ARG_DEPENDS}
    COMMENT "Compiling ${name} with Hone"
    VERBATIM)
  target_sources(${target} PRIVATE "${headers}/${name}.h")
  target_include_directories(${target} PRIVATE "${headers}")
  target_link_libraries(${target} PRIVATE Hone::runtime)
  set_property(TARGET ${target} APPEND PROPERTY HONE_PACKAGES "${package}")
endfunction()
