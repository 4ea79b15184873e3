// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/interpret_plan.h"

#include <span>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "fmt/format.h"

namespace hone::graph {

absl::StatusOr<std::vector<ir::Bytes>> InterpretPlan(const Plan& plan, const std::vector<ir::Bytes>& inputs) {
  if (inputs.size() != plan.inputs.size()) {
    return absl::InvalidArgumentError(
        fmt::format("the plan has {} inputs, {} were given", plan.inputs.size(), inputs.size()));
  }
  std::vector<ir::Bytes> computed(plan.tensors.size());
  auto root = [&](TensorId id) { return plan.tensors[id].alias_of >= 0 ? plan.tensors[id].alias_of : id; };
  auto bytes = [&](TensorId id) -> const ir::Bytes& {
    const PlanTensor& tensor = plan.tensors[root(id)];
    return tensor.data != nullptr ? *tensor.data : computed[root(id)];
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PlanTensor& tensor = plan.tensors[plan.inputs[i]];
    if (static_cast<int64_t>(inputs[i].size()) != ByteSize(tensor.type)) {
      return absl::InvalidArgumentError(fmt::format("input '{}' takes {} bytes, {} were given", tensor.name,
                                                    ByteSize(tensor.type), inputs[i].size()));
    }
    computed[plan.inputs[i]] = inputs[i];
  }
  for (const PlanCall& call : plan.calls) {
    const ir::Workload& workload = plan.workloads[call.workload];
    if (!workload.sizes.empty()) return absl::UnimplementedError("a plan with open sizes cannot be interpreted");
    std::vector<std::span<const std::byte>> params;
    for (size_t i = 0; i < workload.params.size(); ++i) params.push_back(bytes(call.arguments[i]));
    HONE_ASSIGN_OR_RETURN(std::vector<ir::Bytes> results, ir::Interpret(workload, params));
    for (size_t i = 0; i < results.size(); ++i) {
      computed[call.arguments[workload.params.size() + i]] = std::move(results[i]);
    }
  }
  std::vector<ir::Bytes> outputs;
  for (TensorId id : plan.outputs) outputs.push_back(bytes(id));
  return outputs;
}

}  // namespace hone::graph
