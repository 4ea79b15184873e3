// SPDX-License-Identifier: Apache-2.0
// An open file: its descriptor, closed by the destructor, and a path for libraries that open by path. Files in memory
// are MemoryFile (memory_file.h), which owns one of these.
#ifndef HONE_BASE_OPEN_FILE_H_
#define HONE_BASE_OPEN_FILE_H_

#include <unistd.h>

#include <string>
#include <utility>

namespace hone {

class OpenedFile {
 public:
  OpenedFile() = default;
  explicit OpenedFile(int descriptor) : descriptor_(descriptor) {}  // takes ownership; -1 = none
  OpenedFile(OpenedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenedFile& operator=(OpenedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int descriptor() const { return descriptor_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }  // within this process

 private:
  int descriptor_ = -1;
};

}  // namespace hone

#endif  // HONE_BASE_OPEN_FILE_H_
