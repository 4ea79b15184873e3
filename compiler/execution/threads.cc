// SPDX-License-Identifier: Apache-2.0
// Threads: a kernel is one function of the host's memory. The runtime calls it, and its parallel loops are shared out
// to the threads of a pool. Constants are prepared by a second function, once.
#include <utility>

#include "base/status.h"
#include "compiler/execution/model.h"

namespace hone::execution {
namespace {

constexpr int64_t kVectorExtentMin = 8;  // below it, the last axis is too short to be worth vectors

absl::StatusOr<passes::Module> LowerToCalls(const schedule::State& state, const target::Target& target,
                                            const std::string& name, PassOptions<ir::Func> options) {
  if (state.IsBound()) {
    return absl::FailedPreconditionError("the schedule binds loops to groups or lanes, which the target does not have");
  }
  HONE_ASSIGN_OR_RETURN(passes::Loops loops, passes::LowerLoops(state, target, name, std::move(options)));
  passes::Module module;
  module.packed = std::move(loops.packed);
  module.sizes = std::move(loops.sizes);
  module.host_prepare = loops.prepare;
  module.main = {std::move(loops.main)};
  if (loops.prepare.body.defined()) module.prepare = {std::move(loops.prepare)};
  return module;
}

absl::Status AcceptAllSchedules(const schedule::State&, const target::Target&) { return absl::OkStatus(); }

schedule::Schedule NoSteps(const ir::Workload&, const target::Target&) { return {}; }
schedule::Schedule NoPreparedSteps(const schedule::State&, const target::Target&) { return {}; }

// The last axis of a reduction goes innermost, where the compiler can vectorize it.
schedule::Schedule LastAxisInnermost(const ir::Workload& workload, const target::Target&) {
  schedule::Schedule schedule;
  for (const ir::Stage& stage : workload.stages) {
    if (!ir::Folds(stage.reduction) || stage.axes.empty() || stage.axes.back().extent.max() < kVectorExtentMin)
      continue;
    schedule::Reorder order;
    for (size_t i = 0; i + 1 < stage.axes.size(); ++i) order.loops.push_back(stage.axes[i].name);
    for (const ir::Axis& axis : stage.reduce_axes) order.loops.push_back(axis.name);
    order.loops.push_back(stage.axes.back().name);
    schedule.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace

constinit const ExecutionModel kThreads = {
    .lower = LowerToCalls,
    .check_limits = AcceptAllSchedules,
    .naive_schedule = NoSteps,
    .reference_schedule = LastAxisInnermost,
    .prepared_schedule = NoPreparedSteps,
    .compiler_vectorizes = true,
};

}  // namespace hone::execution
