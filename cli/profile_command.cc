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
#include "cli/device_run.h"
#include "cli/kernel_sums.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "cli/timed_run_options.h"
#include "compiler/target/target.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/timed_runs.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;
using package::KernelMetadata;
using run::LoadedPackage;
using run::ModelNode;
using run::RuntimeError;

// The sums over all calls of one kernel.
struct KernelProfile {
  KernelSum sum;
  KernelMetadata kernel;
  const Roofline* roofline = nullptr;  // of the unit that runs it; owned by Profile

  // The operations and bytes of a kernel with open sizes are not known.
  bool IsCounted() const { return kernel.bytes > 0; }
  double Gflops() const { return sum.seconds > 0 ? kernel.flops * sum.calls / sum.seconds * 1e-9 : 0; }
  double RooflineShare() const {
    return sum.seconds > 0 ? roofline->LowerBoundSeconds(kernel.flops, kernel.bytes) * sum.calls / sum.seconds : 0;
  }
};

// One call of a kernel, with the operators of its nodes.
struct CallProfile {
  KernelCall call;
  std::vector<std::string> operators;
};

// The sums over all borders from one unit to another.
struct BorderProfile {
  std::string from, to;  // their targets
  int count = 0;
  uint64_t bytes = 0;  // per run of the model
  double seconds = 0;  // per run of the model
};

struct UnitProfile {
  std::string target;
  Roofline roofline;
  double seconds = 0;  // sum over its kernels
};

// The median time in seconds of each call and of each border.
struct Medians {
  std::vector<double> calls, borders;
};

struct Profile {
  std::string model_name, target;
  std::vector<std::string> passed_over;
  int threads = 0;
  size_t runs = 0;
  std::vector<std::unique_ptr<UnitProfile>> units;  // in the order of their first calls; without calls: the program's
  std::vector<KernelProfile> kernels;               // slowest first
  std::vector<CallProfile> calls;                   // in the order of the program
  std::vector<BorderProfile> borders;               // in the order of their first copies
  double seconds = 0;                               // sum over the kernels
  double border_seconds = 0;                        // sum over the borders

  const Roofline& roofline() const { return units.front()->roofline; }
};

absl::StatusOr<HoneBorder> BorderOf(const LoadedPackage& package, size_t index) {
  HoneBorder border;
  HONE_RETURN_IF_ERROR(RuntimeError(hone_border(package.model(), index, &border)));
  return border;
}

// *runs: the number of runs.
absl::StatusOr<Medians> MeasureCalls(LoadedPackage& package, double seconds, size_t* runs) {
  const size_t count = hone_call_count(package.model()), borders = hone_border_count(package.model());
  std::vector<int64_t> nanoseconds(count);
  std::vector<std::vector<double>> times(count + borders);  // includes the warm-up, which does not move a median
  const auto profiled = [&] {
    const absl::Status status = RuntimeError(hone_run_profiled(package.model(), nanoseconds.data(), count));
    for (size_t i = 0; i < count; ++i) times[i].push_back(1e-9 * static_cast<double>(nanoseconds[i]));
    for (size_t b = 0; b < borders; ++b) {
      const absl::StatusOr<HoneBorder> border = BorderOf(package, b);
      times[count + b].push_back(border.ok() ? 1e-9 * static_cast<double>(border->nanoseconds) : 0);
    }
    return status;
  };
  HONE_ASSIGN_OR_RETURN(const std::vector<double> measured, run::TimeRuns(seconds, profiled));
  *runs = measured.size();
  Medians medians;
  for (size_t i = 0; i < times.size(); ++i) {
    (i < count ? medians.calls : medians.borders).push_back(Median(times[i]));
  }
  return medians;
}

// The roofline of the device that the program runs on. A target that cannot be parsed is taken for a CPU: packages of
// other versions may name CPUs that this version does not know.
absl::StatusOr<Roofline> RooflineOf(const std::string& target_text, int threads) {
  return target::MeasureRoofline(target::ParseTarget(target_text).value_or(target::Target()), threads);
}

// Fills the units of the profile, and measures the roofline of each.
absl::Status AddUnits(const LoadedPackage& package, Profile& profile) {
  std::vector<std::string> targets;
  for (size_t i = 0; i < hone_call_count(package.model()); ++i) {
    const std::string target = hone_call_target(package.model(), i);
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
  }
  if (targets.empty()) targets.push_back(profile.target);
  for (const std::string& target : targets) {
    HONE_ASSIGN_OR_RETURN(Roofline roofline, RooflineOf(target, profile.threads));
    profile.units.push_back(std::make_unique<UnitProfile>(UnitProfile{target, std::move(roofline), 0}));
  }
  return absl::OkStatus();
}

