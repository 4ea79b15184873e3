// SPDX-License-Identifier: Apache-2.0
#include "base/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/status.h"
#include "base/write_all.h"

namespace hone {

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

absl::StatusOr<MemoryFile> MemoryFile::Create(const char* name, int64_t bytes) {
  MemoryFile file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.descriptor_ >= 0 && ftruncate(file.descriptor_, bytes) == 0 &&
      fcntl(file.descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    return file;
  }
  return absl::ResourceExhaustedError(fmt::format("no memory for {} ({} bytes): {}", name, bytes, strerror(errno)));
}

absl::StatusOr<MemoryFile> MemoryFile::Holding(const char* name, std::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(MemoryFile file, Create(name, static_cast<int64_t>(bytes.size())));
  if (!WriteAll(file.descriptor_, bytes)) {
    return absl::ResourceExhaustedError(fmt::format("cannot store {}: {}", name, strerror(errno)));
  }
  HONE_RETURN_IF_ERROR(file.MakeReadOnly());
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<Mapping> MemoryFile::Map(Access access) const {
  struct stat facts{};
  if (fstat(descriptor_, &facts) != 0) {
    return absl::ResourceExhaustedError(fmt::format("cannot map a memory file: {}", strerror(errno)));
  }
  if (!IsAddressable(facts.st_size)) {
    return absl::ResourceExhaustedError(
        fmt::format("no memory for {} bytes: more than the address space", static_cast<int64_t>(facts.st_size)));
  }
  const auto bytes = static_cast<size_t>(facts.st_size);
  if (bytes == 0) return Mapping();
  const bool writes = access == Access::kReadAndWrite;
  void* const data = mmap(nullptr, bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ,
                          writes ? MAP_SHARED : MAP_PRIVATE, descriptor_, 0);
  if (data != MAP_FAILED) return Mapping(static_cast<char*>(data), bytes);
  return absl::ResourceExhaustedError(fmt::format("no memory for {} bytes: {}", bytes, strerror(errno)));
}

absl::Status MemoryFile::MakeReadOnly() const {
  if (fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE) == 0) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("cannot seal a memory file: {}", strerror(errno)));
}

}  // namespace hone
