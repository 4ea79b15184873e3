// SPDX-License-Identifier: Apache-2.0
// Whether a path of another program's message stays in the folder that it is relative to.
#ifndef HONE_BASE_INNER_PATH_H_
#define HONE_BASE_INNER_PATH_H_

#include <filesystem>
#include <string_view>

namespace hone {

// True for names separated by single '/', none of them "." or "..": "model.onnx", "weights/a.bin". No links are
// followed.
inline bool IsInnerPath(std::string_view text) {
  const std::filesystem::path path(text);
  const bool plain = path.lexically_normal().native() == text && path.has_filename() && path.filename() != ".";
  return plain && path.is_relative() && *path.begin() != ".." && text.find('\0') == std::string_view::npos;
}

}  // namespace hone

#endif  // HONE_BASE_INNER_PATH_H_
