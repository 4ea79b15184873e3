// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/package_convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/run_limits.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "device_agent/launcher/child_blame.h"

namespace hone::agent {
namespace {

constexpr double kSecondsMax = 30 * 24 * 3600;  // of a measurement
constexpr size_t kShapesMax = 1000;
constexpr size_t kNameBytesMax = 200;        // of a package in texts
constexpr size_t kTextBytesMax = 2000;       // of one text in a report
constexpr size_t kPassedOverMax = 64;        // programs
constexpr size_t kKernelCallsMax = 100'000;  // of one program
constexpr size_t kNodesMax = 100'000;        // of all calls of a package
constexpr int64_t kMemoryBytesMax = int64_t{1} << 50;
constexpr double kWorkMax = 1e18;  // operations, or bytes, of one call

std::string Cut(std::string_view text, size_t bytes = kTextBytesMax) { return Clean(text.substr(0, bytes)); }

bool IsBetween(double value, double low, double high) { return value >= low && value <= high; }  // false for NaN

absl::Status Impossible(std::string_view what) {
  return absl::InternalError(fmt::format("reported an impossible {}", what));
}

absl::Status CheckTimes(const PackageRun& run, double seconds) {
  if (run.seconds.size() > kRunSecondsMax || run.runs < static_cast<int64_t>(run.seconds.size()) ||
      (run.runs > 0) != !run.seconds.empty()) {
    return Impossible("number of runs");
  }
  double sum = 0;
  for (const double one : run.seconds) {
    if (!IsBetween(one, 0, seconds)) return Impossible("time of a run");
    sum += one;
  }
  if (sum > seconds) return Impossible("sum of times");
  int64_t runs = 0;
  if (static_cast<double>(run.minutes.size()) > seconds / 60 + 1) return Impossible("number of minutes");
  for (const MinuteOfRuns& minute : run.minutes) {
    if (minute.runs < 0 || minute.runs > run.runs - runs || !IsBetween(minute.median_seconds, 0, seconds)) {
      return Impossible("minute");
    }
    runs += minute.runs;
  }
  return absl::OkStatus();
}

absl::Status CheckRun(const PackageRun& run, const PackageTask& task, double seconds) {
  if (run.threads < 0 || run.threads > kThreadsMax) return Impossible("number of threads");
  if (!IsBetween(run.load_seconds, 0, seconds) || !IsBetween(run.first_run_seconds, 0, seconds)) {
    return Impossible("time");
  }
  if (run.peak_memory_bytes < 0 || run.peak_memory_bytes > kMemoryBytesMax) return Impossible("memory");
  if (run.output_bytes < 0 || run.output_bytes > kOutputBytesMax || (run.output_bytes > 0 && !task.keep_outputs)) {
    return Impossible("size of outputs");
  }
  if (run.kernels.size() > kKernelCallsMax || run.passed_over.size() > kPassedOverMax) {
    return Impossible("number of kernels");
  }
  size_t nodes = 0;
  for (const KernelRun& kernel : run.kernels) {
    if (!IsBetween(kernel.median_seconds, 0, seconds)) return Impossible("time of a kernel");
    nodes += kernel.nodes.size();
  }
  if (nodes > kNodesMax) return Impossible("number of nodes");
  if (run.work.size() > kKernelCallsMax) return Impossible("number of kernels");
  for (const KernelWork& work : run.work) {
    const bool counts = work.calls >= 1 && work.calls <= static_cast<int64_t>(kKernelCallsMax);
    if (!counts || !IsBetween(work.flops, 0, kWorkMax) || !IsBetween(work.bytes, 0, kWorkMax)) {
      return Impossible("work of a kernel");
    }
  }
  return CheckTimes(run, seconds);
}

}  // namespace

absl::StatusOr<PackageTask> ToPackageTask(const v1::Batch& batch, size_t files) {
  const v1::RunTask& run = batch.run();
  const int threads = run.threads() != 0 ? run.threads() : batch.threads();
  const auto count = static_cast<size_t>(run.packages_size());
  if (count == 0 || count > kRunPackagesMax) {
    return absl::InvalidArgumentError(fmt::format("a run has 1 to {} packages, not {}", kRunPackagesMax, count));
  }
  if (files != count + (run.has_inputs() ? 1 : 0)) {
    return absl::InvalidArgumentError(
        fmt::format("the run needs {} files and {} came with it", count + (run.has_inputs() ? 1 : 0), files));
  }
  if (!IsBetween(run.seconds(), 0, kSecondsMax)) {
    return absl::InvalidArgumentError(fmt::format("cannot measure for {} s", run.seconds()));
  }
  if (threads < 0 || threads > kThreadsMax) {
    return absl::InvalidArgumentError(fmt::format("cannot run with {} threads", threads));
  }
  if (static_cast<size_t>(run.shapes_size()) > kShapesMax || (run.has_inputs() && run.shapes_size() > 0)) {
    return absl::InvalidArgumentError("shapes are for random inputs, and each input has one");
  }
  PackageTask task;
  for (const v1::FileName& package : run.packages()) task.names.push_back(Cut(package.name(), kNameBytesMax));
  task.has_inputs = run.has_inputs();
  task.shapes.assign(run.shapes().begin(), run.shapes().end());
  task.threads = threads;
  task.seconds = run.seconds();
  task.profile = run.profile();
  task.keep_outputs = run.keep_outputs();
  task.keep_values = run.keep_values();
  task.allows_onnx_runtime = run.allow_onnx_runtime();
  return task;
}

absl::Status CheckFindings(const PackageFindings& findings, const PackageTask& task, double seconds) {
  if (findings.packages.size() != task.names.size()) return Impossible("number of packages");
  for (const PackageRun& run : findings.packages) HONE_RETURN_IF_ERROR(CheckRun(run, task, seconds));
  const bool wants_times = task.purpose == PackageTask::Purpose::kFirstRun || task.seconds > 0;
  for (const PackageRun& run : findings.packages) {
    if (wants_times == run.seconds.empty()) return Impossible("number of runs");
    if (run.seconds.size() != findings.packages.front().seconds.size()) return Impossible("number of pairs");
  }
  return absl::OkStatus();
}

void AddFirstRun(const PackageRun& run, v1::PackageReport& report) {
  report.set_target(Cut(run.target));
  report.set_threads(run.threads);
  report.set_load_seconds(run.load_seconds);
  report.set_first_run_seconds(run.first_run_seconds);
  report.mutable_seconds()->Add(run.seconds.begin(), run.seconds.end());
  report.set_runs(run.runs);
  report.set_peak_memory_bytes(run.peak_memory_bytes);
  for (const std::string& program : run.passed_over) report.add_passed_over(Cut(program));
  for (const KernelWork& kernel : run.work) {
    v1::KernelWork& added = *report.add_work();
    added.set_calls(kernel.calls);
    added.set_flops(kernel.flops);
    added.set_bytes(kernel.bytes);
  }
  report.set_work_unknown(Cut(run.work_unknown));
}

void AddMeasurement(const PackageRun& run, const PackageTask& task, v1::PackageReport& report) {
  for (const KernelRun& kernel : run.kernels) {
    v1::KernelTime& added = *report.add_kernels();
    added.set_symbol(Cut(kernel.symbol));
    added.set_target(Cut(kernel.target));
    added.set_median_seconds(kernel.median_seconds);
    for (const std::string& node : kernel.nodes) added.add_nodes(Cut(node));
  }
  if (task.seconds <= 0) return;
  report.mutable_seconds()->Clear();
  report.mutable_seconds()->Add(run.seconds.begin(), run.seconds.end());
  report.set_runs(run.runs);
  for (const MinuteOfRuns& minute : run.minutes) {
    v1::RunMinute& added = *report.add_minutes();
    added.set_runs(minute.runs);
    added.set_median_seconds(minute.median_seconds);
  }
}

}  // namespace hone::agent
