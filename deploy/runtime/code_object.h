// SPDX-License-Identifier: Apache-2.0
// The package's kernels, loaded into this process from bytes in memory with the system's dynamic linker.
//
// The bytes go to a sealed anonymous file (memfd), or, where the system has none, to a temporary file that is deleted
// at once. Checks that they are an ELF shared object for this machine; what is inside is trusted.
#ifndef HONE_DEPLOY_RUNTIME_CODE_OBJECT_H_
#define HONE_DEPLOY_RUNTIME_CODE_OBJECT_H_

#include <cstdint>
#include <span>
#include <utility>

#include "deploy/runtime/fault.h"

namespace hone::runtime {

class CodeObject {
 public:
  enum class Placement { kSealedMemory, kTemporaryFile };

  CodeObject() = default;
  CodeObject(CodeObject&& other) noexcept { *this = std::move(other); }
  CodeObject& operator=(CodeObject&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CodeObject();

  // Tries sealed memory, then a temporary file. BadPackage: not a shared object for this machine; IoError: neither
  // way works, with the reasons of both.
  static Fault Load(std::span<const uint8_t> elf, CodeObject* code);
  static Fault LoadFrom(Placement placement, std::span<const uint8_t> elf, CodeObject* code);

  void* Find(const char* symbol) const;  // null if there is none

 private:
  void* handle_ = nullptr;
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CODE_OBJECT_H_
