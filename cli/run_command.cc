// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/device_run.h"
#include "cli/model_packages.h"
#include "cli/npz_file.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/timed_run_options.h"
#include "deploy/run/given_inputs.h"
#include "deploy/run/loaded_package.h"

namespace hone::cli {
namespace {

struct RunOptions {
  std::string package, input, output, fallback;
  int threads = 0;
  DeviceRunOptions device;
};

absl::Status RunOnDevice(RunOptions& options) {
  if (options.device.devices.size() > 1) return UsageError("--device: outputs come from one device; give one --device");
  DeviceRun run{.packages = {options.package}, .inputs = options.input, .task = {}};
  run.task.set_threads(options.threads);
  run.task.set_keep_outputs(true);
  run.task.set_allow_onnx_runtime(!options.fallback.empty());
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, RunOnDevices(options.device, std::move(run)));
  return FetchFile(options.device, jobs.front().progress().run().packages(0).outputs(), options.output);
}

absl::Status Run(RunOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.output, {options.package, options.input}));
  HONE_RETURN_IF_ERROR(CheckCanCreate(options.output));
  if (options.device.given()) return RunOnDevice(options);
  ModelPackages models({.threads = options.threads, .fallback = !options.fallback.empty()}, options.device.tracker);
  HONE_ASSIGN_OR_RETURN(const std::string path, models.ForThisMachine(options.package));
  HONE_ASSIGN_OR_RETURN(run::LoadedPackage package, LoadPackage(path, options.threads, options.fallback));
  HONE_RETURN_IF_ERROR(run::SetGivenInputs(package, options.input));
  HONE_RETURN_IF_ERROR(package.Run());
  HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> outputs, package.Outputs());
  return WriteNpz(options.output, outputs);
}

}  // namespace

void AddRunCommand(CLI::App& app, absl::Status* result) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "run a package or a model once on arrays from a .npz file");
  command
      ->add_option("PACKAGE", options->package,
                   "the package, as hone compile writes it; or a model, MODEL.onnx, which is compiled first")
      ->required();
  command->add_option("--input", options->input, "the inputs by name, a .npz file; bf16, which NumPy lacks, as V2");
  command->add_option("--output", options->output, "where to write the outputs by name, a .npz file")
      ->required()
      ->check(NotEmpty)
      ->check(NotDash);
  command
      ->add_option("--threads", options->threads,
                   "threads that compute; 0: one per core of the fastest kind, or per CPU that control groups leave")
      ->check(IntegerInRange(HONE_MAX_THREADS));
  AddFallbackTo(command, options->fallback, kAllowFallbackText);
  options->device.AddTo(command);
  command->callback([options, result] { *result = Run(*options); });
}

}  // namespace hone::cli
