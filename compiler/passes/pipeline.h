// SPDX-License-Identifier: Apache-2.0
// The order of lowering: from a scheduled State to the Funcs that a back end takes. Read pipeline.cc from top to
// bottom.
#ifndef HONE_COMPILER_PASSES_PIPELINE_H_
#define HONE_COMPILER_PASSES_PIPELINE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/pass_runner.h"
#include "compiler/passes/build_loops.h"
#include "compiler/schedule/state.h"

namespace hone::passes {

// The passes on the func that BuildLoops makes, in order. A pass that runs twice is listed twice.
std::span<const Pass<ir::Func>> FuncPasses();
// The passes that follow on each launch (split_launches.h) that runs over a grid.
std::span<const Pass<ir::Func>> GridPasses();

// A kernel as a back end takes it. Its funcs share the workload's buffers, packed constants and workspaces by handle.
struct Module {
  std::vector<ir::Buffer> packed;  // re-arranged constants, filled by `prepare`, in the order of the kernel's arguments
  ir::Buffer sizes;                // i64: the values of the open sizes, the last argument; null if there are none
  std::vector<ir::Func> main;      // launches in order; on a target without lanes one func, which takes all buffers
  std::vector<ir::Func> prepare;   // likewise; empty if nothing is packed
  std::vector<ir::Buffer> workspace,
      prepare_workspace;  // buffers that pass data from launch to launch; empty on a target without lanes
  ir::Func host_prepare;  // the work of `prepare` for a machine without lanes; body undefined if nothing is packed
};

// Runs BuildLoops, then FuncPasses on main and prepare. The first part of lowering, the same for every target; the
// execution model of the target does the rest (compiler/execution/model.h). Errors as execution::Lower.
absl::StatusOr<Loops> LowerLoops(const schedule::State& state, const target::Target& target, const std::string& name,
                                 PassOptions<ir::Func> options);

// Splits `func` into launches and runs GridPasses on each. Replaces the contents of *funcs by the launches, and those
// of *workspace by the buffers between launches. After an error both are unchanged. Errors as execution::Lower.
absl::Status LowerLaunches(const ir::Func& func, const target::Target& target, PassOptions<ir::Func> options,
                           std::vector<ir::Func>* funcs, std::vector<ir::Buffer>* workspace);

// The bytes of all kWorkspace Allocs in the function, each rounded up to 64.
int64_t WorkspaceBytes(const ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_PIPELINE_H_
