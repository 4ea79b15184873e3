// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/device_run.h"
#include "cli/model_diff.h"
#include "cli/model_packages.h"
#include "cli/npz_file.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/timed_run_options.h"
#include "deploy/run/given_inputs.h"
#include "deploy/run/kept_run.h"
#include "deploy/run/loaded_package.h"

namespace hone::cli {
namespace {

struct RunOptions {
  std::string package, input, output, fallback;
  std::string check;  // an ONNX file: the package is compared with it; empty: it is not
  int threads = 0;
  DeviceRunOptions device;
};

// Compares a run of the package with its model.
absl::Status CheckModel(const RunOptions& options, run::KeptRun kept, const std::string& device) {
  ModelOptions model;
  model.models = {options.check};
  model.fallback = options.fallback;
  HONE_ASSIGN_OR_RETURN(const ModelDiff diff,
                        DiffRun(model, options.package, std::move(kept), {device, {.file = options.input}},
                                /*interpret=*/false));
  HONE_RETURN_IF_ERROR(PrintText(DiffToText(diff)));
  return CheckEqual(diff);
}

// Writes the outputs of the run, and then compares it.
absl::Status WriteAndCheck(const RunOptions& options, run::KeptRun kept, const std::string& device) {
  std::vector<run::ArrayView> outputs;
  for (const run::KeptPort& output : kept.outputs) {
    outputs.push_back({output.name, output.array.dtype, output.array.shape, output.array.data});
  }
  HONE_RETURN_IF_ERROR(WriteNpz(options.output, outputs));
  return CheckModel(options, std::move(kept), device);
}

absl::Status RunOnDevice(RunOptions& options) {
  if (options.device.devices.size() > 1) return UsageError("--device: outputs come from one device; give one --device");
  DeviceRun run{.packages = {options.package}, .inputs = options.input, .task = {}};
  run.task.set_threads(options.threads);
  run.task.set_keep_outputs(true);
  run.task.set_allow_onnx_runtime(!options.fallback.empty());
  if (!options.check.empty()) {
    std::string device;
    HONE_ASSIGN_OR_RETURN(run::KeptRun kept, KeepOnDevice(options.device, std::move(run), &device));
    return WriteAndCheck(options, std::move(kept), device);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, RunOnDevices(options.device, std::move(run)));
  return FetchFile(options.device, jobs.front().progress().run().packages(0).outputs(), options.output);
}

absl::Status Run(RunOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.output, {options.package, options.input, options.check}));
  HONE_RETURN_IF_ERROR(CheckCanCreate(options.output));
  if (!options.check.empty() && IsModel(options.package)) {
    return UsageError("--check compares a package with its model; make one with hone compile and give it as PACKAGE");
  }
  if (options.device.given()) return RunOnDevice(options);
  ModelPackages models({.threads = options.threads, .fallback = !options.fallback.empty()}, options.device.tracker);
  HONE_ASSIGN_OR_RETURN(const std::string path, models.ForThisMachine(options.package));
  HONE_ASSIGN_OR_RETURN(run::LoadedPackage package, LoadPackage(path, options.threads, options.fallback));
  HONE_RETURN_IF_ERROR(run::SetGivenInputs(package, options.input));
  if (!options.check.empty()) {
    HONE_ASSIGN_OR_RETURN(run::KeptRun kept, run::RunAndKeep(package));
    return WriteAndCheck(options, std::move(kept), "");
  }
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
  command
      ->add_option("--check", options->check,
                   "also compare the package with this model, the ONNX file that it was made from; hone diff has more "
                   "options")
      ->check(NotEmpty);
  AddFallbackTo(command, options->fallback, kAllowFallbackText);
  options->device.AddTo(command);
  command->callback([options, result] { *result = Run(*options); });
}

}  // namespace hone::cli
