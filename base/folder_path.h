// SPDX-License-Identifier: Apache-2.0
// The path of a folder, in a form whose file name and parent are those of the folder.
#ifndef HONE_BASE_FOLDER_PATH_H_
#define HONE_BASE_FOLDER_PATH_H_

#include <filesystem>

namespace hone {

// Removes the slash that shells append when they complete a folder. For "farm/", std::filesystem gives an empty file
// name and the parent "farm".
inline std::filesystem::path FolderPath(const std::filesystem::path& given) {
  const std::filesystem::path normal = given.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace hone

#endif  // HONE_BASE_FOLDER_PATH_H_
