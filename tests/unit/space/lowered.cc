// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/space/lowered.h"

#include <map>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"

namespace hone::tests {

absl::Status CheckLowered(const ir::Workload& workload, const schedule::Schedule& schedule,
                          const target::Target& target, Tolerance tolerance) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload));
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  HONE_ASSIGN_OR_RETURN(const passes::Module module, execution::Lower(state, target, "kernel", {.verify = true}));
  std::map<const ir::BufferNode*, std::span<std::byte>> memory;
  std::vector<Guarded> packed = Allocate(BytesOf(module.packed)), outputs = Allocate(BytesOf(workload.outputs));
  std::vector<Guarded> workspace = Allocate(BytesOf(module.workspace)),
                       prepare_workspace = Allocate(BytesOf(module.prepare_workspace));
  const auto place = [&](const std::vector<ir::Buffer>& buffers, std::vector<Guarded>& bytes) {
    for (size_t i = 0; i < buffers.size(); ++i) memory[buffers[i].get()] = bytes[i].span();
  };
  for (size_t i = 0; i < workload.params.size(); ++i) {
    memory[workload.params[i].buffer.get()] = problem.params[i].span();
  }
  place(module.packed, packed);
  place(workload.outputs, outputs);
  place(module.workspace, workspace);
  place(module.prepare_workspace, prepare_workspace);
  for (const auto* launches : {&module.prepare, &module.main}) {
    for (const ir::Func& func : *launches) {
      std::vector<std::span<std::byte>> arguments;
      for (const ir::Buffer& param : func.params) arguments.push_back(memory.at(param.get()));
      HONE_RETURN_IF_ERROR(ir::Interpret(func, arguments));
    }
  }
  return CompareAll(workload, problem, packed, outputs, tolerance);
}

}  // namespace hone::tests
