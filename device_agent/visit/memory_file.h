// SPDX-License-Identifier: Apache-2.0
// Files of memory that the launcher and its children share by their descriptors: what a child is given, and where it
// shows what it has found. Of a fixed size, so that nobody takes memory away from who has mapped it.
#ifndef HONE_DEVICE_AGENT_VISIT_MEMORY_FILE_H_
#define HONE_DEVICE_AGENT_VISIT_MEMORY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

// Memory of this process, which it gives back.
class Mapping {
 public:
  Mapping() = default;
  Mapping(char* data, size_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  std::string_view view() const { return {data_, bytes_}; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

class MemoryFile {
 public:
  enum class Access { kRead, kReadAndWrite };

  // `bytes` zeros. kResourceExhausted: no memory, or no descriptor.
  static absl::StatusOr<MemoryFile> Create(const char* name, int64_t bytes);
  // A copy of `bytes` that nobody can change. Errors as of Create.
  static absl::StatusOr<MemoryFile> Holding(const char* name, std::string_view bytes);
  MemoryFile() = default;
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}  // takes it over
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  int descriptor() const { return descriptor_; }  // -1: of no file
  // All of it; kReadAndWrite for everybody who maps it so. Lives on without the file. kResourceExhausted: no memory.
  absl::StatusOr<Mapping> Map(Access access) const;
  // For ever and for everybody. Not while it is mapped to be written: kUnavailable.
  absl::Status MakeReadOnly() const;

 private:
  int descriptor_ = -1;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_MEMORY_FILE_H_
