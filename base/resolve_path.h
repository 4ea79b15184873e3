// SPDX-License-Identifier: Apache-2.0
// The file that a path refers to after all symbolic links, even if that file does not exist yet. Two paths to the same
// file give the same result, so that they can be compared.
#ifndef HONE_BASE_RESOLVE_PATH_H_
#define HONE_BASE_RESOLVE_PATH_H_

#include <filesystem>
#include <system_error>

namespace hone {

// Follows the links of the path's last component until it is no link. The result need not exist, which is why this does
// not use std::filesystem::canonical: that function fails at a link to a missing file.
inline std::filesystem::path FollowLinks(std::filesystem::path path) {
  constexpr int kLinksMax = 40;  // as in Linux; ends the loop for links that form a cycle
  std::error_code error;
  for (int links = 0; links < kLinksMax && std::filesystem::is_symlink(path, error); ++links) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

// As FollowLinks, and absolute, with the links of all folders resolved. Returns the result of FollowLinks if the system
// refuses, for example because a folder may not be read.
inline std::filesystem::path ResolvePath(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path followed = FollowLinks(path);
  const std::filesystem::path whole =
      std::filesystem::weakly_canonical(std::filesystem::absolute(followed, error), error);
  return error ? followed : whole;
}

}  // namespace hone

#endif  // HONE_BASE_RESOLVE_PATH_H_
