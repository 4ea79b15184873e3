// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/compile_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/run_parallel.h"
#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/schedule/step.h"
#include "compiler/space/space.h"

namespace hone::package {
namespace {

// The kernel's symbol, such as "hone_k3_conv2d": a C identifier with the operator's name, for readers of a profile.
std::string SymbolOf(const ir::Workload& workload, size_t index) {
  std::string op;
  for (const char c : workload.op) op += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return fmt::format("hone_k{}_{}", index, op);
}

// Compiles one workload for one unit: chooses the schedule and records which one it was.
class KernelCompiler {
 public:
  KernelCompiler(const ir::Workload& workload, size_t index, const KernelOptions& options, int unit)
      : workload_(workload),
        symbol_(SymbolOf(workload, index)),
        options_(options),
        target_(UnitTarget(options, unit)),
        lookup_(unit == 0 ? options.lookup : options.other_units[static_cast<size_t>(unit) - 1].lookup) {
    result_.unit = unit;
    result_.digest = ir::WorkloadDigest(workload);
  }

  absl::StatusOr<CompiledKernel> Run() {
    if (options_.naive) {
      HONE_RETURN_IF_ERROR(
          Compile(execution::ModelOf(target_).naive_schedule(workload_, target_), codegen::Effort::kReference));
      return std::move(result_);
    }
    HONE_RETURN_IF_ERROR(UseRecord());
    if (result_.record >= 0) return std::move(result_);
    absl::StatusOr<space::Candidate> candidate = space::Default(workload_, target_);
    absl::Status status = candidate.ok() ? Compile(candidate->schedule) : candidate.status();
    if (!status.ok()) {
      Warn(fmt::format("its default schedule does not compile, so naive loops are used: {}",
                       std::string(status.message())));
      HONE_RETURN_IF_ERROR(CompileLoops());
    }
    return std::move(result_);
  }

  // Whether the last Run failed for a reason that is not the unit's: the lookup failed, or a schedule is pinned.
  bool FailedForAll() const { return failed_for_all_; }

 private:
  // Compiles the first recorded schedule that can be compiled. result_.record stays -1 if there is none.
  absl::Status UseRecord() {
    if (!lookup_) return absl::OkStatus();
    failed_for_all_ = true;
    HONE_ASSIGN_OR_RETURN(const std::vector<RecordedSchedule> records, lookup_(result_.digest));
    failed_for_all_ = options_.pinned;
    for (size_t i = 0; i < records.size(); ++i) {
      absl::StatusOr<schedule::Schedule> schedule = schedule::ParseSchedule(records[i].schedule);
      const absl::Status status = schedule.ok() ? Compile(*schedule) : schedule.status();
      if (status.ok()) {
        result_.record = static_cast<int>(i);
        result_.is_record = records[i].is_record;
        return status;
      }
      if (options_.pinned) return Annotate(status, records[i].provenance);
      Warn(fmt::format("the recorded schedule ({}) does not compile, so the next one is tried: {}",
                       records[i].provenance, std::string(status.message())));
    }
    return absl::OkStatus();
  }

  // Compiles a schedule that needs no schedule space. If the target's compiler vectorizes loops, the reference schedule
  // is tried first, because it is faster then.
  absl::Status CompileLoops() {
    const execution::ExecutionModel& model = execution::ModelOf(target_);
    const schedule::Schedule naive = model.naive_schedule(workload_, target_);
    if (!model.compiler_vectorizes) return Compile(naive);
    const schedule::Schedule reference = model.reference_schedule(workload_, target_);
    if (Compile(reference, codegen::Effort::kReference).ok()) return absl::OkStatus();
    return Compile(naive, codegen::Effort::kReference);
  }

  absl::Status Compile(const schedule::Schedule& schedule, codegen::Effort effort = codegen::Effort::kKernel) {
    codegen::CompileOptions options{effort, ReproducerPassOptions<ir::Func>(options_.reproducers), /*prepares=*/false};
    options.passes.after = options_.after_pass;
    HONE_ASSIGN_OR_RETURN(result_.kernel, codegen::CompileKernel(workload_, schedule, target_, symbol_, options));
    result_.schedule = schedule::Print(schedule);
    return absl::OkStatus();
  }

  void Warn(const std::string& text) {
    result_.warnings.push_back(fmt::format("workload {} ({}): {}", result_.digest.substr(0, 12), workload_.op, text));
  }

