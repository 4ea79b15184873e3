// SPDX-License-Identifier: Apache-2.0
// The whole lowering: from a scheduled State to the Func that a back end takes. Read pipeline.cc top to bottom.
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

// What runs on the func that BuildLoops makes, in order; a pass that runs again stands there again.
std::span<const Pass<ir::Func>> FuncPasses();
// What runs on each launch (split_launches.h) of a target with lanes after that.
std::span<const Pass<ir::Func>> GridPasses();

// A kernel as a back end takes it. Funcs share the buffers of the workload, of `packed` and of the workspaces by
// handle.
struct Module {
  std::vector<ir::Buffer> packed;  // constants in the order of the tiles, filled by `prepare`
  std::vector<ir::Func> main;      // launches, in order; for a target without lanes one func, which takes all buffers
  std::vector<ir::Func> prepare;   // likewise; empty if nothing is packed
  std::vector<ir::Buffer> workspace, prepare_workspace;  // what goes from launch to launch, where there are lanes
  ir::Func host_prepare;  // what `prepare` does, for a machine without lanes; body undefined if it is empty
};

// BuildLoops, then FuncPasses on main and on prepare, then, for a target with lanes, GridPasses on each launch. Errors:
// FailedPrecondition when the schedule cannot be lowered (too much local or shared storage, too many lanes, too much
// unrolling, an extent that had to be constant); Internal when a pass made illegal IR, naming the pass.
absl::StatusOr<Module> Lower(const schedule::State& state, const target::Target& target, const std::string& name,
                             PassOptions<ir::Func> options = {});

// Bytes of workspace that the function's Allocs of Scope::kWorkspace take, each rounded up to 64.
int64_t WorkspaceBytes(const ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_PIPELINE_H_
