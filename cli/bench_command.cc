// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "base/median.h"
#include "base/one_line.h"
#include "base/quantile.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/device_run.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "cli/timed_run_options.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/timed_runs.h"

namespace hone::cli {
namespace {

absl::Status Bench(const TimedRunOptions& options, DeviceRunOptions& device) {
  if (device.given()) return MeasureOnDevices(options, device, /*profile=*/false);
  HONE_RETURN_IF_ERROR(CheckInputOptions(options));
  ModelPackages models(options.ForModel(), device.tracker);
  HONE_ASSIGN_OR_RETURN(const std::string path, models.ForThisMachine(options.package));
  HONE_ASSIGN_OR_RETURN(run::LoadedPackage package, LoadPackage(path, options.threads, options.fallback));
  HONE_RETURN_IF_ERROR(SetInputs(package, options));
  HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                        run::TimeRuns(options.seconds, [&] { return package.Run(); }));
  const double best = 1e3 * Quantile(seconds, 0), median = 1e3 * Median(seconds);
  const double p90 = 1e3 * Quantile(seconds, 0.9);
  if (options.json) {
    return PrintJson({{"min_ms", best},
                      {"median_ms", median},
                      {"p90_ms", p90},
                      {"runs", seconds.size()},
                      {"threads", package.threads()},
                      {"target", package.target()},
                      {"passed_over", package.PassedOver()}});
  }
  return PrintText(fmt::format("min {}, median {}, p90 {} ({} runs, {} threads, target {})\n", Latency(best * 1e-3),
                               Latency(median * 1e-3), Latency(p90 * 1e-3), seconds.size(), package.threads(),
                               OneLine(package.target())));
}

}  // namespace

void AddBenchCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<TimedRunOptions>();
  const auto device = std::make_shared<DeviceRunOptions>();
  CLI::App* command = app.add_subcommand("bench", "time a package on random or given inputs");
  options->AddTo(command);
  device->AddTo(command);
  command->callback([options, device, result] { *result = Bench(*options, *device); });
}

}  // namespace hone::cli
