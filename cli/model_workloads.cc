// SPDX-License-Identifier: Apache-2.0
#include "cli/model_workloads.h"

#include "base/status.h"
#include "compiler/graph/plan.h"

namespace hone::cli {

absl::StatusOr<std::vector<ModelWorkload>> WorkloadsOf(const ModelOptions& model, const std::string& path,
                                                       const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const graph::ImportOptions import, model.Import());
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan,
                        graph::BuildPlan(path, import, target, ReproducerPassOptions<graph::Graph>(model.reproducers)));
  std::vector<int64_t> calls(plan.workloads.size(), 0);
  for (const graph::PlanCall& call : plan.calls) ++calls[static_cast<size_t>(call.workload)];
  std::vector<ModelWorkload> result;
  for (size_t i = 0; i < plan.workloads.size(); ++i) {
    const ir::Workload& workload = plan.workloads[i];
    if (calls[i] == 0) continue;
    result.push_back({ir::Print(workload), ir::WorkloadDigest(workload), workload.op, ir::Title(workload), calls[i],
                      ir::CountFlops(workload)});
  }
  return result;
}

}  // namespace hone::cli
