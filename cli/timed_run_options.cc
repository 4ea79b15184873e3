// SPDX-License-Identifier: Apache-2.0
#include "cli/timed_run_options.h"

#include <fmt/format.h>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "deploy/run/given_inputs.h"
#include "deploy/runtime/hone.h"

namespace hone::cli {

void TimedRunOptions::AddTo(CLI::App* command) {
  AddInputsTo(command, "package file, made by hone compile; or a model, MODEL.onnx, which is compiled first");
  command->add_option("--seconds", seconds, "how long to measure, in seconds or as 10m, 1h30m")
      ->transform(CLI::Validator(DurationAsSeconds, "", "duration"))
      ->check(CLI::Range(0.0, 1e6))
      ->check(NoNan)
      ->capture_default_str();
  AddFallbackTo(command, fallback, kAllowFallbackText);
}

void TimedRunOptions::AddInputsTo(CLI::App* command, const std::string& package_text) {
  command->add_option("PACKAGE", package, package_text)->required();
  command
      ->add_option(
          "--threads", threads,
          "number of threads; 0: one for each core of the fastest kind, or for each CPU that control groups allow")
      ->check(IntegerInRange(HONE_MAX_THREADS));
  command
      ->add_option("--shape", shapes,
                   "the shape of an input with open dimensions, as name=1,128; may be given again; the largest by "
                   "default. A model "
                   "is compiled for it")
      ->expected(1)
      ->take_all();
  command->add_option("--input", input, "the inputs by name, a .npz file as for hone run; random ones by default")
      ->check(NotEmpty);
  command->add_flag("--json", json, "print one JSON document and nothing else");
}

absl::Status CheckInputOptions(const TimedRunOptions& options) {
  if (!options.input.empty() && !options.shapes.empty()) {
    return UsageError("--shape and --input: the arrays of the file have shapes");
  }
  const absl::Status shapes = run::ParseNamedShapes(options.shapes).status();
  return shapes.ok() ? shapes : UsageError("--shape " + std::string(shapes.message()));
}

absl::Status SetInputs(run::LoadedPackage& package, const TimedRunOptions& options) {
  HONE_RETURN_IF_ERROR(CheckInputOptions(options));
  if (!options.input.empty()) return run::SetGivenInputs(package, options.input);
  HONE_ASSIGN_OR_RETURN(const std::vector<run::NamedShape> shapes, run::ParseNamedShapes(options.shapes));
  const absl::Status resized = package.Resize(shapes);
  if (absl::IsNotFound(resized)) return UsageError("--shape " + std::string(resized.message()));
  HONE_RETURN_IF_ERROR(resized);
  return package.FillInputs(run::kRandomInputsSeed);
}

absl::StatusOr<run::LoadedPackage> LoadPackage(const std::string& path, int threads, const std::string& fallback) {
  HONE_ASSIGN_OR_RETURN(run::LoadedPackage package,
                        run::LoadedPackage::Load(path, {threads, /*allows_onnx_runtime=*/!fallback.empty()}));
  for (const std::string& program : package.PassedOver()) PrintMessage(fmt::format("hone: passed over: {}\n", program));
  return package;
}

}  // namespace hone::cli
