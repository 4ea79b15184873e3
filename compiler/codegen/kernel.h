// SPDX-License-Identifier: Apache-2.0
// Compiles a workload with a schedule into a Kernel: the code, and how to call it.
//
// The build child compiles a batch of candidates with it, and `hone compile` one kernel per workload. Code generation
// alone, from lowered funcs: codegen.h.
#ifndef HONE_COMPILER_CODEGEN_KERNEL_H_
#define HONE_COMPILER_CODEGEN_KERNEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/kernel_interface.h"
#include "compiler/codegen/codegen.h"
#include "compiler/ir/workload.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/step.h"

namespace hone::codegen {

struct Kernel {
  KernelInterface interface;  // has the name that CompileKernel was given
  int64_t shared_bytes = 0;   // the most that a group of any launch takes; 0 for a target without lanes
  ir::Func prepare;           // lowered for a CPU, for every target: packs constants on the host. Its body is undefined
                              // if the kernel has no packed constants.
  std::string code;           // the functions of the launches, as made by Emit (codegen.h)
};

struct CompileOptions {
  Effort effort = Effort::kKernel;
  PassOptions<ir::Func> passes = {};  // for the passes of lowering
  bool prepares = true;  // `code` also has the launches that pack constants on the device. If false, the interface
                         // lists them all the same.
};

// Errors: FailedPrecondition or NotFound: the schedule is illegal for the workload. Internal: a pass or code generation
// failed.
absl::StatusOr<Kernel> CompileKernel(const ir::Workload& workload, const schedule::Schedule& schedule,
                                     const target::Target& target, const std::string& name,
                                     const CompileOptions& options = {});

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_KERNEL_H_
