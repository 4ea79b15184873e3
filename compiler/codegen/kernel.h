// A workload with a schedule, compiled: the object code and all that a caller needs to run it.
//
// Used by the build child (a batch of candidates) and by the final compile (one kernel per workload).
#ifndef HONE_COMPILER_CODEGEN_KERNEL_H_
#define HONE_COMPILER_CODEGEN_KERNEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/codegen.h"
#include "compiler/ir/workload.h"
#include "compiler/passes/build_loops.h"
#include "compiler/schedule/step.h"

namespace hone::codegen {

// Buffers of the kernel (symbol): the workload's params in order, the packed constants, the outputs. Of prepare_symbol,
// which is called once before and fills the packed constants: the params, the packed constants.
struct Kernel {
  std::string symbol, prepare_symbol;  // prepare_symbol is empty if nothing is packed
  std::vector<int64_t> packed_bytes;
  int64_t workspace_bytes = 0, prepare_workspace_bytes = 0;
  // Per param: whether the kernel itself (not only prepare) reads it.
  std::vector<bool> param_used;
  ir::Func prepare;    // lowered; the final compile runs it for the host when the target is another
  std::string object;  // relocatable ELF with both symbols
};

// Errors: FailedPrecondition or NotFound (the schedule is illegal for the workload), Internal (code generation failed).
absl::StatusOr<Kernel> CompileKernel(const ir::Workload& workload, const schedule::Schedule& schedule,
                                     const Target& target, const std::string& symbol, Effort effort = Effort::kKernel);

// The schedule of the reference kernel: unscheduled loops, but with the last axis innermost where a stage reduces, so
// that the standard passes of LLVM can vectorize it. Nothing of a space or a template.
schedule::Schedule ReferenceSchedule(const ir::Workload& workload);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_KERNEL_H_
