// SPDX-License-Identifier: Apache-2.0
// The path of a folder as its name is made longer or its parent is asked for.
#ifndef HONE_BASE_FOLDER_PATH_H_
#define HONE_BASE_FOLDER_PATH_H_

#include <filesystem>

namespace hone {

// Without a slash at its end, as shells complete it: "farm/" has an empty name, and "farm" as its parent.
inline std::filesystem::path FolderPath(const std::filesystem::path& given) {
  const std::filesystem::path normal = given.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace hone

#endif  // HONE_BASE_FOLDER_PATH_H_
