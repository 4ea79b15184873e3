// SPDX-License-Identifier: Apache-2.0
#include "cli/model_workloads.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_kernels.h"

namespace hone::cli {

namespace {

absl::StatusOr<graph::Plan> PlanOf(const ModelOptions& model, const std::string& path, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const graph::ImportOptions import, model.Import());
  return graph::BuildPlan(path, import, target, ReproducerPassOptions<graph::Graph>(model.reproducers));
}

// The workloads of the plan that it calls, that have no open sizes, and for which takes(index) holds.
template <typename Takes>
std::vector<ModelWorkload> CalledWorkloads(const graph::Plan& plan, const Takes& takes) {
  std::vector<int64_t> calls(plan.workloads.size(), 0);
  for (const graph::PlanCall& call : plan.calls) ++calls[static_cast<size_t>(call.workload)];
  std::vector<ModelWorkload> result;
  for (size_t i = 0; i < plan.workloads.size(); ++i) {
    const ir::Workload& workload = plan.workloads[i];
    if (calls[i] == 0 || !workload.sizes.empty() || !takes(i)) continue;
    result.push_back({ir::Print(workload), ir::WorkloadDigest(workload), workload.op, ir::Title(workload), calls[i],
                      ir::CountFlops(workload)});
  }
  return result;
}

}  // namespace

namespace {

// Kernels are measured at numbers: a workload with open sizes is not tuned. It is an error if all have some.
absl::Status CheckFixed(const graph::Plan& plan, const std::string& path) {
  const auto open = std::ranges::count_if(plan.workloads, [](const ir::Workload& w) { return !w.sizes.empty(); });
  if (open == 0) return absl::OkStatus();
  if (static_cast<size_t>(open) == plan.workloads.size()) {
    return absl::UnimplementedError(
        fmt::format("{}: all kernels have open sizes, such as '{}'; kernels are tuned for numbers only: give --shape "
                    "with numbers",
                    path, plan.sizes.front().name));
  }
  spdlog::warn("{}: {} of {} kernels have open sizes and are not tuned", path, open, plan.workloads.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ModelWorkload>> WorkloadsOf(const ModelOptions& model, const std::string& path,
                                                       const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, PlanOf(model, path, target));
  HONE_RETURN_IF_ERROR(CheckFixed(plan, path));
  return CalledWorkloads(plan, [](size_t) { return true; });
}

absl::StatusOr<std::vector<std::vector<ModelWorkload>>> WorkloadsByUnit(const ModelOptions& model,
                                                                        const std::string& path,
                                                                        const std::vector<target::Target>& units) {
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, PlanOf(model, path, units.front()));
  HONE_RETURN_IF_ERROR(CheckFixed(plan, path));
  package::KernelOptions options = {.target = units.front(), .lookup = nullptr};
  for (size_t i = 1; i < units.size(); ++i) options.other_units.push_back({units[i], nullptr});
  HONE_ASSIGN_OR_RETURN(options.placement, model.PlacementOn(units));
  absl::StatusOr<std::vector<package::CompiledKernel>> kernels = package::CompileKernels(plan.workloads, options);
  if (!kernels.ok()) return Annotate(kernels.status(), path);
  std::vector<std::vector<ModelWorkload>> result;
  for (size_t unit = 0; unit < units.size(); ++unit) {
    result.push_back(CalledWorkloads(plan, [&](size_t i) { return static_cast<size_t>((*kernels)[i].unit) == unit; }));
  }
  return result;
}

}  // namespace hone::cli