  const ir::Workload& workload_;
  const std::string symbol_;
  const KernelOptions& options_;
  const target::Target& target_;
  const ScheduleLookup& lookup_;
  CompiledKernel result_;
  bool failed_for_all_ = false;
};

// The unit that the placement names for the workload, or -1.
int PlacedUnit(const ir::Workload& workload, const Placement& placement) {
  if (!placement.by_digest.empty()) {
    const auto found = placement.by_digest.find(ir::WorkloadDigest(workload));
    if (found != placement.by_digest.end()) return found->second;
  }
  const auto found = placement.by_operator.find(workload.op);
  return found != placement.by_operator.end() ? found->second : -1;
}

// Compiles the workload for the unit where it is placed, else for the first unit that can. The kernel's warnings say
// why the units before that one cannot. Sets *failed_for_all as KernelCompiler::FailedForAll has it.
absl::StatusOr<CompiledKernel> CompileOnUnit(const ir::Workload& workload, size_t index, const KernelOptions& options,
                                             bool* failed_for_all) {
  const int placed = PlacedUnit(workload, options.placement);
  const int units = static_cast<int>(options.other_units.size()) + 1;
  std::vector<std::string> reasons;  // per unit that failed
  absl::Status failure;
  for (int unit = std::max(placed, 0); unit < (placed >= 0 ? placed + 1 : units); ++unit) {
    KernelCompiler compiler(workload, index, options, unit);
    absl::StatusOr<CompiledKernel> kernel = compiler.Run();
    if (kernel.ok()) {
      for (const std::string& reason : reasons) {
        kernel->warnings.push_back(fmt::format("workload {} ({}) runs on {}: {}", kernel->digest.substr(0, 12),
                                               workload.op, target::KindName(UnitTarget(options, unit).kind), reason));
      }
      return kernel;
    }
    *failed_for_all = compiler.FailedForAll();
    if (placed >= 0 || units == 1 || compiler.FailedForAll()) return kernel.status();
    failure = kernel.status();
    reasons.push_back(fmt::format("{} cannot compile it: {}", target::KindName(UnitTarget(options, unit).kind),
                                  std::string(failure.message())));
  }
  return absl::Status(failure.code(), fmt::format("no target can compile it: {}", fmt::join(reasons, "; ")));
}

absl::Status CheckPlacement(std::span<const ir::Workload> workloads, const Placement& placement) {
  std::set<std::string> operators;
  for (const ir::Workload& workload : workloads) operators.insert(workload.op);
  for (const auto& [op, unit] : placement.by_operator) {
    if (operators.contains(op)) continue;
    return absl::InvalidArgumentError(fmt::format("no kernel of the model has the operator '{}' to place; it has {}",
                                                  op, fmt::join(operators, ", ")));
  }
  return absl::OkStatus();
}

// The first failure, or a list of all of them, which is cut off after a fixed number of lines.
absl::Status JoinFailures(const std::vector<absl::Status>& failures) {
  constexpr size_t kReasonsMax = 20;
  absl::Status first;
  std::vector<std::string> reasons;
  for (const absl::Status& failure : failures) {
    first.Update(failure);
    if (!failure.ok()) reasons.emplace_back(failure.message());
  }
  if (reasons.size() < 2) return first;
  const size_t count = reasons.size();
  reasons.resize(std::min(count, kReasonsMax));
  return absl::Status(first.code(),
                      fmt::format("{} kernels cannot be compiled:\n  {}{}", count, fmt::join(reasons, "\n  "),
                                  count > kReasonsMax ? fmt::format("\n  and {} more", count - kReasonsMax) : ""));
}

}  // namespace

const target::Target& UnitTarget(const KernelOptions& options, int unit) {
  return unit == 0 ? options.target : options.other_units[static_cast<size_t>(unit) - 1].target;
}

std::string TargetText(const KernelOptions& options) {
  std::string text = target::Print(options.target);
  for (const UnitOptions& unit : options.other_units) text += " + " + target::Print(unit.target);
  return text;
}

absl::StatusOr<std::vector<CompiledKernel>> CompileKernels(std::span<const ir::Workload> workloads,
                                                           const KernelOptions& options) {
  HONE_RETURN_IF_ERROR(CheckPlacement(workloads, options.placement));
  std::vector<CompiledKernel> kernels(workloads.size());
  std::vector<absl::Status> failures(workloads.size());
  std::mutex mutex;
  size_t done = 0;
  HONE_RETURN_IF_ERROR(RunParallel(workloads.size(), options.threads, [&](size_t i) -> absl::Status {
    const std::string name =
        fmt::format("workload {} ({})", ir::WorkloadDigest(workloads[i]).substr(0, 12), workloads[i].op);
    const codegen::CompilationSubject subject(name);
    bool failed_for_all = false;
    absl::StatusOr<CompiledKernel> kernel = CompileOnUnit(workloads[i], i, options, &failed_for_all);
    if (!kernel.ok()) {
      failures[i] = Annotate(kernel.status(), name);
      return failed_for_all ? failures[i] : absl::OkStatus();
    }
    kernels[i] = *std::move(kernel);
    if (!options.naive) {
      kernels[i].assembled = codegen::Assemble(kernels[i].kernel.code, UnitTarget(options, kernels[i].unit));
    }
    const std::lock_guard lock(mutex);
    ++done;
    if (options.progress) options.progress(done, workloads.size());
    return absl::OkStatus();
  }));
  HONE_RETURN_IF_ERROR(JoinFailures(failures));
  return kernels;
}

}  // namespace hone::package
