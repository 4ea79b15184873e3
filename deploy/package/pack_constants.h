// SPDX-License-Identifier: Apache-2.0
// Runs the kernels' prepare functions on this machine, so that a package holds weights in the layout its kernels read.
//
// The functions are compiled again for this machine: the target may be another one, or need features this one lacks. On
// a machine for which there is no code they are interpreted.
// Start with ConstantPacker::Create.
#ifndef HONE_DEPLOY_PACKAGE_PACK_CONSTANTS_H_
#define HONE_DEPLOY_PACKAGE_PACK_CONSTANTS_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/kernel.h"
#include "compiler/target/target.h"
#include "deploy/package/compile_kernels.h"
#include "deploy/runtime/code_object.h"
#include "deploy/runtime/memory.h"

namespace hone::package {

class ConstantPacker {
 public:
  // kernels must outlive the packer. host: this machine, or why there is no code for it.
  static absl::StatusOr<ConstantPacker> Create(std::span<const CompiledKernel> kernels, int threads,
                                               const absl::StatusOr<target::Target>& host = target::ParseTarget("cpu"));

  // params: the bytes of each of the kernel's params, empty for one that is not a constant. Returns the packed
  // buffers. Thread-safe.
  absl::StatusOr<std::vector<runtime::Mapping>> Pack(size_t kernel,
                                                     std::span<const std::span<const uint8_t>> params) const;

 private:
  explicit ConstantPacker(std::span<const CompiledKernel> kernels) : kernels_(kernels) {}

  absl::Status Run(const ir::Func& func, const std::vector<void*>& buffers) const;

  std::span<const CompiledKernel> kernels_;
  runtime::CodeObject code_;  // for this machine
  bool interprets_ = false;   // for there is none
};

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_PACK_CONSTANTS_H_
