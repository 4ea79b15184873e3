// SPDX-License-Identifier: Apache-2.0
#include "cli/model_workloads.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/graph/check_onnx.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_kernels.h"
#include "fmt/ranges.h"

namespace hone::cli {

namespace {

// Kernels are measured at numbers, so a workload with open sizes cannot be tuned. The error names shapes that can be.
absl::Status CheckFixed(graph::ImportOptions import, const std::string& path) {
  std::vector<std::string> numbers;
  for (auto& [name, shape] : import.shapes) {
    const bool is_fixed = std::ranges::all_of(shape, [](const graph::DimRange& d) { return d.min == d.max; });
    for (graph::DimRange& dimension : shape) dimension = dimension.max;
    std::vector<std::string> extents;
    for (const graph::DimRange& dimension : shape) extents.push_back(graph::Print(dimension));
    if (!is_fixed) numbers.push_back(fmt::format("{}={}", name, fmt::join(extents, ",")));
  }
  HONE_ASSIGN_OR_RETURN(const graph::OpenRanges open, graph::ChooseOpenRanges(path, import));
  numbers.insert(numbers.end(), open.numbers.begin(), open.numbers.end());
  if (numbers.empty()) return absl::OkStatus();
  return absl::UnimplementedError(fmt::format(
      "{}: a dimension is open, and kernels are tuned for numbers only; give numbers, for example with --shape {}",
      path, fmt::join(numbers, " --shape ")));
}

// Tells how many kernels have open sizes although all shapes of inputs are numbers: the run decides the sizes.
void WarnOfOpenKernels(const graph::Plan& plan, const std::string& path) {
  const auto open = std::ranges::count_if(plan.workloads, [](const ir::Workload& w) { return !w.sizes.empty(); });
  if (open > 0)
    spdlog::warn("{}: {} of {} kernels have open sizes and are not tuned", path, open, plan.workloads.size());
}

// One plan for each import of the model.
absl::StatusOr<std::vector<graph::Plan>> PlansOf(const ModelOptions& model, const std::string& path,
                                                 const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::ImportOptions> imports, model.Imports());
  std::vector<graph::Plan> plans;
  for (const graph::ImportOptions& import : imports) {
    HONE_RETURN_IF_ERROR(CheckFixed(import, path));
    HONE_ASSIGN_OR_RETURN(
        plans.emplace_back(),
        graph::BuildPlan(path, import, target, ReproducerPassOptions<graph::Graph>(model.reproducers)));
    WarnOfOpenKernels(plans.back(), path);
  }
  return plans;
}

// Adds the workloads that the plan calls, that have no open sizes, and for which takes(index) holds. Calls of a
// workload that is there are added.
template <typename Takes>
void AddCalled(const graph::Plan& plan, const Takes& takes, std::vector<ModelWorkload>& result) {
  std::vector<int64_t> calls(plan.workloads.size(), 0);
  for (const graph::PlanCall& call : plan.calls) {
    if (call.foreign < 0) ++calls[static_cast<size_t>(call.workload)];
  }
  for (size_t i = 0; i < plan.workloads.size(); ++i) {
    const ir::Workload& workload = plan.workloads[i];
    if (calls[i] == 0 || !workload.sizes.empty() || !takes(i)) continue;
    const std::string digest = ir::WorkloadDigest(workload);
    const auto same = std::ranges::find(result, digest, &ModelWorkload::digest);
    if (same != result.end()) {
      same->calls += calls[i];
    } else {
      result.push_back(
          {ir::Print(workload), digest, workload.op, ir::Title(workload), calls[i], ir::CountFlops(workload)});
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<ModelWorkload>> WorkloadsOf(const ModelOptions& model, const std::string& path,
                                                       const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Plan> plans, PlansOf(model, path, target));
  std::vector<ModelWorkload> result;
  for (const graph::Plan& plan : plans) AddCalled(plan, [](size_t) { return true; }, result);
  return result;
}

absl::StatusOr<std::vector<std::vector<ModelWorkload>>> WorkloadsByUnit(const ModelOptions& model,
                                                                        const std::string& path,
                                                                        const std::vector<target::Target>& units) {
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Plan> plans, PlansOf(model, path, units.front()));
  package::KernelOptions options = {.target = units.front(), .lookup = nullptr};
  for (size_t i = 1; i < units.size(); ++i) options.other_units.push_back({units[i], nullptr});
  HONE_ASSIGN_OR_RETURN(options.placement, model.PlacementOn(units));
  std::vector<std::vector<ModelWorkload>> result(units.size());
  for (const graph::Plan& plan : plans) {
    absl::StatusOr<std::vector<package::CompiledKernel>> kernels = package::CompileKernels(plan.workloads, options);
    if (!kernels.ok()) return Annotate(kernels.status(), path);
    for (size_t unit = 0; unit < units.size(); ++unit) {
      AddCalled(plan, [&](size_t i) { return static_cast<size_t>((*kernels)[i].unit) == unit; }, result[unit]);
    }
  }
  return result;
}

}  // namespace hone::cli
