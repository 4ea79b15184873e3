// SPDX-License-Identifier: Apache-2.0
// A file that is inside the program, as it was when the program was built: cmake/EmbedFolder.cmake puts it there.
#ifndef HONE_BASE_EMBEDDED_FILE_H_
#define HONE_BASE_EMBEDDED_FILE_H_

#include <string_view>

namespace hone {

// Both live as long as the program.
struct EmbeddedFile {
  std::string_view name;  // in its folder: "assets/index-3f2a.js"; with ".gz" behind it, the same compressed
  std::string_view bytes;
};

}  // namespace hone

#endif  // HONE_BASE_EMBEDDED_FILE_H_
