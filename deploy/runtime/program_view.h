// SPDX-License-Identifier: Apache-2.0
// One program of a package, checked: its manifest's tables and its kernels, read from the structs of package_format.h.
//
// After ViewProgram has succeeded, every offset, count and id is in range, every text is terminated, every call gives
// its kernel what the kernel's interface asks for, and nothing writes an input or a constant; so the rest of the
// runtime indexes without looking. Does not look into the code, and does not ask whether this machine can run it
// (backend.h).
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

// Points into the bytes it was made from.
struct ProgramView {
  const package::ManifestHeader* manifest = nullptr;
  std::span<const package::TensorEntry> tensors;
  std::span<const int64_t> shapes;
  std::vector<KernelInterface> kernels;
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
  // One for each buffer of the kernel, in order, but the slices of its workspace.
  std::span<const uint32_t> Arguments(const package::CallEntry& call) const {
    return arguments.subspan(call.arguments, Kernel(call).argument_count());
  }
};

// manifest: the section, 8-byte aligned. constants_bytes: of the constants section. BadPackage says what is wrong,
// beginning with `where` (empty, or which program it is). *view is set only on success.
Fault ViewProgram(std::span<const uint8_t> manifest, std::span<const uint8_t> code, uint64_t constants_bytes,
                  const std::string& where, ProgramView* view);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_PROGRAM_VIEW_H_
