// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/kernel_abi.h"

namespace hone::runtime {

Mapping::~Mapping() {
  if (start_ != nullptr) munmap(data() - reach_, bytes_ + 2 * reach_);
}

Fault Mapping::File(const std::string& path, Mapping* mapping) {
  // O_NONBLOCK: else opening a FIFO would wait until another process opens it for writing.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return IoError("cannot open package '" + path + "': " + std::strerror(errno));
  const Fault fault = OpenFile(fd, "package '" + path + "'", mapping);
  close(fd);  // the mapping keeps the file
  return fault;
}

Fault Mapping::OpenFile(int fd, const std::string& name, Mapping* mapping) {
  struct stat status;
  if (fstat(fd, &status) != 0) return IoError("cannot look at " + name + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    return IoError(name + " is not a regular file; give the file that `hone compile` wrote");
  }
  if (static_cast<uint64_t>(status.st_size) > std::numeric_limits<size_t>::max()) {
    return IoError(name + " is larger than the address space");
  }
  Mapping result;
  if (status.st_size > 0) {
    const size_t bytes = static_cast<size_t>(status.st_size);
    void* start = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (start == MAP_FAILED) return IoError("cannot map " + name + ": " + std::strerror(errno));
    result.start_ = start;
    result.bytes_ = bytes;
  }
  *mapping = std::move(result);
  return {};
}

Fault Mapping::Pages(uint64_t bytes, const std::string& purpose, Mapping* mapping) {
  Mapping result;
  if (bytes > 0) {
    const std::string what = "cannot allocate " + std::to_string(bytes) + " bytes for " + purpose;
    constexpr size_t kReach = HONE_REACH_BYTES, kPage = 4096;
    if (bytes > std::numeric_limits<size_t>::max() - 2 * kReach - kPage)
      return OutOfMemory(what + ": more than the address space");
    const size_t mapped = static_cast<size_t>(bytes) + 2 * kReach;
    void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return OutOfMemory(what + ": " + std::strerror(errno));
    result.start_ = static_cast<uint8_t*>(start) + kReach;
    result.bytes_ = static_cast<size_t>(bytes);
    result.reach_ = kReach;
    constexpr size_t kHugePage = size_t{2} << 20;
    if (bytes >= kHugePage) madvise(result.start_, result.bytes_, MADV_HUGEPAGE);  // may fail: only speed depends on it
    // Reads every page on both sides once, because the system maps a page when it is first accessed. Pages that are
    // only read all share one physical page of zeros.
    for (size_t at = 0; at < kReach; at += kPage) {
      static_cast<void>(*static_cast<volatile const uint8_t*>(result.data() - kReach + at));
      static_cast<void>(*static_cast<volatile const uint8_t*>(result.data() + (mapped - kReach - 1) - at));
    }
  }
  *mapping = std::move(result);
  return {};
}

}  // namespace hone::runtime
