// SPDX-License-Identifier: Apache-2.0
#include "cli/model_workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/status.h"
#include "cli/command.h"
#include "cli/size_points.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_kernels.h"

namespace hone::cli {

namespace {

// One plan for each import of the model, and the points at which its kernels are measured.
struct MeasuredPlan {
  graph::Plan plan;
  std::vector<PointValues> points;
  bool chooses_points = false;  // no --at: the points are the middle and the end

  std::vector<SizePoint> PointsOfWorkload(int workload) const {
    std::vector<SizePoint> all = PointsOf(plan, workload, points);
    const bool too_large = chooses_points && IsTooLarge(plan.workloads[static_cast<size_t>(workload)], all);
    return too_large ? PointsOf(plan, workload, std::span(points).first(1)) : all;
  }
};

absl::StatusOr<std::vector<MeasuredPlan>> PlansOf(const ModelOptions& model, const std::string& path,
                                                  const target::Target& target, const std::vector<std::string>& at) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ShapesAt> shapes, ParseShapesAt(at));
  HONE_ASSIGN_OR_RETURN(std::vector<graph::ImportOptions> imports, model.Imports());
  std::vector<bool> used(shapes.size(), false);
  std::vector<MeasuredPlan> plans;
  for (graph::ImportOptions& import : imports) {
    HONE_RETURN_IF_ERROR(AddDefaultRanges(path, import));
    MeasuredPlan& added = plans.emplace_back();
    HONE_ASSIGN_OR_RETURN(
        added.plan, graph::BuildPlan(path, import, target, ReproducerPassOptions<graph::Graph>(model.reproducers)));
    HONE_ASSIGN_OR_RETURN(added.points, PointsOf(added.plan, shapes, used));
    added.chooses_points = shapes.empty();
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      return UsageError(
          fmt::format("--at {}: {} does not take these shapes; give sizes inside the ranges of --shape", at[i], path));
  }
  return plans;
}

// Parts that ONNX Runtime computes need the memory of a CPU. A unit without kernels is not a part of the package.
absl::Status CheckForeign(const graph::Plan& plan, std::span<const package::CompiledKernel> kernels,
                          std::span<const target::Target> units) {
  const bool has_grid = std::ranges::any_of(kernels, [&](const package::CompiledKernel& kernel) {
    return units[static_cast<size_t>(kernel.unit)].facts().has_grid;
  });
  return plan.foreign.empty() || !has_grid ? absl::OkStatus() : graph::ForeignNeedsCpu(plan.foreign.front().name);
}

// Adds the points that `all` lacks, up to kSizePointsMax.
void AddPoints(const std::vector<SizePoint>& points, std::vector<SizePoint>& all) {
  for (const SizePoint& point : points) {
    const bool known = std::ranges::find(all, point) != all.end();
    if (!known && all.size() < kSizePointsMax) all.push_back(point);
  }
}

// The limits that a job has (WorkloadSpec.nodes).
constexpr size_t kNodesMax = 16, kNodeBytesMax = 256;

// Adds the names of the file's nodes that the workload computes, up to kNodesMax.
void AddNodes(const graph::Plan& plan, int workload, std::vector<std::string>& nodes) {
  for (const graph::PlanCall& call : plan.calls) {
    if (call.foreign >= 0 || call.workload != workload) continue;
    for (const graph::Origin& origin : call.origins) {
      const bool known = std::ranges::find(nodes, origin.name) != nodes.end();
      const bool fits = nodes.size() < kNodesMax && origin.name.size() <= kNodeBytesMax;
      if (origin.computes && fits && !known) nodes.push_back(origin.name);
    }
  }
}

// Adds the workloads that the plan calls and for which takes(index) holds. Calls and points of a workload that is there
// are added.
template <typename Takes>
void AddCalled(const MeasuredPlan& measured, const Takes& takes, std::vector<ModelWorkload>& result) {
  const graph::Plan& plan = measured.plan;
  std::vector<int64_t> calls(plan.workloads.size(), 0);
  for (const graph::PlanCall& call : plan.calls) {
    if (call.foreign < 0) ++calls[static_cast<size_t>(call.workload)];
  }
  for (size_t i = 0; i < plan.workloads.size(); ++i) {
    const ir::Workload& workload = plan.workloads[i];
    if (calls[i] == 0 || !takes(i)) continue;
    const std::string digest = ir::WorkloadDigest(workload);
    auto added = std::ranges::find(result, digest, &ModelWorkload::digest);
    if (added == result.end()) {
      result.push_back({ir::Print(workload), digest, workload.op, ir::Title(workload)});
      added = result.end() - 1;
    }
    added->calls += calls[i];
    AddNodes(plan, static_cast<int>(i), added->nodes);
    AddPoints(measured.PointsOfWorkload(static_cast<int>(i)), added->points);
    added->flops = FlopsAt(workload, added->points);
  }
}

}  // namespace

absl::StatusOr<std::vector<ModelWorkload>> WorkloadsOf(const ModelOptions& model, const std::string& path,
                                                       const target::Target& target,
                                                       const std::vector<std::string>& at) {
  HONE_ASSIGN_OR_RETURN(const std::vector<MeasuredPlan> plans, PlansOf(model, path, target, at));
  std::vector<ModelWorkload> result;
  for (const MeasuredPlan& plan : plans) AddCalled(plan, [](size_t) { return true; }, result);
  return result;
}

absl::StatusOr<std::vector<std::vector<ModelWorkload>>> WorkloadsByUnit(const ModelOptions& model,
                                                                        const std::string& path,
                                                                        const std::vector<target::Target>& units,
                                                                        const std::vector<std::string>& at) {
  HONE_ASSIGN_OR_RETURN(const std::vector<MeasuredPlan> plans, PlansOf(model, path, units.front(), at));
  package::KernelOptions options = {.target = units.front(), .lookup = nullptr};
  for (size_t i = 1; i < units.size(); ++i) options.other_units.push_back({units[i], nullptr});
  HONE_ASSIGN_OR_RETURN(options.placement, model.PlacementOn(units));
  std::vector<std::vector<ModelWorkload>> result(units.size());
  for (const MeasuredPlan& plan : plans) {
    absl::StatusOr<std::vector<package::CompiledKernel>> kernels =
        package::CompileKernels(plan.plan.workloads, options);
    if (!kernels.ok()) return Annotate(kernels.status(), path);
    HONE_RETURN_IF_ERROR(Annotate(CheckForeign(plan.plan, *kernels, units), path));
    for (size_t unit = 0; unit < units.size(); ++unit) {
      AddCalled(plan, [&](size_t i) { return static_cast<size_t>((*kernels)[i].unit) == unit; }, result[unit]);
    }
  }
  return result;
}

}  // namespace hone::cli
