// SPDX-License-Identifier: Apache-2.0
// A ConstantPacker runs the kernels' prepare functions, so that a package holds weights in the layout that its kernels
// read.
//
// The functions are compiled for the machine that compiles the model, because the target may be another machine. If
// there is no code generator for this machine, they are interpreted, which is slow. Start with ConstantPacker::Create.
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
  // Compiles the distinct prepare functions on `threads` threads (0: one per CPU). kernels must outlive the packer.
  // host: this machine as a target; an error means that no code can be generated for it.
  static absl::StatusOr<ConstantPacker> Create(std::span<const CompiledKernel> kernels, int threads,
                                               const absl::StatusOr<target::Target>& host = target::ParseTarget("cpu"));

  // Returns the packed buffers of kernels[kernel], in the order of its interface; none if it packs nothing. params: the
  // bytes of each param of its workload; empty for a param that is not a constant. Thread-safe.
  absl::StatusOr<std::vector<runtime::Mapping>> Pack(size_t kernel,
                                                     std::span<const std::span<const uint8_t>> params) const;

 private:
  explicit ConstantPacker(std::span<const CompiledKernel> kernels) : kernels_(kernels) {}

  // Calls the compiled function. buffers: the func's params in order.
  absl::Status Run(const ir::Func& func, const std::vector<void*>& buffers) const;

  std::span<const CompiledKernel> kernels_;
  runtime::CodeObject code_;  // the compiled functions; empty if there are none or they are interpreted
  bool interprets_ = false;   // there is no code generator for this machine
};

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_PACK_CONSTANTS_H_
