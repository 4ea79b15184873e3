// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/commands.h"
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

std::string Describe(package::DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{} {}", package::Name(dtype), ShapeText(shape));
}

package::DType DTypeOf(const HonePort& port) { return package::FindDType(port.dtype)->dtype; }

// Checks that every input without a default has an array and every array belongs to an input.
absl::Status CheckNames(const LoadedPackage& package, const std::vector<std::string>& names, const std::string& path) {
  std::vector<std::string> wanted, missing, extra;
  for (size_t i = 0; i < package.inputs().size(); ++i) {
    const std::string& name = wanted.emplace_back(package.inputs()[i].name);
    const bool given = std::find(names.begin(), names.end(), name) != names.end();
    if (!given && hone_input_has_default(package.model(), i) == 0) missing.push_back(name);
  }
  for (const std::string& name : names) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) extra.push_back(name);
  }
  if (missing.empty() && extra.empty()) return absl::OkStatus();
  std::string text = fmt::format("the arrays in '{}' are not the model's inputs:", path);
  if (!missing.empty()) text += fmt::format(" missing '{}';", fmt::join(missing, "', '"));
  if (!extra.empty()) text += fmt::format(" unknown '{}';", fmt::join(extra, "', '"));
  return absl::FailedPreconditionError(fmt::format("{} the inputs are '{}'", text, fmt::join(wanted, "', '")));
}

// The shapes that an input may have: "[1..4, 128]".
std::string RangeText(std::span<const int64_t> min, std::span<const int64_t> max) {
  std::vector<std::string> dimensions;
  for (size_t d = 0; d < max.size(); ++d) {
    dimensions.push_back(min[d] == max[d] ? fmt::format("{}", max[d]) : fmt::format("{}..{}", min[d], max[d]));
  }
  return fmt::format("[{}]", fmt::join(dimensions, ", "));
}

absl::Status SetInput(const LoadedPackage& package, size_t index, const NpzReader& reader) {
  const HonePort& port = package.inputs()[index];
  std::vector<int64_t> min(static_cast<size_t>(port.ndim)), max(min.size());
  HONE_RETURN_IF_ERROR(RuntimeError(hone_input_range(package.model(), index, min.data(), max.data(), port.ndim)));
  const auto check = [&](const NpyHeader& header) {
    bool fits = header.dtype == DTypeOf(port) && header.shape.size() == max.size();
    for (size_t d = 0; fits && d < max.size(); ++d) fits = header.shape[d] >= min[d] && header.shape[d] <= max[d];
    if (fits) return absl::OkStatus();
    const std::string found = Describe(header.dtype, header.shape);
    const std::string wanted = fmt::format("{} {}", package::Name(DTypeOf(port)), RangeText(min, max));
    std::string text = fmt::format("it is {}, the model wants {}", found, wanted);
    if (DTypeOf(port) == package::DType::kBFloat16 && header.dtype != package::DType::kBFloat16) {
      text += "; bf16 is type V2 in .npz files: save its bits, an array of uint16, with .view('V2')";
    }
    return absl::FailedPreconditionError(text);
  };
  HONE_ASSIGN_OR_RETURN(Array array, reader.Read(port.name, check));
  const DLTensor tensor = {array.data.data(),  {kDLCPU, 0},         port.ndim,        port.dtype,
                           array.shape.data(), /*strides=*/nullptr, /*byte_offset=*/0};
  return RuntimeError(hone_set_input(package.model(), index, &tensor));
}

absl::Status SetInputs(const LoadedPackage& package, const std::string& path) {
  if (path.empty()) {
    if (package.inputs().empty()) return absl::OkStatus();
    return CheckNames(package, {}, "no --input");
  }
  HONE_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(path));
  const std::vector<std::string> names = reader.names();
  HONE_RETURN_IF_ERROR(CheckNames(package, names, path));
  for (size_t i = 0; i < package.inputs().size(); ++i) {
    const bool given = std::find(names.begin(), names.end(), package.inputs()[i].name) != names.end();
    if (given) HONE_RETURN_IF_ERROR(SetInput(package, i, reader));
  }
  return absl::OkStatus();
}

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
  HONE_RETURN_IF_ERROR(SetInputs(package, options.input));
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
