// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/device_run.h"
#include "cli/model_diff.h"
#include "cli/model_options.h"
#include "cli/model_packages.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/timed_run_options.h"
#include "deploy/run/kept_run.h"
#include "deploy/run/shape_text.h"

namespace hone::cli {
namespace {

struct DiffOptions {
  ModelOptions model;
  TimedRunOptions runs;  // without seconds and fallback
  DeviceRunOptions device;
  bool interpret = false;
};

absl::StatusOr<run::KeptRun> KeepHere(const DiffOptions& options) {
  HONE_ASSIGN_OR_RETURN(run::LoadedPackage package,
                        LoadPackage(options.runs.package, options.runs.threads, options.model.fallback));
  HONE_RETURN_IF_ERROR(SetInputs(package, options.runs));
  return run::RunAndKeep(package);
}

absl::StatusOr<run::KeptRun> KeepThere(DiffOptions& options, std::string* device) {
  HONE_ASSIGN_OR_RETURN(v1::RunTask task, TaskOf(options.runs));
  task.set_seconds(0);
  task.set_allow_onnx_runtime(!options.model.fallback.empty());
  return KeepOnDevice(options.device, {{options.runs.package}, options.runs.input, std::move(task)}, device);
}

absl::Status Diff(DiffOptions& options) {
  if (IsModel(options.runs.package)) {
    return UsageError(options.runs.package + " is a model; make a package with hone compile and give it as PACKAGE");
  }
  HONE_RETURN_IF_ERROR(CheckInputOptions(options.runs));
  PlaceOfRun place{.inputs = {.file = options.runs.input}};
  HONE_ASSIGN_OR_RETURN(place.inputs.shapes, run::ParseNamedShapes(options.runs.shapes));
  HONE_ASSIGN_OR_RETURN(run::KeptRun kept,
                        options.device.given() ? KeepThere(options, &place.device) : KeepHere(options));
  HONE_ASSIGN_OR_RETURN(const ModelDiff diff,
                        DiffRun(options.model, options.runs.package, std::move(kept), place, options.interpret));
  HONE_RETURN_IF_ERROR(options.runs.json ? PrintJson(DiffToJson(diff))
                                         : PrintText(ValuesToText(diff) + DiffToText(diff)));
  return CheckEqual(diff);
}

}  // namespace

void AddDiffCommand(CLI::App& app, absl::Status* result) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand(
      "diff", "compare a package with its unoptimized model, value by value, and name wrong kernels");
  options->model.AddMeaningTo(command);
  options->runs.AddInputsTo(command, "package file, made by hone compile from the model");
  options->device.AddTo(command);
  command->add_flag("--interpret", options->interpret,
                    "let the interpreter run the model: it shares no code generator with the package, and is slow");
  command->callback([options, result] { *result = Diff(*options); });
}

}  // namespace hone::cli
