// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/compile_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
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

// Compiles one workload: chooses the schedule and records which one it was.
class KernelCompiler {
 public:
  KernelCompiler(const ir::Workload& workload, size_t index, const KernelOptions& options)
      : workload_(workload), symbol_(SymbolOf(workload, index)), options_(options) {
    result_.digest = ir::WorkloadDigest(workload);
  }

  absl::StatusOr<CompiledKernel> Run() {
    if (options_.naive) {
      HONE_RETURN_IF_ERROR(Compile(execution::ModelOf(options_.target).naive_schedule(workload_, options_.target),
                                   codegen::Effort::kReference));
      return std::move(result_);
    }
    HONE_RETURN_IF_ERROR(UseRecord());
    if (result_.record >= 0) return std::move(result_);
    absl::StatusOr<space::Candidate> candidate = space::Default(workload_, options_.target);
    absl::Status status = candidate.ok() ? Compile(candidate->schedule) : candidate.status();
    if (!status.ok()) {
      Warn(fmt::format("its default schedule does not work, using plain loops: {}", std::string(status.message())));
      HONE_RETURN_IF_ERROR(CompileLoops());
    }
    return std::move(result_);
  }

 private:
  // Compiles the first recorded schedule that can be compiled. result_.record stays -1 if there is none.
  absl::Status UseRecord() {
    if (!options_.lookup) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::vector<RecordedSchedule> records, options_.lookup(result_.digest));
    for (size_t i = 0; i < records.size(); ++i) {
      absl::StatusOr<schedule::Schedule> schedule = schedule::ParseSchedule(records[i].schedule);
      const absl::Status status = schedule.ok() ? Compile(*schedule) : schedule.status();
      if (status.ok()) {
        result_.record = static_cast<int>(i);
        result_.is_record = records[i].is_record;
        return status;
      }
      if (options_.pinned) return Annotate(status, records[i].provenance);
      Warn(fmt::format("the recorded schedule ({}) does not fit any more, trying the next: {}", records[i].provenance,
                       std::string(status.message())));
    }
    return absl::OkStatus();
  }

  // Compiles a schedule that needs no schedule space. If the target's compiler vectorizes loops, the reference schedule
  // is tried first, because it is faster then.
  absl::Status CompileLoops() {
    const execution::ExecutionModel& model = execution::ModelOf(options_.target);
    const schedule::Schedule naive = model.naive_schedule(workload_, options_.target);
    if (!model.compiler_vectorizes) return Compile(naive);
    const schedule::Schedule reference = model.reference_schedule(workload_, options_.target);
    if (Compile(reference, codegen::Effort::kReference).ok()) return absl::OkStatus();
    return Compile(naive, codegen::Effort::kReference);
  }

  absl::Status Compile(const schedule::Schedule& schedule, codegen::Effort effort = codegen::Effort::kKernel) {
    codegen::CompileOptions options{effort, ReproducerPassOptions<ir::Func>(options_.reproducers), /*prepares=*/false};
    options.passes.after = options_.after_pass;
    HONE_ASSIGN_OR_RETURN(result_.kernel,
                          codegen::CompileKernel(workload_, schedule, options_.target, symbol_, options));
    result_.schedule = schedule::Print(schedule);
    return absl::OkStatus();
  }

  void Warn(const std::string& text) {
    result_.warnings.push_back(fmt::format("workload {} ({}): {}", result_.digest.substr(0, 12), workload_.op, text));
  }

  const ir::Workload& workload_;
  const std::string symbol_;
  const KernelOptions& options_;
  CompiledKernel result_;
};

}  // namespace

absl::StatusOr<std::vector<CompiledKernel>> CompileKernels(std::span<const ir::Workload> workloads,
                                                           const KernelOptions& options) {
  std::vector<CompiledKernel> kernels(workloads.size());
  std::mutex mutex;
  size_t done = 0;
  HONE_RETURN_IF_ERROR(RunParallel(workloads.size(), options.threads, [&](size_t i) -> absl::Status {
    const std::string name =
        fmt::format("workload {} ({})", ir::WorkloadDigest(workloads[i]).substr(0, 12), workloads[i].op);
    const codegen::CompilationSubject subject(name);
    absl::StatusOr<CompiledKernel> kernel = KernelCompiler(workloads[i], i, options).Run();
    if (!kernel.ok()) return Annotate(kernel.status(), name);
    kernels[i] = *std::move(kernel);
    if (!options.naive) kernels[i].assembled = codegen::Assemble(kernels[i].kernel.code, options.target);
    const std::lock_guard lock(mutex);
    ++done;
    if (options.progress) options.progress(done, workloads.size());
    return absl::OkStatus();
  }));
  return kernels;
}

}  // namespace hone::package
