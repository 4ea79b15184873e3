// SPDX-License-Identifier: Apache-2.0
// A shared object with kernels, loaded from bytes in memory by the system's dynamic linker.
//
// The bytes are written to a sealed anonymous file (memfd). If the system has no such files, they are written to a
// temporary file, which is deleted as soon as it is loaded. Load checks that they are an ELF shared object for this
// machine and trusts the rest: loading runs their code. Start with CodeObject::Load.
#ifndef HONE_DEPLOY_RUNTIME_CODE_OBJECT_H_
#define HONE_DEPLOY_RUNTIME_CODE_OBJECT_H_

#include <cstdint>
#include <span>
#include <utility>

#include "deploy/runtime/fault.h"

namespace hone::runtime {

// Owns the loaded code and unloads it; addresses that Find returned are invalid then. Empty until Load. Find may be
// called from several threads.
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

  // Load tries sealed memory, then a temporary file; LoadFrom tries one of them. `elf` may be freed afterwards. *code
  // is set on success only. BadPackage: the bytes are not a shared object for this machine. IoError: they cannot be
  // loaded; the text has the reason for each way.
  static Fault Load(std::span<const uint8_t> elf, CodeObject* code);
  static Fault LoadFrom(Placement placement, std::span<const uint8_t> elf, CodeObject* code);

  // The address of a symbol; null if there is none.
  void* Find(const char* symbol) const;

 private:
  void* handle_ = nullptr;  // from dlopen; null if empty
};

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CODE_OBJECT_H_
