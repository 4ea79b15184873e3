// SPDX-License-Identifier: Apache-2.0
// A ProgramView is one checked program of a package: the tables of its manifest (package_format.h) and its kernels.
//
// After ViewProgram has succeeded, every offset, count and id is in range and every text is terminated. Every call
// gives its kernel the buffers that the kernel's interface requires, and no call writes an input or a constant.
// Therefore the rest of the runtime indexes without further checks. Not checked here: the code itself, and whether this
// machine can run it (backend.h).
#ifndef HONE_DEPLOY_RUNTIME_PROGRAM_VIEW_H_
#define HONE_DEPLOY_RUNTIME_PROGRAM_VIEW_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_interface.h"
#include "deploy/runtime/fault.h"
#include "deploy/runtime/package_format.h"

namespace hone::runtime {

// Refers to the bytes from which it was made; they must outlive it. The spans are the tables of ManifestHeader.
struct ProgramView {
  const package::ManifestHeader* manifest = nullptr;
  std::span<const package::TensorEntry> tensors;
  std::span<const int64_t> shapes;
  std::vector<KernelInterface> kernels;  // parsed from the table of kernel texts
  std::span<const package::CallEntry> calls;
  std::span<const uint32_t> arguments, inputs, outputs;
  std::span<const package::CopyEntry> copies;
  std::span<const char> strings;
  std::span<const uint8_t> code;

  std::string_view Text(package::TextRef text) const { return {strings.data() + text.offset, text.bytes}; }
  std::span<const int64_t> Shape(const package::TensorEntry& tensor) const {
    return shapes.subspan(tensor.shape, tensor.rank);
  }
  const KernelInterface& Kernel(const package::CallEntry& call) const { return kernels[call.kernel]; }
  // The tensor ids (or kNoTensor) of a call: one per buffer of the kernel in order, except the slices of its workspace.
  std::span<const uint32_t> Arguments(const package::CallEntry& call) const {
    return arguments.subspan(call.arguments, Kernel(call).argument_count());
  }
};

// Checks a program. manifest: its section, 8-byte aligned. constants_bytes: size of the constants section. where:
// prefix of the error texts that says which program it is; may be empty. BadPackage says what is wrong. *view is set on
// success only.
Fault ViewProgram(std::span<const uint8_t> manifest, std::span<const uint8_t> code, uint64_t constants_bytes,
                  const std::string& where, ProgramView* view);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_PROGRAM_VIEW_H_
