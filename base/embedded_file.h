// SPDX-License-Identifier: Apache-2.0
// A file that was compiled into the program by cmake/EmbedFolder.cmake, such as a page of the dashboard.
#ifndef HONE_BASE_EMBEDDED_FILE_H_
#define HONE_BASE_EMBEDDED_FILE_H_

#include <string_view>

namespace hone {

// Both views are valid as long as the program runs.
struct EmbeddedFile {
  std::string_view name;  // path in its folder: "assets/index-3f2a.js"; a name with ".gz" appended is the gzip of that
  std::string_view bytes;
};

}  // namespace hone

#endif  // HONE_BASE_EMBEDDED_FILE_H_
