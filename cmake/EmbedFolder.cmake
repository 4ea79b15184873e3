# SPDX-License-Identifier: Apache-2.0
# hone_embedded_folder(NAME FOLDER folder FUNCTION name [COMPRESS]): declares a library that contains all files of a folder.
# hone::FUNCTION() returns them (base/embedded_file.h); it returns no file if the folder is missing or empty. With COMPRESS the
# library contains each file a second time, compressed, as FILE.gz.
function(hone_embedded_folder name)
  cmake_parse_arguments(ARG "COMPRESS" "FOLDER;FUNCTION" "" ${ARGN})
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${ARG_FOLDER} ${ARG_FOLDER}/*)
  list(SORT files)
  set(bytes "")
  set(declared "")
  set(listed "")
  set(paths "")
  set(number 0)
  list(TRANSFORM files PREPEND ${ARG_FOLDER}/ OUTPUT_VARIABLE sources)
  if(ARG_COMPRESS)
    find_program(HONE_GZIP gzip REQUIRED)
    foreach(file IN LISTS files)
      set(compressed ${CMAKE_CURRENT_BINARY_DIR}/${name}/${file}.gz)
      get_filename_component(folder ${compressed} DIRECTORY)
      file(MAKE_DIRECTORY ${folder})
      # -n leaves out name and time, so that the same file gives the same program.
      add_custom_command(OUTPUT ${compressed} DEPENDS ${ARG_FOLDER}/${file}
                         COMMAND ${HONE_GZIP} -9nc ${ARG_FOLDER}/${file} > ${compressed} VERBATIM)
      list(APPEND sources ${compressed})
    endforeach()
    list(TRANSFORM files APPEND .gz OUTPUT_VARIABLE compressed_files)
    list(APPEND files ${compressed_files})
  endif()
  foreach(file source_file IN ZIP_LISTS files sources)
    set(symbol hone_${name}_${number})
    math(EXPR number "${number} + 1")
    string(APPEND bytes "    \"${symbol}_begin: .incbin \\\"${source_file}\\\"\\n${symbol}_end: .byte 0\\n\"\n")
    string(APPEND declared "extern \"C\" const char ${symbol}_begin[], ${symbol}_end[];\n")
    string(APPEND listed "      {\"${file}\", std::string_view(${symbol}_begin, static_cast<size_t>(${symbol}_end - ${symbol}_begin))},\n")
    list(APPEND paths ${source_file})
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
#include <vector>

#include "base/embedded_file.h"

asm(".section .rodata\n"
@bytes@    ".previous\n");
@declared@
namespace hone {
const std::vector<EmbeddedFile>& @ARG_FUNCTION@() {
  static const std::vector<EmbeddedFile> files = {
@listed@  };
  return files;
}
}  // namespace hone
]])
  # Not in a unity build, because CMake then ignores OBJECT_DEPENDS.
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${paths}" SKIP_UNITY_BUILD_INCLUSION ON)
  hone_library(${name} SOURCES ${source})
endfunction()
