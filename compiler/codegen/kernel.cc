#include "compiler/codegen/kernel.h"

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"

namespace hone::codegen {

schedule::Schedule ReferenceSchedule(const ir::Workload& workload) {
  schedule::Schedule schedule;
  for (const ir::Stage& stage : workload.stages) {
    if (stage.reduce_axes.empty() || stage.axes.empty() || stage.axes.back().extent < 8) continue;
    schedule::Reorder order;
    for (size_t i = 0; i + 1 < stage.axes.size(); ++i) order.loops.push_back(stage.axes[i].name);
    for (const ir::Axis& axis : stage.reduce_axes) order.loops.push_back(axis.name);
    order.loops.push_back(stage.axes.back().name);
    schedule.push_back(std::move(order));
  }
  return schedule;
}

absl::StatusOr<Kernel> CompileKernel(const ir::Workload& workload, const schedule::Schedule& schedule,
                                     const Target& target, const std::string& symbol, Effort effort) {
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  HONE_ASSIGN_OR_RETURN(const passes::Loops loops, passes::Lower(state, symbol));
  Kernel kernel;
  kernel.symbol = symbol;
  kernel.workspace_bytes = passes::WorkspaceBytes(loops.main);
  std::vector<ir::Func> funcs = {loops.main};
  if (loops.prepare.body.defined()) {
    funcs.push_back(loops.prepare);
    kernel.prepare = loops.prepare;
    kernel.prepare_symbol = loops.prepare.name;
    kernel.prepare_workspace_bytes = passes::WorkspaceBytes(loops.prepare);
  }
  for (const ir::Buffer& buffer : loops.packed) kernel.packed_bytes.push_back(ir::NumBytes(*buffer));
  for (const ir::Param& param : workload.params) {
    bool used = false;
    ir::ForEachExpr(loops.main.body, [&](const ir::Expr& e) {
      const ir::Load* load = e.As<ir::Load>();
      used |= load != nullptr && load->buffer == param.buffer;
    });
    kernel.param_used.push_back(used);
  }
  HONE_ASSIGN_OR_RETURN(kernel.object, Emit(funcs, target, effort));
  return kernel;
}

}  // namespace hone::codegen
