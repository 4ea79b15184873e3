// SPDX-License-Identifier: Apache-2.0
// A Mapping owns memory of the runtime: a file mapped for reading, or zeroed pages such as the arena.
//
// Zeroed pages have HONE_REACH_BYTES of readable memory on each side. Kernels issue masked loads beyond the edge of a
// tensor whose elements are all masked out. Without a page there, such a load takes an x86 core about 230 ns instead of
// less than 1 ns.
//
// Mappings start on a page, so that an offset that is a multiple of an alignment gives an aligned address.
#ifndef HONE_DEPLOY_RUNTIME_MEMORY_H_
#define HONE_DEPLOY_RUNTIME_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "deploy/runtime/fault.h"

namespace hone::runtime {

// Unmaps its memory when it is destroyed. Empty by default.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    std::swap(reach_, other.reach_);
    return *this;
  }
  ~Mapping();

  // Maps the whole file read-only. An empty file gives an empty mapping. IoError: the file cannot be opened or mapped,
  // is not a regular file, or is larger than the address space. The text calls the file a package.
  static Fault File(const std::string& path, Mapping* mapping);
  // The same for an open file, which stays the caller's. name: the file in the texts of errors.
  static Fault OpenFile(int fd, const std::string& name, Mapping* mapping);
  // Maps `bytes` of zeros, readable and writable, and asks for huge pages from 2 MiB on. 0 bytes give an empty mapping.
  // OutOfMemory: the text names `purpose`, for example "the arena".
  static Fault Pages(uint64_t bytes, const std::string& purpose, Mapping* mapping);

  uint8_t* data() const { return static_cast<uint8_t*>(start_); }  // null if empty
  std::span<const uint8_t> bytes() const { return {data(), bytes_}; }

 private:
  void* start_ = nullptr;
  size_t bytes_ = 0;
  size_t reach_ = 0;  // bytes that are mapped before start_, and as many after the last byte; 0 for a file
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_MEMORY_H_
