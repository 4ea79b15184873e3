// SPDX-License-Identifier: Apache-2.0
#include "base/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "base/digest.h"

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

absl::StatusOr<std::string> DigestOfFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(size_t{1} << 20);
  Sha256 sum;
  bool empty = true;
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    sum.Add({piece.data(), static_cast<size_t>(file.gcount())});
    empty = false;
  }
  if (empty || file.bad()) return absl::NotFoundError(errno != 0 ? std::strerror(errno) : "it is empty");
  return Hex(sum.Finish());
}

}  // namespace hone
