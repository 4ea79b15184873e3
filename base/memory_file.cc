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

namespace {

absl::StatusOr<Mapping> Map(int descriptor, size_t bytes, int protection, int sharing) {
  if (bytes == 0) return Mapping();
  void* const data = mmap(nullptr, bytes, protection, sharing, descriptor, 0);
  if (data != MAP_FAILED) return Mapping(static_cast<char*>(data), bytes);
  return absl::ResourceExhaustedError(fmt::format("no memory for {} bytes: {}", bytes, strerror(errno)));
}

absl::StatusOr<Mapping> MapAll(int descriptor, int protection, int sharing) {
  struct stat facts{};
  if (fstat(descriptor, &facts) != 0) {
    return absl::ResourceExhaustedError(fmt::format("cannot map a file: {}", strerror(errno)));
  }
  if (!IsAddressable(facts.st_size)) {
    return absl::ResourceExhaustedError(
        fmt::format("no memory for {} bytes: more than the address space", static_cast<int64_t>(facts.st_size)));
  }
  return Map(descriptor, static_cast<size_t>(facts.st_size), protection, sharing);
}

}  // namespace

absl::StatusOr<Mapping> MapFile(int descriptor) { return MapAll(descriptor, PROT_READ, MAP_PRIVATE); }

absl::StatusOr<MemoryFile> MemoryFile::Create(const char* name, int64_t bytes) {
  MemoryFile file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.descriptor() >= 0 && ftruncate(file.descriptor(), bytes) == 0 &&
      fcntl(file.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    return file;
  }
  return absl::ResourceExhaustedError(fmt::format("no memory for {} ({} bytes): {}", name, bytes, strerror(errno)));
}

absl::StatusOr<MemoryFile> MemoryFile::Holding(const char* name, std::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(MemoryFile file, Create(name, static_cast<int64_t>(bytes.size())));
  if (!WriteAll(file.descriptor(), bytes)) {
    return absl::ResourceExhaustedError(fmt::format("cannot store {}: {}", name, strerror(errno)));
  }
  HONE_RETURN_IF_ERROR(file.MakeReadOnly());
  return file;
}

absl::StatusOr<Mapping> MemoryFile::Map(Access access) const {
  return access == Access::kReadAndWrite ? MapAll(descriptor(), PROT_READ | PROT_WRITE, MAP_SHARED)
                                         : MapFile(descriptor());
}

absl::StatusOr<Mapping> MemoryFile::MapFirst(size_t bytes) const {
  return hone::Map(descriptor(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED);
}

absl::Status MemoryFile::MakeReadOnly() const {
  if (fcntl(descriptor(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE) == 0) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("cannot seal a memory file: {}", strerror(errno)));
}

}  // namespace hone
