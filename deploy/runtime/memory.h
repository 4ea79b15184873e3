// SPDX-License-Identifier: Apache-2.0
// The runtime's memory: a file mapped for reading, and zeroed pages for the arena. Both free themselves.
//
// On each side of zeroed pages lie HONE_REACH_BYTES that can be read: kernels load beyond the rim of a tensor with
// masks that leave all elements out, and where no page is, such a load takes an x86 core some 230 ns instead of less
// than one.
//
// Start addresses are page-aligned, so that offsets decide the alignment of everything inside.
#ifndef HONE_DEPLOY_RUNTIME_MEMORY_H_
#define HONE_DEPLOY_RUNTIME_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "deploy/runtime/fault.h"

namespace hone::runtime {

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

  // The whole file, read-only. An empty file is an empty mapping. IoError: cannot be opened, is no regular file, or
  // does not fit the address space.
  static Fault File(const std::string& path, Mapping* mapping);
  // `bytes` of zeros, readable and writable; large ones ask for huge pages. OutOfMemory names `purpose`.
  static Fault Pages(uint64_t bytes, const std::string& purpose, Mapping* mapping);

  uint8_t* data() const { return static_cast<uint8_t*>(start_); }  // null if empty
  std::span<const uint8_t> bytes() const { return {data(), bytes_}; }

 private:
  void* start_ = nullptr;
  size_t bytes_ = 0;
  size_t reach_ = 0;  // bytes mapped on each side of these
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_MEMORY_H_
