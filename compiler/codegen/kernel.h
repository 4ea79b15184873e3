// SPDX-License-Identifier: Apache-2.0
// A workload with a schedule, compiled: the code and how to call it.
//
// Used by the build child (a batch of candidates) and by the final compile (one kernel per workload).
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
  KernelInterface interface;  // named as asked for
  int64_t shared_bytes = 0;   // that a group of any of its launches takes; 0 without lanes
  ir::Func prepare;           // lowered, undefined body if nothing is packed, for a machine without lanes
  std::string code;           // the functions of the launches, as Emit (codegen.h) makes them: ELF, or OpenCL C
};

struct CompileOptions {
  Effort effort = Effort::kKernel;
  PassOptions<ir::Func> passes = {};  // of lowering
  bool prepares = true;               // `code` has the launches of `prepare`, too
};

// Errors: FailedPrecondition or NotFound (the schedule is illegal for the workload), Internal (a pass is at fault, or
// code generation failed).
absl::StatusOr<Kernel> CompileKernel(const ir::Workload& workload, const schedule::Schedule& schedule,
                                     const target::Target& target, const std::string& name,
                                     const CompileOptions& options = {});

// The schedule of the reference kernel, and of one whose default does not work: unscheduled loops, but with the last
// axis innermost where a stage reduces, so that the standard passes of LLVM can vectorize it. Nothing of a space or a
// template.
schedule::Schedule ReferenceSchedule(const ir::Workload& workload, const target::Target& target);
// Plain loops: nothing that could fail to compile. With lanes, one element is one lane's work.
schedule::Schedule PlainSchedule(const ir::Workload& workload, const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_KERNEL_H_
