// SPDX-License-Identifier: Apache-2.0
#include "base/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace hone {

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  errno = 0;  // reading an empty file fails without setting errno
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf())) {
    return absl::NotFoundError(errno != 0 ? std::strerror(errno) : "it is empty");
  }
  return std::move(content).str();
}

}  // namespace hone
