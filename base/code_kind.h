// SPDX-License-Identifier: Apache-2.0
// The kinds of code, as one table. A back end of the compiler produces a kind, a package stores it, and a back end of
// the runtime runs it. A new kind is an enumerator and a case of FindCodeKind; a missing case is a compile error.
//
// This header needs only the C++ library, because the runtime that ships with a model includes it.
#ifndef HONE_BASE_CODE_KIND_H_
#define HONE_BASE_CODE_KIND_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/cpu_features.h"

namespace hone {

// The three CPU kinds are shared objects (ELF). kOpenCl is the source text of an OpenCL C program. kPtx is the text of
// PTX, NVIDIA's portable assembly. Machine code for one GPU architecture may follow the PTX text: a NUL byte, then for
// each module its length (8 bytes, little-endian) and its bytes. A device of another architecture uses the text.
// kOnnx is code that Hone does not make: ONNX models, one after the other, which ONNX Runtime computes on the CPU. Each
// is its length (8 bytes, little-endian) and its bytes. The function of a kernel, "model2", is the number of its model.
// Packages store these numbers, so a number must never be reused for another kind.
enum class CodeKind : uint32_t { kX86_64 = 1, kAArch64 = 2, kArm = 3, kOpenCl = 4, kPtx = 5, kOnnx = 6 };

struct CodeKindEntry {
  std::string_view name;                           // shown to users
  std::string_view architecture;                   // the architecture in the fingerprint of a device that runs it
  std::span<const std::string_view> cpu_features;  // features that the code may require (base/cpu_features.h)
  // True: kernels are launched over a grid of lanes, on tensors in device memory. Such code may require an amount of
  // shared memory and a device name. False: kernels are functions, called on tensors in this process.
  bool has_lanes = false;
};

// Empty if the number, for example one read from a package, names no kind.
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
    case CodeKind::kOnnx:
      return CodeKindEntry{.name = "ONNX", .architecture = "onnxruntime"};
  }
  return std::nullopt;
}

}  // namespace hone

#endif  // HONE_BASE_CODE_KIND_H_
