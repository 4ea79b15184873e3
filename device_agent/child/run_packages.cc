// SPDX-License-Identifier: Apache-2.0
#include "device_agent/child/run_packages.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/status.h"
#include "deploy/run/given_inputs.h"
#include "deploy/run/kept_run.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"
#include "deploy/run/shape_text.h"
#include "deploy/run/timed_runs.h"
#include "device_agent/visit/package_task.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

using Purpose = PackageTask::Purpose;

// The profiled runs of each package take this share of the time of its measured ones.
constexpr double kProfileShare = 0.5;
constexpr double kProfileSecondsMax = 10;

// The largest resident memory of this process so far.
int64_t PeakMemoryBytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<int64_t>(usage.ru_maxrss) * 1024 : 0;
}

class PackageWork {
 public:
  PackageWork(Child& child, PackageTask task, std::vector<MemoryFile> files, ReportMemory report)
      : child_(child),
        task_(std::move(task)),
        files_(std::move(files)),
        report_(std::move(report)),
        findings_(task_.names.size()) {}

  absl::Status Run() {
    child_.device().SetDriverEnvironment(task_.threads);
    HONE_RETURN_IF_ERROR(LoadAll());
    HONE_RETURN_IF_ERROR(child_.EndSetup());
    child_.launcher_channel().SendReady();
    return task_.purpose == Purpose::kFirstRun ? RunOnce() : Measure();
  }

  // Stores what was found, or why there is nothing.
  void Report(const absl::Status& status) {
    PackageFindings findings;
    if (status.ok()) {
      findings.packages = std::move(findings_);
    } else {
      findings.failed = true;
      findings.failure = FailureOf(status);
    }
    if (report_.Store(findings)) return child_.launcher_channel().SendDone();
    findings = {.failed = true,
                .failure = {FailureKind::kCrashed, "there is no room to report so many kernels and texts"}};
    report_.Store(findings);
    child_.launcher_channel().SendDone();
  }

 private:
  const std::string& name() const { return task_.names[current_]; }
  int FileOf(size_t package) const { return files_[kFirstPackageFile + package].descriptor(); }
  int InputsFile() const { return FileOf(task_.names.size()); }
  const MemoryFile& OutputsFile() const { return files_.back(); }

  VisitFailure FailureOf(const absl::Status& status) const {
    const std::string text(status.message());
    const std::string where = fmt::format("package '{}': {}", name(), text);
    if (absl::IsResourceExhausted(status)) return {FailureKind::kLostDevice, where};
    if (!loaded_) return {FailureKind::kCompileError, where};
    return {FailureKind::kCrashed, where};
  }

  void BeginStep(size_t package) {
    current_ = package;
    report_.BeginStep(package);
  }

  absl::Status LoadAll() {
    for (size_t i = 0; i < task_.names.size(); ++i) {
      BeginStep(i);
      child_.launcher_channel().BeginLoading(static_cast<int>(i), 0);
      HONE_RETURN_IF_ERROR(Load(i));
    }
    loaded_ = true;
    return absl::OkStatus();
  }

  absl::Status Load(size_t i) {
    const double start = SecondsNow();
    HONE_ASSIGN_OR_RETURN(
        run::LoadedPackage package,
        run::LoadedPackage::LoadFile(FileOf(i), {task_.threads, task_.allows_onnx_runtime, child_.device().id()}));
    findings_[i].load_seconds = SecondsNow() - start;
    if (task_.has_inputs) {
      HONE_ASSIGN_OR_RETURN(const run::NpzReader inputs, run::NpzReader::OpenFile(InputsFile(), "the inputs"));
      HONE_RETURN_IF_ERROR(run::SetGivenInputs(package, inputs));
    } else {
      HONE_ASSIGN_OR_RETURN(const std::vector<run::NamedShape> shapes, run::ParseNamedShapes(task_.shapes));
      HONE_RETURN_IF_ERROR(package.Resize(shapes));
      HONE_RETURN_IF_ERROR(package.FillInputs(run::kRandomInputsSeed));
    }
    const double prepare = SecondsNow();
    HONE_RETURN_IF_ERROR(package.Prepare());
    findings_[i].load_seconds += SecondsNow() - prepare;
    findings_[i].target = package.target();
    findings_[i].threads = package.threads();
    findings_[i].passed_over = package.PassedOver();
    if (task_.purpose == Purpose::kFirstRun) AddWork(package, findings_[i]);
    packages_.push_back(std::move(package));
    return absl::OkStatus();
  }

  static void AddWork(const run::LoadedPackage& package, PackageRun& found) {
    const absl::StatusOr<std::vector<run::KernelWork>> work = package.Work();
    if (!work.ok()) {
      found.work_unknown = std::string(work.status().message());
      return;
    }
    for (const run::KernelWork& kernel : *work) found.work.push_back({kernel.calls, kernel.flops, kernel.bytes});
  }

  absl::Status RunOnce() {
    BeginStep(0);
    child_.launcher_channel().BeginCalling(0, 0);
    PackageRun& found = findings_.front();
    const double start = SecondsNow();
    HONE_RETURN_IF_ERROR(packages_.front().Run());
    found.first_run_seconds = SecondsNow() - start;
    found.peak_memory_bytes = PeakMemoryBytes();  // before the file of outputs takes some
    found.seconds = {found.first_run_seconds};
    found.runs = 1;
    return task_.keep_outputs ? StoreOutputs(found) : absl::OkStatus();
  }

  absl::Status StoreOutputs(PackageRun& found) {
    if (task_.keep_values) {
      HONE_ASSIGN_OR_RETURN(const run::KeptRun kept, run::RunAndKeep(packages_.front()));
      return StoreArrays(run::ArraysOf(kept), found);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> outputs, packages_.front().Outputs());
    return StoreArrays(outputs, found);
  }