absl::Status AddBorders(const LoadedPackage& package, const std::vector<double>& seconds, Profile& profile) {
  for (size_t b = 0; b < seconds.size(); ++b) {
    HONE_ASSIGN_OR_RETURN(const HoneBorder border, BorderOf(package, b));
    auto found = std::find_if(profile.borders.begin(), profile.borders.end(), [&](const BorderProfile& known) {
      return known.from == border.from && known.to == border.to;
    });
    if (found == profile.borders.end()) {
      found = profile.borders.insert(found, {.from = border.from, .to = border.to});
    }
    ++found->count;
    found->bytes += border.bytes;
    found->seconds += seconds[b];
    profile.border_seconds += seconds[b];
  }
  return absl::OkStatus();
}

void AddKernels(const LoadedPackage& package, const package::ProgramMetadata& program,
                const std::vector<double>& seconds, Profile& profile) {
  std::vector<KernelCall> calls;
  std::map<std::string, UnitProfile*> units;  // that run a kernel, by its symbol
  for (size_t i = 0; i < seconds.size(); ++i) {
    CallProfile& added = profile.calls.emplace_back();
    added.call = {.symbol = hone_call_symbol(package.model(), i), .seconds = seconds[i]};
    for (const ModelNode& node : package.NodesOf(i)) {
      added.call.nodes.push_back(node.name);
      added.operators.push_back(node.op);
    }
    UnitProfile& unit = **std::ranges::find(profile.units, hone_call_target(package.model(), i),
                                            [](const auto& known) { return known->target; });
    unit.seconds += seconds[i];
    units[added.call.symbol] = &unit;
    calls.push_back(added.call);
  }
  for (KernelSum& sum : SumByKernel(calls, &profile.seconds)) {
    KernelProfile& kernel = profile.kernels.emplace_back();
    const auto stated = std::ranges::find(program.kernels, sum.symbol, &KernelMetadata::symbol);
    if (stated != program.kernels.end()) kernel.kernel = *stated;
    const UnitProfile& unit = *units.at(sum.symbol);
    kernel.kernel.symbol = sum.symbol;
    kernel.kernel.target = unit.target;
    kernel.roofline = &unit.roofline;
    kernel.sum = std::move(sum);
  }
}

absl::StatusOr<Profile> MeasureProfile(const TimedRunOptions& options, const TrackerOptions& tracker) {
  HONE_RETURN_IF_ERROR(CheckInputOptions(options));
  ModelPackages models(options.ForModel(), tracker);
  HONE_ASSIGN_OR_RETURN(const std::string path, models.ForThisMachine(options.package));
  HONE_ASSIGN_OR_RETURN(LoadedPackage package, LoadPackage(path, options.threads, options.fallback));
  Profile profile;
  HONE_ASSIGN_OR_RETURN(const package::PackageMetadata metadata, package.Metadata());
  const package::ProgramMetadata program = package.RunningProgram(metadata);
  profile.model_name = metadata.model_name;
  profile.target = program.target;
  profile.passed_over = package.PassedOver();
  profile.threads = package.threads();
  HONE_RETURN_IF_ERROR(AddUnits(package, profile));
  HONE_RETURN_IF_ERROR(SetInputs(package, options));
  HONE_ASSIGN_OR_RETURN(const Medians medians, MeasureCalls(package, options.seconds, &profile.runs));
  AddKernels(package, program, medians.calls, profile);
  HONE_RETURN_IF_ERROR(AddBorders(package, medians.borders, profile));
  return profile;
}

