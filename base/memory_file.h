// SPDX-License-Identifier: Apache-2.0
// Files in memory (memfd). The launcher of the agent and its children share their inputs and results by descriptor; the
// linker of kernels takes its objects by path. The size of a file is sealed, because a process that has mapped a file
// would crash if another process made it shorter. Not for the runtime, which links no absl: see
// deploy/runtime/code_object.cc.
#ifndef HONE_BASE_MEMORY_FILE_H_
#define HONE_BASE_MEMORY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/open_file.h"

namespace hone {

// Whether an object of this process can have so many bytes. Sizes in messages have 64 bits on 32-bit systems, too.
constexpr bool IsAddressable(int64_t bytes) { return bytes >= 0 && bytes <= PTRDIFF_MAX; }

// Mapped memory of this process; the destructor unmaps it.
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

// Maps a whole open file for reading. The mapping stays valid after the file is closed. kResourceExhausted: no memory,
// or the file cannot be mapped, as a pipe.
absl::StatusOr<Mapping> MapFile(int descriptor);

class MemoryFile : public OpenedFile {
 public:
  enum class Access { kRead, kReadAndWrite };

  // A file of `bytes` zeros. kResourceExhausted: no memory, or no descriptor.
  static absl::StatusOr<MemoryFile> Create(const char* name, int64_t bytes);
  // A sealed, read-only copy of `bytes`. Errors as Create.
  static absl::StatusOr<MemoryFile> Holding(const char* name, std::string_view bytes);
  using OpenedFile::OpenedFile;

  // Maps the whole file, shared with every process that maps it. The mapping stays valid after the file is closed.
  // kResourceExhausted: no memory.
  absl::StatusOr<Mapping> Map(Access access) const;
  // Maps the first `bytes` for reading and writing; the file must have as many.
  absl::StatusOr<Mapping> MapFirst(size_t bytes) const;
  // Seals the contents for ever and for all processes. kUnavailable: the file is mapped for writing.
  absl::Status MakeReadOnly() const;
};

}  // namespace hone

#endif  // HONE_BASE_MEMORY_FILE_H_