  absl::Status StoreArrays(const std::vector<run::ArrayView>& arrays, PackageRun& found) const {
    const run::NpzWriter archive(arrays);
    if (archive.bytes() > static_cast<uint64_t>(kOutputBytesMax)) {
      return absl::OutOfRangeError(fmt::format("its {} have {} bytes; a device of the farm returns {} at most",
                                               task_.keep_values ? "values" : "outputs", archive.bytes(),
                                               kOutputBytesMax));
    }
    HONE_ASSIGN_OR_RETURN(const Mapping file, OutputsFile().MapFirst(static_cast<size_t>(archive.bytes())));
    char* at = file.data();
    for (const std::span<const uint8_t> piece : archive.pieces()) {
      std::memcpy(at, piece.data(), piece.size());
      at += piece.size();
    }
    found.output_bytes = static_cast<int64_t>(archive.bytes());
    return absl::OkStatus();
  }

  absl::Status Measure() {
    child_.launcher_channel().BeginCalling(0, 0);
    if (task_.profile) {
      for (size_t i = 0; i < packages_.size(); ++i) HONE_RETURN_IF_ERROR(Profile(i));
    }
    return task_.seconds > 0 ? TimeAll() : absl::OkStatus();
  }

  absl::Status TimeAll() {
    std::vector<run::SpreadValues> seconds(packages_.size(), run::SpreadValues(kRunSecondsMax));
    std::vector<run::MinuteCurve> minutes(packages_.size(), run::MinuteCurve(kRunSecondsMax));
    const bool has_curve = task_.seconds * static_cast<double>(packages_.size()) >= kMinuteCurveSeconds;
    std::vector<run::Run> runs;
    for (size_t i = 0; i < packages_.size(); ++i) {
      runs.emplace_back([this, i] {
        BeginStep(i);
        return packages_[i].Run();
      });
    }
    HONE_RETURN_IF_ERROR(run::TimeInTurns(task_.seconds, runs, [&](size_t i, double taken) {
      seconds[i].Add(taken);
      if (has_curve) minutes[i].Add(SecondsNow(), taken);
    }));
    for (size_t i = 0; i < packages_.size(); ++i) {
      findings_[i].seconds = seconds[i].values();
      findings_[i].runs = seconds[i].count();
      for (const run::MinuteCurve::Minute& minute : minutes[i].Take()) {
        findings_[i].minutes.push_back({minute.runs, minute.median_seconds});
      }
    }
    return absl::OkStatus();
  }

  absl::Status Profile(size_t i) {
    HoneModel* const model = packages_[i].model();
    const size_t calls = hone_call_count(model);
    std::vector<int64_t> nanoseconds(calls);
    std::vector<run::SpreadValues> times(calls, run::SpreadValues(kProfiledRunsMax));
    const double seconds = std::min(kProfileShare * task_.seconds, kProfileSecondsMax);
    const auto profiled = [&] {
      BeginStep(i);
      const absl::Status status = run::RuntimeError(hone_run_profiled(model, nanoseconds.data(), calls));
      for (size_t call = 0; call < calls; ++call) times[call].Add(1e-9 * static_cast<double>(nanoseconds[call]));
      return status;
    };
    HONE_RETURN_IF_ERROR(run::TimeRuns(seconds, profiled).status());
    for (size_t call = 0; call < calls; ++call) {
      std::vector<std::string> nodes;
      for (size_t node = 0; node < hone_call_node_count(model, call); ++node) {
        nodes.emplace_back(hone_call_node(model, call, node));
      }
      findings_[i].kernels.push_back({hone_call_symbol(model, call), hone_call_target(model, call),
                                      Median(times[call].values()), std::move(nodes)});
    }
    return absl::OkStatus();
  }

  static constexpr size_t kProfiledRunsMax = 1000;  // times of one call that are kept

  Child& child_;
  PackageTask task_;
  std::vector<MemoryFile> files_;
  ReportMemory report_;
  std::vector<run::LoadedPackage> packages_;
  std::vector<PackageRun> findings_;
  size_t current_ = 0;
  bool loaded_ = false;
};

absl::StatusOr<PackageWork> TakeWork(Child& child) {
  std::vector<MemoryFile> files = child.ReceiveTaskFiles();
  if (files.size() <= kFirstPackageFile)
    return absl::InternalError("a child process of the run received too few files");
  HONE_ASSIGN_OR_RETURN(const Mapping packed, MapFile(files[kPackageTaskFile].descriptor()));
  HONE_ASSIGN_OR_RETURN(PackageTask task, UnpackPackageTask(packed.view()));
  const size_t inputs = task.has_inputs ? 1 : 0, outputs = task.keep_outputs ? 1 : 0;
  if (files.size() != kFirstPackageFile + task.names.size() + inputs + outputs) {
    return absl::InternalError("a child process of the run received too few files");
  }
  HONE_ASSIGN_OR_RETURN(ReportMemory report, ReportMemory::Open(std::move(files[kReportFile])));
  return PackageWork(child, std::move(task), std::move(files), std::move(report));
}

}  // namespace

void RunPackages(Child& child) {
  absl::StatusOr<PackageWork> work = TakeWork(child);
  if (!work.ok()) return child.launcher_channel().SendBatchFailure(std::string(work.status().message()));
  try {
    work->Report(work->Run());
  } catch (const std::bad_alloc&) {
    work->Report(absl::ResourceExhaustedError(
        fmt::format("there is not enough memory; a process may have {} MiB here", child.memory_limit() >> 20)));
  }
}

}  // namespace hone::agent
