// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/space/lowered.h"

#include <map>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"

namespace hone::tests {

namespace {

// The func with the groups that have work at the sizes.
ir::Func WithGroups(ir::Func func, const SizeMap& sizes) {
  if (!func.grid.open_groups.defined()) return func;
  ir::VarMap values;
  for (const auto& [name, value] : sizes) values[name] = ir::Expr(value);
  func.grid.groups = ir::ConstantValue(ir::Substitute(func.grid.open_groups, values)).value();
  return func;
}

absl::Status RunLowered(const ir::Workload& workload, const passes::Module& module, const SizeMap& sizes,
                        Tolerance tolerance) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload, sizes, Room::kOfLargest));
  std::map<const ir::BufferNode*, std::span<std::byte>> memory;
  std::vector<Guarded> packed = Allocate(BytesOf(module.packed)), workspace = Allocate(BytesOf(module.workspace)),
                       prepare_workspace = Allocate(BytesOf(module.prepare_workspace));
  const auto place = [&](const std::vector<ir::Buffer>& buffers, std::vector<Guarded>& bytes) {
    for (size_t i = 0; i < buffers.size(); ++i) memory[buffers[i].get()] = bytes[i].room();
  };
  for (size_t i = 0; i < workload.params.size(); ++i) {
    memory[workload.params[i].buffer.get()] = problem.params[i].room();
  }
  place(module.packed, packed);
  place(workload.outputs, problem.outputs);
  place(module.workspace, workspace);
  place(module.prepare_workspace, prepare_workspace);
  std::vector<int64_t> values = InOrder(workload, sizes);
  if (module.sizes != nullptr) memory[module.sizes.get()] = std::as_writable_bytes(std::span(values));
  for (const auto* launches : {&module.prepare, &module.main}) {
    for (const ir::Func& func : *launches) {
      std::vector<std::span<std::byte>> arguments;
      for (const ir::Buffer& param : func.params) arguments.push_back(memory.at(param.get()));
      HONE_RETURN_IF_ERROR(ir::Interpret(WithGroups(func, sizes), arguments));
    }
  }
  return CompareAll(problem, packed, tolerance);
}

}  // namespace

absl::Status CheckLowered(const ir::Workload& workload, const schedule::Schedule& schedule,
                          const target::Target& target, Tolerance tolerance, const std::vector<SizeMap>& sizes) {
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  HONE_ASSIGN_OR_RETURN(const passes::Module module, execution::Lower(state, target, "kernel", {.verify = true}));
  for (const SizeMap& values : sizes)
    HONE_RETURN_IF_ERROR(AtSizes(RunLowered(workload, module, values, tolerance), values));
  return absl::OkStatus();
}

}  // namespace hone::tests
