// SPDX-License-Identifier: Apache-2.0
// Lanes: a kernel is a list of launches over a grid of groups, whose lanes share memory and wait for one another. A
// stage at the top level is a launch of its own. What goes from one launch to the next lies in the workspace.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/ir/match.h"
#include "compiler/schedule/grid.h"
#include "compiler/schedule/spread.h"

namespace hone::execution {
namespace {

constexpr int kNaiveLanesMax = 64;  // of a group of a naive kernel, and of stages that prepare constants

// Turns loops that are bound to a grid into serial ones, which compute the same.
ir::Stmt Unbind(const ir::Stmt& s) {
  const ir::Stmt mapped = ir::MapChildren(s, Unbind, [](const ir::Expr& e) { return e; });
  const ir::For* loop = mapped.As<ir::For>();
  if (loop == nullptr || (loop->kind != ir::LoopKind::kGroup && loop->kind != ir::LoopKind::kLane)) return mapped;
  return ir::MakeFor(loop->var, loop->extent, ir::LoopKind::kSerial, loop->body);
}

absl::StatusOr<passes::Module> LowerToGrids(const schedule::State& state, const target::Target& target,
                                            const std::string& name, PassOptions<ir::Func> options) {
  HONE_ASSIGN_OR_RETURN(passes::Loops loops, passes::LowerLoops(state, target, name, options));
  options.producer = "build_loops";
  passes::Module module;
  module.packed = std::move(loops.packed);
  module.sizes = std::move(loops.sizes);
  module.host_prepare = loops.prepare;
  HONE_RETURN_IF_ERROR(passes::LowerLaunches(loops.main, target, options, &module.main, &module.workspace));
  if (loops.prepare.body.defined()) {
    module.host_prepare.body = Unbind(loops.prepare.body);
    HONE_RETURN_IF_ERROR(
        passes::LowerLaunches(loops.prepare, target, options, &module.prepare, &module.prepare_workspace));
  }
  return module;
}

absl::Status CheckGroups(const schedule::State& state, const target::Target& target) {
  for (const schedule::Grid& grid : schedule::Grids(state)) {
    if (grid.lanes <= target.hierarchy.max_lanes && grid.shared_bytes <= target.memory.shared_bytes) continue;
    return absl::FailedPreconditionError(fmt::format(
        "stage {} has groups of {} lanes with {} bytes of shared memory; the target allows {} lanes and {} bytes",
        grid.root->stage.buffer->name, grid.lanes, grid.shared_bytes, target.hierarchy.max_lanes,
        target.memory.shared_bytes));
  }
  return absl::OkStatus();
}

// One lane for each element of every stage that no step has touched.
schedule::Schedule OneElementPerLane(const schedule::State& state, const target::Target& target) {
  return schedule::SpreadOverLanes(state, std::min(kNaiveLanesMax, target.hierarchy.max_lanes));
}

schedule::Schedule NaiveSchedule(const ir::Workload& workload, const target::Target& target) {
  return OneElementPerLane(schedule::InitialState(workload), target);
}

}  // namespace

constinit const ExecutionModel kLanes = {
    .lower = LowerToGrids,
    .check_limits = CheckGroups,
    .naive_schedule = NaiveSchedule,
    .reference_schedule = NaiveSchedule,
    .prepared_schedule = OneElementPerLane,
};

}  // namespace hone::execution
