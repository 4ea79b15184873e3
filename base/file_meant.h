// SPDX-License-Identifier: Apache-2.0
// Which file a path means: links are followed, also to what is not there yet, so that one file has one name.
#ifndef HONE_BASE_FILE_MEANT_H_
#define HONE_BASE_FILE_MEANT_H_

#include <filesystem>
#include <system_error>

namespace hone {

// What the path is a link to, in the end; it need not be there. std::filesystem stops at a link to nothing.
inline std::filesystem::path FollowLinks(std::filesystem::path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(path, error); ++links) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

// The same by its whole name; the path itself where it has none, as in a folder that may not be read.
inline std::filesystem::path FileMeant(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path followed = FollowLinks(path);
  const std::filesystem::path whole =
      std::filesystem::weakly_canonical(std::filesystem::absolute(followed, error), error);
  return error ? followed : whole;
}

}  // namespace hone

#endif  // HONE_BASE_FILE_MEANT_H_
