// SPDX-License-Identifier: Apache-2.0
// The kinds of code, as one table: what a back end of the compiler makes, a package holds and a back end of the runtime
// runs. A new kind is an enumerator and a case of FindCodeKind, without which nothing compiles.
//
// A leaf for the runtime's sake: the C++ library and nothing else.
#ifndef HONE_BASE_CODE_KIND_H_
#define HONE_BASE_CODE_KIND_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/cpu_features.h"

namespace hone {

// Shared objects (ELF) for CPUs, the text of an OpenCL C program, and PTX, NVIDIA's portable assembly, as text. Behind
// the text of PTX may stand what it was assembled to, for one architecture: a NUL, and then for each module of machine
// code its length, 8 bytes, little-endian, and the module. A device that cannot run that takes the text. The numbers
// are in packages: a new kind takes a new one, never another's.
enum class CodeKind : uint32_t { kX86_64 = 1, kAArch64 = 2, kArm = 3, kOpenCl = 4, kPtx = 5 };

struct CodeKindEntry {
  std::string_view name;                           // for people
  std::string_view architecture;                   // of a device that runs it, as its fingerprint says
  std::span<const std::string_view> cpu_features;  // it may ask a machine for, of base/cpu_features.h
  // Launched over a grid of lanes, on tensors in the memory of a device of which it may need shared memory and a name;
  // else its functions are called, on tensors in this process.
  bool has_lanes = false;
};

// Empty for a number that is no kind's.
constexpr std::optional<CodeKindEntry> FindCodeKind(CodeKind kind) {
  switch (kind) {
    case CodeKind::kX86_64:
      return CodeKindEntry{"x86-64", "x86_64", kX86FeatureNames};
    case CodeKind::kAArch64:
      return CodeKindEntry{"aarch64", "aarch64", kAArch64FeatureNames};
    case CodeKind::kArm:
      return CodeKindEntry{"armv7", "armv7l", kArmFeatureNames};
    case CodeKind::kOpenCl:
      return CodeKindEntry{.name = "OpenCL", .architecture = "opencl", .has_lanes = true};
    case CodeKind::kPtx:
      return CodeKindEntry{.name = "PTX", .architecture = "cuda", .has_lanes = true};
  }
  return std::nullopt;
}

}  // namespace hone

#endif  // HONE_BASE_CODE_KIND_H_
