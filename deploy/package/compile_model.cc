#include "deploy/package/compile_model.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/codegen/codegen.h"
#include "compiler/version.h"
#include "deploy/package/memory_plan.h"
#include "deploy/package/package_writer.h"
#include "deploy/package/plan_contents.h"
#include "deploy/package/required_features.h"

namespace hone::package {
namespace {

double ParamBytes(const ir::Workload& workload) {
  double bytes = 0;
  for (const ir::Param& param : workload.params) bytes += static_cast<double>(ir::NumBytes(*param.buffer));
  for (const ir::Buffer& output : workload.outputs) bytes += static_cast<double>(ir::NumBytes(*output));
  return bytes;
}

// The ranges that the workloads reading an input agree on, where they ask for other than the default.
std::vector<InputRange> InputRanges(const graph::Plan& plan) {
  struct Range {
    double low, high;
  };
  std::map<graph::TensorId, Range> ranges;
  const std::set<graph::TensorId> inputs(plan.inputs.begin(), plan.inputs.end());
  for (const graph::PlanCall& call : plan.calls) {
    const ir::Workload& workload = plan.workloads[call.workload];
    for (size_t p = 0; p < workload.params.size(); ++p) {
      const graph::PlanTensor& tensor = plan.tensors[call.arguments[p]];
      const graph::TensorId id = tensor.alias_of >= 0 ? tensor.alias_of : call.arguments[p];
      const ir::Param& param = workload.params[p];
      if (!inputs.contains(id) || (param.low == -1.0 && param.high == 1.0)) continue;
      // The metadata's upper end is exclusive; an integer's here is not.
      const bool integer = ir::IsInt(param.buffer->dtype);
      const Range range{integer ? std::ceil(param.low) : param.low, integer ? std::floor(param.high) + 1 : param.high};
      const auto [it, added] = ranges.try_emplace(id, range);
      if (!added) it->second = {std::max(it->second.low, range.low), std::min(it->second.high, range.high)};
    }
  }
  std::vector<InputRange> result;
  for (const auto& [id, range] : ranges) result.push_back({plan.tensors[id].name, range.low, range.high});
  return result;
}

PackageMetadata Describe(const graph::Plan& plan, std::span<const CompiledKernel> kernels,
                         const std::string& model_name, const codegen::Target& target) {
  PackageMetadata metadata{model_name, codegen::Print(target), kCompilerVersion, {}, InputRanges(plan)};
  for (size_t i = 0; i < kernels.size(); ++i) {
    const ir::Workload& workload = plan.workloads[i];
    metadata.kernels.push_back({kernels[i].kernel.symbol, workload.op, kernels[i].digest, kernels[i].schedule,
                                ir::CountFlops(workload), ParamBytes(workload)});
  }
  return metadata;
}

}  // namespace

absl::StatusOr<CompileSummary> CompilePlan(const graph::Plan& plan, const std::string& model_name,
                                           const KernelOptions& options, const std::string& output_path) {
  const auto start = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(std::vector<CompiledKernel> kernels, CompileKernels(plan.workloads, options));
  CompileSummary summary;
  std::vector<std::string> objects;
  for (CompiledKernel& kernel : kernels) {
    objects.push_back(std::move(kernel.kernel.object));
    summary.records_used += kernel.from_record ? 1 : 0;
    summary.warnings.insert(summary.warnings.end(), kernel.warnings.begin(), kernel.warnings.end());
  }
  summary.kernels = static_cast<int64_t>(kernels.size());

  HONE_ASSIGN_OR_RETURN(PlanContents built, BuildContents(plan, kernels, options.threads));
  PackageContents& contents = built.contents;
  contents.arch = ArchOf(options.target);
  contents.cpu_features = RequiredFeatures(options.target);
  contents.metadata = Describe(plan, kernels, model_name, options.target);
  // A model that only renames or returns constants has no kernel, but the package has a place for code.
  if (objects.empty()) {
    HONE_ASSIGN_OR_RETURN(objects.emplace_back(), codegen::Emit({}, options.target));
  }
  HONE_ASSIGN_OR_RETURN(contents.shared_object, codegen::LinkShared(objects));
  HONE_RETURN_IF_ERROR(PlanArena(contents));
  HONE_ASSIGN_OR_RETURN(summary.bytes, WritePackage(contents, output_path));
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

absl::StatusOr<CompileSummary> CompileModel(const std::string& onnx_path, const graph::ImportOptions& import,
                                            const KernelOptions& options, const std::string& output_path) {
  const auto start = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(onnx_path, import));
  const std::string name = std::filesystem::path(onnx_path).stem().string();
  HONE_ASSIGN_OR_RETURN(CompileSummary summary, CompilePlan(plan, name, options, output_path));
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace hone::package
