// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/given_inputs.h"
#include "cli/loaded_package.h"
#include "cli/npz.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "deploy/runtime/dtype.h"

namespace hone::cli {
namespace {

struct RunOptions {
  std::string package, input, output, fallback;
  int threads = 0;
};

std::span<const int64_t> ShapeOf(const HonePort& port) { return {port.shape, static_cast<size_t>(port.ndim)}; }

package::DType DTypeOf(const HonePort& port) { return package::FindDType(port.dtype)->dtype; }

absl::Status WriteOutputs(const LoadedPackage& package, const std::string& path) {
  std::vector<ArrayView> arrays;
  for (size_t i = 0; i < package.outputs().size(); ++i) {
    HonePort port;  // again, because the run decides the extents of open dimensions
    HONE_RETURN_IF_ERROR(RuntimeError(hone_output(package.model(), i, &port)));
    DLTensor view;
    HONE_RETURN_IF_ERROR(RuntimeError(hone_get_output(package.model(), i, &view)));
    arrays.push_back({port.name,
                      DTypeOf(port),
                      ShapeOf(port),
                      {static_cast<const uint8_t*>(view.data), static_cast<size_t>(port.bytes)}});
  }
  return WriteNpz(path, arrays);
}

absl::Status Run(const RunOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.output, {options.package, options.input}));
  HONE_RETURN_IF_ERROR(CheckCanCreate(options.output));
  HONE_ASSIGN_OR_RETURN(LoadedPackage package, LoadedPackage::Load(options.package, options.threads, options.fallback));
  HONE_RETURN_IF_ERROR(SetGivenInputs(package, options.input));
  HONE_RETURN_IF_ERROR(package.Run());
  return WriteOutputs(package, options.output);
}

}  // namespace

void AddRunCommand(CLI::App& app, absl::Status* result) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "run a package once on arrays from a .npz file");
  command->add_option("PACKAGE", options->package, "the package, as hone compile writes it")->required();
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
  command->callback([options, result] { *result = Run(*options); });
}

}  // namespace hone::cli
