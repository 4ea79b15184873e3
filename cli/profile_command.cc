// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/median.h"
#include "base/one_line.h"
#include "base/roofline.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/loaded_package.h"
#include "cli/output.h"
#include "cli/timed_runs.h"
#include "compiler/target/target.h"
#include "drivers/lane_roofline.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;
using package::KernelMetadata;

constexpr uint64_t kProfileSeed = 1;  // of the random inputs

// The sums over all calls of one kernel.
struct KernelProfile {
  KernelMetadata kernel;
  int calls = 0;
  double seconds = 0;  // per run of the model

  double Gflops() const { return seconds > 0 ? kernel.flops * calls / seconds * 1e-9 : 0; }
  double RooflineShare(const Roofline& roofline) const {
    return seconds > 0 ? roofline.LowerBoundSeconds(kernel.flops, kernel.bytes) * calls / seconds : 0;
  }
};

struct Profile {
  std::string model_name, target;
  std::vector<std::string> passed_over;
  int threads = 0;
  size_t runs = 0;
  Roofline roofline;
  std::vector<KernelProfile> kernels;  // slowest first
  double seconds = 0;                  // sum over the kernels
};

// The median time in seconds of each call of the model. *runs: the number of runs.
absl::StatusOr<std::vector<double>> MeasureCalls(LoadedPackage& package, double seconds, size_t* runs) {
  const size_t count = hone_call_count(package.model());
  std::vector<int64_t> nanoseconds(count);
  std::vector<std::vector<double>> times(count);  // by call; includes the warm-up, which does not move a median
  const auto run = [&] {
    const absl::Status status = RuntimeError(hone_run_profiled(package.model(), nanoseconds.data(), count));
    for (size_t i = 0; i < count; ++i) times[i].push_back(1e-9 * static_cast<double>(nanoseconds[i]));
    return status;
  };
  HONE_ASSIGN_OR_RETURN(const std::vector<double> measured, TimeRuns(seconds, run));
  *runs = measured.size();
  std::vector<double> medians;
  for (const std::vector<double>& of_call : times) medians.push_back(Median(of_call));
  return medians;
}

template <typename Driver>
absl::StatusOr<Roofline> RooflineOfDevice(const std::string& selector) {
  typename Driver::Library library;
  typename Driver::Device device;
  drivers::LaneRoofline measured;
  drivers::Error error = Driver::Library::Load(&library);
  if (error.ok()) error = library.Open(selector, &device);
  if (error.ok()) error = drivers::MeasureRoofline<Driver>(device, {}, &measured);
  if (!error.ok()) return absl::UnavailableError(error.text);
  Roofline roofline = {.flops_per_second = measured.flops_per_second, .levels = {}};
  if (measured.cache_bytes > 0)
    roofline.levels.push_back({static_cast<uint64_t>(measured.cache_bytes), measured.cache_bytes_per_second});
  roofline.levels.push_back({UINT64_MAX, measured.memory_bytes_per_second});
  return roofline;
}

// The roofline of the device that the program runs on. A target that cannot be parsed is taken for a CPU: packages of
// other versions may name CPUs that this version does not know.
absl::StatusOr<Roofline> RooflineOf(const std::string& target_text, int threads) {
  const absl::StatusOr<target::Target> target = target::ParseTarget(target_text);
  switch (target.ok() ? target->kind : target::Kind::kCpu) {
    case target::Kind::kOpenCl:
      return RooflineOfDevice<drivers::OpenClDriver>(target->device);
    case target::Kind::kCuda:
      return RooflineOfDevice<drivers::CudaDriver>(target->device);
    case target::Kind::kCpu:
      break;
  }
  ThreadPool pool(threads);
  return MeasureRoofline(pool);
}

absl::StatusOr<Profile> MeasureProfile(const TimedRunOptions& options) {
  HONE_ASSIGN_OR_RETURN(LoadedPackage package, LoadedPackage::Load(options.package, options.threads));
  Profile profile;
  HONE_ASSIGN_OR_RETURN(const package::PackageMetadata metadata, package.Metadata());
  const package::ProgramMetadata program = package.RunningProgram(metadata);
  profile.model_name = metadata.model_name;
  profile.target = program.target;
  profile.passed_over = package.PassedOver();
  profile.threads = package.threads();
  HONE_ASSIGN_OR_RETURN(profile.roofline, RooflineOf(program.target, profile.threads));
  HONE_RETURN_IF_ERROR(package.FillInputs(kProfileSeed));
  HONE_ASSIGN_OR_RETURN(const std::vector<double> calls, MeasureCalls(package, options.seconds, &profile.runs));

  std::map<std::string, KernelProfile> by_symbol;
  for (const KernelMetadata& kernel : program.kernels) by_symbol[kernel.symbol].kernel = kernel;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string symbol = hone_call_symbol(package.model(), i);
    KernelProfile& kernel = by_symbol[symbol];
    kernel.kernel.symbol = symbol;
    ++kernel.calls;
    kernel.seconds += calls[i];
    profile.seconds += calls[i];
  }
  for (auto& [symbol, kernel] : by_symbol) {
    if (kernel.calls > 0) profile.kernels.push_back(std::move(kernel));
  }
  std::stable_sort(profile.kernels.begin(), profile.kernels.end(),
                   [](const KernelProfile& a, const KernelProfile& b) { return a.seconds > b.seconds; });
  return profile;
}

