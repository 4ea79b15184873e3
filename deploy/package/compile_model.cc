// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/compile_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/seconds_since.h"
#include "base/status.h"
#include "compiler/codegen/codegen.h"
#include "compiler/version.h"
#include "deploy/package/cpp_header.h"
#include "deploy/package/memory_plan.h"
#include "deploy/package/package_writer.h"
#include "deploy/package/plan_contents.h"
#include "fmt/ranges.h"

namespace hone::package {
namespace {

constexpr char kForeignTarget[] = "onnxruntime";  // the target text of the unit of foreign parts

// The bytes of all params and outputs: at least this much memory traffic is needed per call.
double ParamBytes(const ir::Workload& workload) {
  double bytes = 0;
  for (const ir::Param& param : workload.params) bytes += static_cast<double>(ir::NumBytes(*param.buffer));
  for (const ir::Buffer& output : workload.outputs) bytes += static_cast<double>(ir::NumBytes(*output));
  return bytes;
}

// For each input, the intersection of the ranges that its workloads require. Inputs that need only the default range
// are left out.
std::vector<InputRange> InputRanges(const graph::Plan& plan) {
  struct Range {
    double low, high;
  };
  std::map<graph::TensorId, Range> ranges;
  const std::set<graph::TensorId> inputs(plan.inputs.begin(), plan.inputs.end());
  for (const graph::PlanCall& call : plan.calls) {
    if (call.foreign >= 0) continue;
    const ir::Workload& workload = plan.workloads[call.workload];
    for (size_t p = 0; p < workload.params.size(); ++p) {
      const graph::TensorId id = plan.Root(call.arguments[p]);
      const ir::Param& param = workload.params[p];
      if (!inputs.contains(id) || (param.low == -1.0 && param.high == 1.0)) continue;
      // InputRange::high is exclusive, Param::high is inclusive for integers.
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

ProgramMetadata Describe(const graph::Plan& plan, std::span<const CompiledKernel> kernels,
                         const KernelOptions& options) {
  ProgramMetadata metadata{.target = TargetText(options), .varies = !plan.actions.empty()};
  for (size_t i = 0; i < kernels.size(); ++i) {
    const ir::Workload& workload = plan.workloads[i];
    const bool is_open = !workload.sizes.empty();
    metadata.kernels.push_back({kernels[i].kernel.interface.name,
                                workload.op,
                                kernels[i].digest,
                                kernels[i].schedule,
                                is_open ? 0 : ir::CountFlops(workload),
                                is_open ? 0 : ParamBytes(workload),
                                {}});
    if (!options.other_units.empty()) {
      metadata.kernels.back().target = target::Print(UnitTarget(options, kernels[i].unit));
    }
  }
  for (size_t i = 0; i < plan.foreign.size(); ++i) {
    metadata.kernels.push_back({.symbol = ForeignSymbol(plan, static_cast<int>(i)),
                                .operator_name = plan.foreign[i].name,
                                .workload_digest = {},
                                .schedule = {},
                                .target = kForeignTarget});
  }
  return metadata;
}

// The target, the kind of code and the requirements of a unit of the options (UnitEntry).
PackageUnit UnitOf(const KernelOptions& options, int number, std::span<const CompiledKernel> kernels) {
  const target::Target& target = UnitTarget(options, number);
  PackageUnit unit;
  unit.kind = codegen::CodeKindOf(target);
  unit.cpu_features = codegen::RequiredFeatures(target);
  unit.device = target.device;
  unit.target = target::Print(target);
  for (const CompiledKernel& kernel : kernels) {
    if (kernel.unit != number) continue;
    unit.shared_bytes = std::max(unit.shared_bytes, static_cast<uint64_t>(kernel.kernel.shared_bytes));
    for (const KernelLaunch& launch : kernel.kernel.interface.main) {
      unit.lanes = std::max(unit.lanes, static_cast<uint32_t>(launch.lanes));
    }
  }
  return unit;
}

// Foreign parts need the memory of a CPU.
absl::Status CheckMemory(const graph::Plan& plan, const PackageProgram& program) {
  const bool has_lanes =
      std::ranges::any_of(program.units, [](const PackageUnit& unit) { return FindCodeKind(unit.kind)->has_lanes; });
  if (!has_lanes || plan.foreign.empty()) return absl::OkStatus();
  return graph::ForeignNeedsCpu(plan.foreign.front().name);
}

// The numbers of the units that compute a kernel, in order. A program without kernels has unit 0 alone.
std::vector<int> UsedUnits(std::span<const CompiledKernel> kernels) {
  std::set<int> used;
  for (const CompiledKernel& kernel : kernels) used.insert(kernel.unit);
  if (used.empty()) used.insert(0);
  return {used.begin(), used.end()};
}

// Collects the programs of a package and writes it. Programs are compiled one after another, because each compiles its
// kernels in parallel.
class PackageCompiler {
 public:
  explicit PackageCompiler(const std::string& model_name) {
    contents_.metadata = {.model_name = model_name, .compiler_version = kCompilerVersion};
  }

  // Compiles the program for options.target. plan: the model's plan for that target.
  absl::Status AddProgram(graph::Plan plan, const KernelOptions& options) {
    HONE_ASSIGN_OR_RETURN(std::vector<CompiledKernel> kernels, CompileKernels(plan.workloads, options));
    const std::vector<int> used = UsedUnits(kernels);
    PackageProgram start = {.units = {}};
    for (const int unit : used) start.units.push_back(UnitOf(options, unit, kernels));
    for (const CompiledKernel& kernel : kernels) {
      start.kernel_units.push_back(
          static_cast<uint32_t>(std::lower_bound(used.begin(), used.end(), kernel.unit) - used.begin()));
    }
    if (!plan.foreign.empty()) {
      start.kernel_units.resize(kernels.size() + plan.foreign.size(), static_cast<uint32_t>(start.units.size()));
      start.units.push_back({.kind = CodeKind::kOnnx, .target = kForeignTarget, .code = ForeignCode(plan)});
    }
    AssignHomes(start);
    HONE_RETURN_IF_ERROR(CheckMemory(plan, start));
    HONE_ASSIGN_OR_RETURN(PlanContents built, BuildContents(plan, kernels, options.threads, std::move(start)));
    PackageProgram& program = built.program;
    Summarize(plan, kernels, options);
    for (size_t i = 0; i < used.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(program.units[i].code, LinkedCode(kernels, options, used[i]));
    }
    HONE_RETURN_IF_ERROR(PlanArena(program));
    contents_.programs.push_back(std::move(program));
    packed_.push_back(std::move(built.packed));
    contents_.metadata.programs.push_back(Describe(plan, kernels, options));
    if (plans_.empty()) contents_.metadata.input_ranges = InputRanges(plan);
    plans_.push_back(std::move(plan));
    return absl::OkStatus();
  }

  std::span<const ProgramSummary> programs() const { return summary_.programs; }

  absl::StatusOr<CompileSummary> Write(const std::string& path, const std::string& header_name) {
    HONE_ASSIGN_OR_RETURN(summary_.bytes, WritePackage(contents_, path));
    const std::vector<ProgramMetadata>& metadata = contents_.metadata.programs;
    const auto of_target = std::ranges::count(metadata, metadata.front().target, &ProgramMetadata::target);
    summary_.cpp_header = CppHeader(header_name, std::span(contents_.programs).first(static_cast<size_t>(of_target)));
    return std::move(summary_);
  }

 private:
  // Links the kernels of a unit and appends their machine code, if there is some for every kernel. If schedules are
  // pinned, machine code is left out: it depends on this machine's toolkit, and such a package must be equal on every
  // machine.
  static absl::StatusOr<std::string> LinkedCode(std::span<CompiledKernel> kernels, const KernelOptions& options,
                                                int unit) {
    const target::Target& target = UnitTarget(options, unit);
    std::vector<std::string> objects;
    std::vector<std::string> machine_codes;
    for (CompiledKernel& kernel : kernels) {
      if (kernel.unit != unit) continue;
      objects.push_back(std::move(kernel.kernel.code));
      if (kernel.assembled.has_value()) machine_codes.push_back(std::move(kernel.assembled->machine_code));
    }
    if (options.pinned || machine_codes.size() < objects.size()) machine_codes.clear();
    // A model that only renames tensors or returns constants has no kernels, but its program must have code.
    if (objects.empty()) {
      HONE_ASSIGN_OR_RETURN(objects.emplace_back(), codegen::Emit({}, target));
    }
    HONE_ASSIGN_OR_RETURN(codegen::Artifact artifact, codegen::Link(objects, target));
    return codegen::WithMachineCode(std::move(artifact.code), machine_codes);
  }

  static std::string ShapeText(const graph::PlanTensor& input) {
    std::vector<std::string> extents;
    for (const ir::Size& extent : input.type.shape) {
      extents.push_back(graph::Print(graph::DimRange(extent.min(), extent.max())));
    }
    return fmt::format("{}={}", input.name, fmt::join(extents, ","));
  }

  void Summarize(const graph::Plan& plan, std::span<const CompiledKernel> kernels, const KernelOptions& options) {
    ProgramSummary program = {TargetText(options), {}, static_cast<int64_t>(kernels.size()), 0, {}};
    for (const graph::PlanForeign& part : plan.foreign) program.foreign.push_back(part.name);
    for (const graph::TensorId input : plan.inputs) program.shapes.push_back(ShapeText(plan.tensors[input]));
    for (const CompiledKernel& kernel : kernels) {
      program.records_used += kernel.is_record ? 1 : 0;
      KernelSummary& summary = program.per_kernel.emplace_back();
      summary = {kernel.kernel.interface.name, target::Print(UnitTarget(options, kernel.unit)), kernel.digest,
                 Sha256Hex(kernel.kernel.code)};
      for (const KernelLaunch& launch : kernel.kernel.interface.main) {
        summary.lanes = std::max(summary.lanes, launch.lanes);
      }
      if (summary.lanes > 0) summary.shared_bytes = kernel.kernel.shared_bytes;
      if (kernel.assembled.has_value()) summary.resources = kernel.assembled->resources;
      for (const std::string& warning : kernel.warnings) {
        summary_.warnings.push_back(fmt::format("{}: {}", program.target, warning));
      }
    }
    summary_.programs.push_back(std::move(program));
  }

  PackageContents contents_;                           // refers to the constants in plans_ and packed_
  std::vector<graph::Plan> plans_;                     // per program
  std::vector<std::vector<runtime::Mapping>> packed_;  // per program
  CompileSummary summary_;
};

}  // namespace

absl::StatusOr<CompileSummary> CompilePlan(const graph::Plan& plan, const std::string& model_name,
                                           const KernelOptions& options, const std::string& output_path) {
  const auto start = std::chrono::steady_clock::now();
  PackageCompiler compiler(model_name);
  HONE_RETURN_IF_ERROR(compiler.AddProgram(plan, options));
  HONE_ASSIGN_OR_RETURN(CompileSummary summary, compiler.Write(output_path, model_name));
  summary.seconds = SecondsSince(start);
  return summary;
}

absl::StatusOr<CompileSummary> CompileModel(const std::string& onnx_path, const graph::ImportOptions& import,
                                            std::span<const KernelOptions> targets, const std::string& output_path,
                                            const std::string& header_name) {
  return CompileModel(onnx_path, {&import, 1}, targets, output_path, header_name);
}

absl::StatusOr<CompileSummary> CompileModel(const std::string& onnx_path, std::span<const graph::ImportOptions> imports,
                                            std::span<const KernelOptions> targets, const std::string& output_path,
                                            const std::string& header_name, const AcceptPrograms& accept) {
  const auto start = std::chrono::steady_clock::now();
  const std::string model_name = std::filesystem::path(onnx_path).stem().string();
  PackageCompiler compiler(model_name);
  for (const KernelOptions& options : targets) {
    for (const graph::ImportOptions& import : imports) {
      HONE_ASSIGN_OR_RETURN(graph::Plan plan,
                            graph::BuildPlan(onnx_path, import, options.target,
                                             ReproducerPassOptions<graph::Graph>(options.reproducers)));
      HONE_RETURN_IF_ERROR(compiler.AddProgram(std::move(plan), options));
    }
  }
  if (accept) HONE_RETURN_IF_ERROR(accept(compiler.programs()));
  HONE_ASSIGN_OR_RETURN(CompileSummary summary,
                        compiler.Write(output_path, header_name.empty() ? model_name : header_name));
  summary.seconds = SecondsSince(start);
  return summary;
}

}  // namespace hone::package