double ShareOf(const KernelProfile& kernel, const Profile& profile) {
  return profile.seconds > 0 ? kernel.sum.seconds / profile.seconds : 0;
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

ordered_json UnitsToJson(const Profile& profile) {
  ordered_json units = ordered_json::array();
  for (const auto& unit : profile.units) {
    units.push_back({{"target", unit->target},
                     {"time_ms", 1e3 * unit->seconds},
                     {"peak_gflops", 1e-9 * unit->roofline.flops_per_second},
                     {"memory_gbytes_per_second", 1e-9 * unit->roofline.levels.back().bytes_per_second},
                     {"levels", LevelsToJson(unit->roofline)}});
  }
  return units;
}

ordered_json BordersToJson(const Profile& profile) {
  ordered_json borders = ordered_json::array();
  for (const BorderProfile& border : profile.borders) {
    borders.push_back({{"from", border.from},
                       {"to", border.to},
                       {"count", border.count},
                       {"bytes", border.bytes},
                       {"time_ms", 1e3 * border.seconds}});
  }
  return borders;
}

ordered_json CallsToJson(const Profile& profile) {
  ordered_json calls = ordered_json::array();
  for (const auto& [call, operators] : profile.calls) {
    ordered_json nodes = ordered_json::array();
    for (size_t i = 0; i < call.nodes.size(); ++i) {
      nodes.push_back({{"name", call.nodes[i]}, {"operator", operators[i]}});
    }
    calls.push_back({{"symbol", call.symbol}, {"time_ms", 1e3 * call.seconds}, {"nodes", std::move(nodes)}});
  }
  return calls;
}

ordered_json ProfileToJson(const Profile& profile) {
  ordered_json kernels = ordered_json::array();
  for (const KernelProfile& kernel : profile.kernels) {
    kernels.push_back({{"symbol", kernel.kernel.symbol},
                       {"operator", kernel.kernel.operator_name},
                       {"workload", kernel.kernel.workload_digest},
                       {"calls", kernel.sum.calls},
                       {"nodes", kernel.sum.nodes},
                       {"time_ms", 1e3 * kernel.sum.seconds},
                       {"share", ShareOf(kernel, profile)},
                       {"gflops", kernel.IsCounted() ? ordered_json(kernel.Gflops()) : ordered_json()},
                       {"roofline_share", kernel.IsCounted() ? ordered_json(kernel.RooflineShare()) : ordered_json()},
                       {"schedule", kernel.kernel.schedule}});
    if (profile.units.size() > 1) kernels.back()["target"] = kernel.kernel.target;
  }
  return {{"model", profile.model_name},
          {"target", profile.target},
          {"passed_over", profile.passed_over},
          {"threads", profile.threads},
          {"runs", profile.runs},
          {"total_ms", 1e3 * profile.seconds},
          {"peak_gflops", 1e-9 * profile.roofline().flops_per_second},
          {"memory_gbytes_per_second", 1e-9 * profile.roofline().levels.back().bytes_per_second},
          {"levels", LevelsToJson(profile.roofline())},
          {"units", UnitsToJson(profile)},
          {"borders", BordersToJson(profile)},
          {"borders_ms", 1e3 * profile.border_seconds},
          {"kernels", std::move(kernels)},
          {"calls", CallsToJson(profile)}};
}

std::string Indented(std::string_view text) {
  std::string result = "    ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

std::string CallsToText(const Profile& profile) {
  std::string text = fmt::format("\n{:>10} {:>6}  {}\n", "time", "share", "call: nodes of the model");
  for (const auto& [call, operators] : profile.calls) {
    const double share = profile.seconds > 0 ? call.seconds / profile.seconds : 0;
    text += Row("{:>10} {:>5.1f}%  {}: {}", Latency(call.seconds), 100 * share, OneLine(call.symbol),
                NodesText(call.nodes));
  }
  return text;
}

std::string ProfileToText(const Profile& profile) {
  std::string text = fmt::format("{} for {}: {} in kernels, {} threads, {} runs\n", OneLine(profile.model_name),
                                 OneLine(profile.target), Latency(profile.seconds), profile.threads, profile.runs);
  for (const auto& unit : profile.units) {
    const std::string name =
        profile.units.size() > 1 ? fmt::format("{}, {}", OneLine(unit->target), Latency(unit->seconds)) : "the device";
    text += fmt::format("{}: {:.0f} GFLOP/s, {:.0f} GB/s from memory\n", name, 1e-9 * unit->roofline.flops_per_second,
                        1e-9 * unit->roofline.levels.back().bytes_per_second);
  }
  text += "\n";
  text +=
      fmt::format("{:>10} {:>6} {:>6} {:>9} {:>9}  {}\n", "time", "share", "calls", "GFLOP/s", "roofline", "kernel");
  for (const KernelProfile& kernel : profile.kernels) {
    const std::string rate = kernel.IsCounted()
                                 ? fmt::format("{:>9.1f} {:>8.1f}%", kernel.Gflops(), 100 * kernel.RooflineShare())
                                 : fmt::format("{:>9} {:>9}", "-", "-");
    text += Row("{:>10} {:>5.1f}% {:>6} {}  {} {}", Latency(kernel.sum.seconds), 100 * ShareOf(kernel, profile),
                kernel.sum.calls, rate, kernel.kernel.operator_name, kernel.kernel.symbol);
  }
  if (!profile.borders.empty()) {
    text += fmt::format("\n{:>10} {:>6} {:>9}  {}\n", "time", "copies", "bytes", "border");
    for (const BorderProfile& border : profile.borders) {
      text += Row("{:>10} {:>6} {:>9}  from {} to {}", Latency(border.seconds), border.count,
                  BytesText(static_cast<double>(border.bytes)), OneLine(border.from), OneLine(border.to));
    }
  }
  text += CallsToText(profile);
  text += "\nschedules\n";
  for (const KernelProfile& kernel : profile.kernels) {
    text += fmt::format("  {}\n{}\n", OneLine(kernel.kernel.symbol), Indented(kernel.kernel.schedule));
  }
  return text;
}

absl::Status RunProfile(const TimedRunOptions& options, DeviceRunOptions& device) {
  if (device.given()) return MeasureOnDevices(options, device, /*profile=*/true);
  HONE_ASSIGN_OR_RETURN(const Profile profile, MeasureProfile(options, device.tracker));
  return options.json ? PrintJson(ProfileToJson(profile)) : PrintText(ProfileToText(profile));
}

}  // namespace

void AddProfileCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<TimedRunOptions>();
  CLI::App* command = app.add_subcommand("profile", "show where a package spends its time, kernel by kernel");
  options->seconds = 1;
  options->AddTo(command);
  const auto device = std::make_shared<DeviceRunOptions>();
  device->AddTo(command);
  command->callback([options, device, result] { *result = RunProfile(*options, *device); });
}

}  // namespace hone::cli
