// SPDX-License-Identifier: Apache-2.0
#include "cli/timed_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

#include "CLI/CLI.hpp"
#include "base/seconds_since.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/given_inputs.h"
#include "cli/option_checks.h"
#include "deploy/runtime/hone.h"

namespace hone::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpShare = 0.1;  // duration of the warm-up as a fraction of the measurement's
constexpr size_t kRunsMin = 3;        // minimum number of measured runs
constexpr uint64_t kRandomInputsSeed = 1;

}  // namespace

void TimedRunOptions::AddTo(CLI::App* command) {
  command->add_option("PACKAGE", package, "package file, made by hone compile")->required();
  command
      ->add_option(
          "--threads", threads,
          "number of threads; 0: one for each core of the fastest kind, or for each CPU that control groups allow")
      ->check(IntegerInRange(HONE_MAX_THREADS));
  command->add_option("--seconds", seconds, "how long to measure")
      ->check(CLI::Range(0.0, 1e6))
      ->check(NoNan)
      ->capture_default_str();
  command
      ->add_option(
          "--shape", shapes,
          "the shape of an input with open dimensions, as name=1,128; may be given again; the largest by default")
      ->expected(1)
      ->take_all();
  command->add_option("--input", input, "the inputs by name, a .npz file as for hone run; random ones by default")
      ->check(NotEmpty);
  AddFallbackTo(command, fallback, kAllowFallbackText);
  command->add_flag("--json", json, "print one JSON document and nothing else");
}

absl::Status SetInputs(LoadedPackage& package, const TimedRunOptions& options) {
  if (!options.input.empty()) {
    if (!options.shapes.empty()) return UsageError("--shape and --input: the arrays of the file have shapes");
    return SetGivenInputs(package, options.input);
  }
  HONE_RETURN_IF_ERROR(package.Resize(options.shapes));
  return package.FillInputs(kRandomInputsSeed);
}

absl::StatusOr<std::vector<double>> TimeRuns(double seconds, const std::function<absl::Status()>& run) {
  const Clock::time_point warm_up = Clock::now();
  do {
    HONE_RETURN_IF_ERROR(run());
  } while (SecondsSince(warm_up) < kWarmUpShare * seconds);

  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    HONE_RETURN_IF_ERROR(run());
    times.push_back(SecondsSince(start));
  } while (SecondsSince(begin) < seconds || times.size() < kRunsMin);
  return times;
}

double Quantile(std::span<const double> values, double share) {
  HONE_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::min(rank == 0 ? 0 : rank - 1, sorted.size() - 1)];
}

}  // namespace hone::cli