double ShareOf(const KernelProfile& kernel, const Profile& profile) {
  return profile.seconds > 0 ? kernel.seconds / profile.seconds : 0;
}

// The levels as JSON, the nearest first. The size of memory, the last level, is null.
ordered_json LevelsToJson(const Roofline& roofline) {
  ordered_json levels = ordered_json::array();
  for (const Roofline::Level& level : roofline.levels) {
    const bool is_memory = level.bytes == UINT64_MAX;
    levels.push_back({{"bytes", is_memory ? ordered_json() : ordered_json(level.bytes)},
                      {"gbytes_per_second", 1e-9 * level.bytes_per_second}});
  }
  return levels;
}

ordered_json ProfileToJson(const Profile& profile) {
  ordered_json kernels = ordered_json::array();
  for (const KernelProfile& kernel : profile.kernels) {
    kernels.push_back({{"symbol", kernel.kernel.symbol},
                       {"operator", kernel.kernel.operator_name},
                       {"workload", kernel.kernel.workload_digest},
                       {"calls", kernel.calls},
                       {"time_ms", 1e3 * kernel.seconds},
                       {"share", ShareOf(kernel, profile)},
                       {"gflops", kernel.Gflops()},
                       {"roofline_share", kernel.RooflineShare(profile.roofline)},
                       {"schedule", kernel.kernel.schedule}});
  }
  return {{"model", profile.model_name},
          {"target", profile.target},
          {"passed_over", profile.passed_over},
          {"threads", profile.threads},
          {"runs", profile.runs},
          {"total_ms", 1e3 * profile.seconds},
          {"peak_gflops", 1e-9 * profile.roofline.flops_per_second},
          {"memory_gbytes_per_second", 1e-9 * profile.roofline.levels.back().bytes_per_second},
          {"levels", LevelsToJson(profile.roofline)},
          {"kernels", std::move(kernels)}};
}

std::string Indented(std::string_view text) {
  std::string result = "    ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

std::string ProfileToText(const Profile& profile) {
  std::string text = fmt::format(
      "{} for {}: {:.3f} ms in kernels, {} threads, {} runs\nthe device: {:.0f} GFLOP/s, {:.0f} GB/s from memory\n\n",
      OneLine(profile.model_name), OneLine(profile.target), 1e3 * profile.seconds, profile.threads, profile.runs,
      1e-9 * profile.roofline.flops_per_second, 1e-9 * profile.roofline.levels.back().bytes_per_second);
  text += fmt::format("{:>10} {:>6} {:>6} {:>9} {:>9}  {}\n", "ms", "time", "calls", "GFLOP/s", "roofline", "kernel");
  for (const KernelProfile& kernel : profile.kernels) {
    text += Row("{:>10.4f} {:>5.1f}% {:>6} {:>9.1f} {:>8.1f}%  {} {}", 1e3 * kernel.seconds,
                100 * ShareOf(kernel, profile), kernel.calls, kernel.Gflops(),
                100 * kernel.RooflineShare(profile.roofline), kernel.kernel.operator_name, kernel.kernel.symbol);
  }
  text += "\nschedules\n";
  for (const KernelProfile& kernel : profile.kernels) {
    text += fmt::format("  {}\n{}\n", OneLine(kernel.kernel.symbol), Indented(kernel.kernel.schedule));
  }
  return text;
}

absl::Status RunProfile(const TimedRunOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Profile profile, MeasureProfile(options));
  return options.json ? PrintJson(ProfileToJson(profile)) : PrintText(ProfileToText(profile));
}

}  // namespace

void AddProfileCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<TimedRunOptions>();
  CLI::App* command = app.add_subcommand("profile", "show where a package spends its time, kernel by kernel");
  options->seconds = 1;
  options->AddTo(command);
  command->callback([options, result] { *result = RunProfile(*options); });
}

}  // namespace hone::cli
